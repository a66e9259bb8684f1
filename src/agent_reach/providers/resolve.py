"""Turn the environment entries of a contract into values, all failures at once.

Order for one entry: its source; if that says *not found*, its default; a source that cannot answer never falls
back. Entries of one secret share one read. A contract of ``env``, ``file``, ``dotenv`` and default entries is
resolved in this thread and imports nothing of weight.
"""

from __future__ import annotations

import os

from agent_reach._util.record import Record
from agent_reach._util.visible import visible
from agent_reach.errors import ProviderError
from agent_reach.providers.content import pick
from agent_reach.providers.faults import ForeignError, NotFoundError, SourceError
from agent_reach.providers.registry import Registry
from agent_reach.providers.session import Session
from agent_reach.providers.template import fill
from agent_reach.providers.uri import UriError, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_reach.contract.model import EnvGrant
    from agent_reach.providers.config import UserConfig
    from agent_reach.providers.content import Content
    from agent_reach.providers.session import Reader
    from agent_reach.providers.uri import Ref

    Key = tuple[str, str, tuple[tuple[str, str], ...]]

MAX_VALUE = 128 * 1024
"""Most bytes of one ``NAME=value`` string with its NUL: MAX_ARG_STRLEN of execve(2), 32 pages."""


class Resolved(Record):
    """What a run gets; `repr` shows names only, so that no traceback shows a value.

    Args:
        values: name to value, to be set inside.
        files: name to content, for entries that are delivered as a file.
        injected: name and origin of each, for the record: a URI, ``default`` or ``template``; never a value.
    """

    values: dict[str, str]
    files: dict[str, bytes]
    injected: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        """Show the names."""
        return f"Resolved(values={sorted(self.values)}, files={sorted(self.files)})"


class _Entry:
    """One grant on its way to a value."""

    def __init__(self, grant: EnvGrant) -> None:
        self.grant = grant
        self.ref: Ref | None = None
        self.reader: Reader | None = None
        self.fault: NotFoundError | SourceError | None = None

    @property
    def key(self) -> Key:
        """Return what identifies the read that this entry needs."""
        if self.ref is None:
            return ("", "", ())
        return (self.ref.scheme, self.ref.path, self.ref.options)


def resolve_env(
    grants: Iterable[EnvGrant],
    *,
    caller_env: Mapping[str, str],
    home: str,
    contract_dir: str,
    user_config: UserConfig | None = None,
    cli_passes: Sequence[str] = (),
) -> Resolved:
    """Resolve every environment entry of a contract.

    Args:
        grants: the entries, in order; a later one of the same name wins.
        caller_env: the caller's environment.
        home: the caller's home directory, absolute.
        contract_dir: directory against which relative paths are read when an entry does not name its document.
        user_config: the user's configuration; None reads it from `home` when a provider asks for it.
        cli_passes: names and prefixes given with ``--pass``.

    Raises:
        ProviderError: one or more entries have no value; every problem is named, no value is.
    """
    session = Session(caller_env, home, user_config)
    entries = [_Entry(grant) for grant in _by_name(grants, caller_env, cli_passes)]
    registry = Registry(session)
    for entry in entries:
        if entry.grant.source:
            _locate(entry, registry, contract_dir)
    answers = _read_all(entries)
    outcome = _Outcome(caller_env, {entry.grant.name for entry in entries}, answers.values())
    for entry in entries:
        outcome.settle(entry, answers.get(entry.key))
    return outcome.finish()


def _by_name(grants: Iterable[EnvGrant], caller_env: Mapping[str, str], passes: Sequence[str]) -> list[EnvGrant]:
    """Expand prefixes and keep the last entry of each name, in order of first appearance."""
    from agent_reach.contract.model import EnvGrant, Origin

    chosen: dict[str, EnvGrant] = {}
    cli = Origin(file="cli")
    for grant in (*grants, *(EnvGrant(name=name, origin=cli) for name in passes)):
        if not grant.name.endswith("*"):
            chosen[grant.name] = grant
            continue
        prefix = grant.name[:-1]
        for name in sorted(caller_env):
            if name.startswith(prefix) and name not in chosen:
                chosen[name] = grant.replace(name=name, required=False)
    return list(chosen.values())


def _locate(entry: _Entry, registry: Registry, contract_dir: str) -> None:
    """Find the reader and the read that an entry needs."""
    grant = entry.grant
    base = os.path.dirname(grant.origin.file) if os.path.isabs(grant.origin.file) else contract_dir
    try:
        ref = parse(grant.source)
        entry.reader = registry.reader(ref.scheme)
        entry.ref = entry.reader.locate(ref, base)
    except UriError as error:
        entry.fault = SourceError(str(error))
    except (SourceError, NotFoundError) as error:
        entry.fault = error


def _read_all(entries: list[_Entry]) -> dict[Key, Content | Exception]:
    """Do each distinct read once; side by side when one of them may have to wait."""
    reads: dict[Key, tuple[Reader, Ref]] = {}
    for entry in entries:
        if entry.ref is not None and entry.reader is not None:
            reads.setdefault(entry.key, (entry.reader, entry.ref))
    if any(reader.slow for reader, _ref in reads.values()):
        from agent_reach.providers.parallel import read_side_by_side

        return dict(zip(reads, read_side_by_side(list(reads.values())), strict=True))
    return {key: _read(reader, ref) for key, (reader, ref) in reads.items()}


def _read(reader: Reader, ref: Ref) -> Content | Exception:
    """Do one read and return its answer or its fault."""
    try:
        return reader.read(ref)
    except (NotFoundError, SourceError) as error:
        return error


class _Outcome:
    """Collects values and problems, in the order of the contract."""

    def __init__(self, caller_env: Mapping[str, str], names: set[str], answers: Iterable[object]) -> None:
        self._caller_env = caller_env
        self._names = names
        self._answers = answers
        self._values: dict[str, str] = {}
        self._files: dict[str, bytes] = {}
        self._injected: list[tuple[str, str]] = []
        self._problems: list[str] = []
        self._templates: list[EnvGrant] = []

    def settle(self, entry: _Entry, answer: Content | Exception | None) -> None:
        """Give one entry its value, leave it out, or note why it has none."""
        grant = entry.grant
        if grant.template:
            self._templates.append(grant)
            return
        if not grant.source:
            self._without_source(grant)
            return
        try:
            value = _value(entry, answer)
        except NotFoundError as error:
            if grant.default is not None:
                self._put(grant, grant.default, "default")
            elif grant.required:
                self._fail(grant, str(error))
        except SourceError as error:
            self._fail(grant, self._own_words(error))
        else:
            self._put(grant, value, grant.source)

    def finish(self) -> Resolved:
        """Fill the templates and return everything, or fail with every problem.

        Raises:
            ProviderError: an entry has no value.
        """
        plain = dict(self._values)
        for grant in self._templates:
            self._template(grant, plain)
        if self._problems:
            raise ProviderError(tuple(self._problems))
        return Resolved(self._values, self._files, tuple(self._injected))

    def _without_source(self, grant: EnvGrant) -> None:
        """Use the default, which the caller does not override, or pass the caller's variable through."""
        if grant.default is not None:
            self._put(grant, grant.default, "default")
            return
        value = self._caller_env.get(grant.name)
        if value is not None and (value or grant.allow_empty):
            self._put(grant, value, f"env://{grant.name}")
        elif grant.required:
            why = "not set by the caller" if value is None else "set by the caller, but empty"
            self._problems.append(f"Missing required environment variable {visible(grant.name)} ({why})")

    def _template(self, grant: EnvGrant, plain: dict[str, str]) -> None:
        """Fill one template from the plain values; an optional one may be left out with what it names."""
        text, absent = fill(grant.template, plain, self._names)
        if text is not None:
            self._put(grant, text, "template")
            return
        name = visible(absent)
        if absent in self._files:
            self._fail(grant, f"its template names {name}, which is delivered as a file")
        elif absent not in self._names:
            self._fail(grant, f"its template names {name}, which is not in resources.env")
        elif grant.required:
            self._fail(grant, f"its template names {name}, which has no value")

    def _put(self, grant: EnvGrant, value: str | bytes, origin: str) -> None:
        """Keep a value in the form in which it is delivered."""
        if grant.deliver == "file":
            self._files[grant.name] = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
        else:
            text = value if isinstance(value, str) else os.fsdecode(_without_line_end(value))
            fault = _not_settable(grant.name, text)
            if fault:
                self._fail(grant, fault)
                return
            self._values[grant.name] = text
        self._injected.append((grant.name, origin))

    def _fail(self, grant: EnvGrant, reason: str) -> None:
        """Note a problem; the text of a required entry starts with the words that the seeds show."""
        what = "Missing required" if grant.required else "Cannot resolve"
        source = f" from {visible(grant.source)}" if grant.source else ""
        self._problems.append(f"{what} environment variable {visible(grant.name)}{source}: {reason}")

    def _own_words(self, error: SourceError) -> str:
        """Return the text of a fault, without values where somebody else wrote it."""
        if not isinstance(error, ForeignError):
            return str(error)
        from agent_reach.providers.redact import redact, secrets_of

        return redact(str(error), secrets_of(self._answers, self._caller_env))


def _value(entry: _Entry, answer: Content | Exception | None) -> str | bytes:
    """Return what the source gave for one entry.

    Raises:
        NotFoundError: there is no value, or it is empty and may not be.
        SourceError: the source could not answer.
    """
    if entry.fault is not None:
        raise entry.fault
    if isinstance(answer, (NotFoundError, SourceError)):
        raise answer
    if answer is None or isinstance(answer, Exception) or entry.ref is None or entry.reader is None:
        raise SourceError("the provider did not answer")
    where = entry.reader.describe(entry.ref)
    value = pick(answer, entry.ref, where)
    if not (_without_line_end(value) if isinstance(value, bytes) else value) and not entry.grant.allow_empty:
        key = f"key `{visible(entry.ref.field)}` at `{where}`" if entry.ref.field else where
        raise NotFoundError(f"{key} is set but empty" if entry.ref.scheme == "env" else f"{key} is empty")
    return value


def _without_line_end(value: bytes) -> bytes:
    """Drop the one line end that editors put behind a secret in a file."""
    return value.removesuffix(b"\n").removesuffix(b"\r")


def _not_settable(name: str, text: str) -> str:
    """Say why execve(2) could not pass a value, or return nothing."""
    if "\0" in text:
        return "the value has a NUL byte, which no variable can hold; use deliver: file"
    try:
        size = len(os.fsencode(text))
    except UnicodeEncodeError:
        return "the value has a lone surrogate, which no variable can hold"
    if len(name) + size + 2 > MAX_VALUE:
        return f"the value has {size} bytes; the kernel passes at most {MAX_VALUE} in one variable; use deliver: file"
    return ""
