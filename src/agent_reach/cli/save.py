"""`--save`: write the grants of the command line into the contract, or into a new one."""

from __future__ import annotations

import os

from agent_reach._util.visible import visible
from agent_reach.cli import yaml_edit
from agent_reach.cli.clauses import holders, shorten
from agent_reach.cli.init import default_name
from agent_reach.cli.options import UsageError
from agent_reach.cli.request import GRANTS
from agent_reach.cli.terminal import say
from agent_reach.contract import load
from agent_reach.contract.nodes import Doc, Map
from agent_reach.contract.owner import read_owned
from agent_reach.contract.read import read
from agent_reach.contract.sink import Sink
from agent_reach.contract.template import starting_contract
from agent_reach.errors import ContractError, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.contract.model import Contract, FileGrant
    from agent_reach.host.model import Caller
    from agent_reach.prepare import Request

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./~-*@+")


class Addition:
    """One entry to write.

    Args:
        path: keys from the profile down.
        entry: the item, or the value of `named`.
        named: key of a mapping.
        name: name of a variable, which is the key when `env` is a mapping.
    """

    def __init__(self, path: tuple[str, ...], entry: str, named: str = "", name: str = "") -> None:
        self.path, self.entry, self.named, self.name = path, entry, named, name

    def __str__(self) -> str:
        """Show it as a person would write it."""
        return f"{'.'.join(self.path)}: {self.named}: {self.entry}" if self.named else f"- {self.entry}"


def save(asked: Request, contract: Contract, caller: Caller) -> None:
    """Write what the command line grants beyond the contract into it.

    Args:
        asked: the request.
        contract: what it resolved to; the grants are in it already, so they are known to be valid.
        caller: who asks.

    Raises:
        UsageError: the contract has no file of its own.
        ContractError: the document is written in a way that only a person can change.
    """
    if asked.contract_data is not None:
        raise UsageError("--save needs a contract in a file, and this one came from a descriptor")
    script = asked.target if asked.kind == "script" else None
    if script and contract.path == os.path.normpath(os.path.join(caller.cwd, script)):
        raise UsageError("--save does not write into a script", f"write it into the [tool.reach] table of {script}")
    path = contract.path or os.path.join(caller.cwd, default_name(script))
    text = read_owned(path).decode("utf-8-sig") if contract.path else starting_contract(script)

    def loaded() -> Contract:
        data = text.encode()
        return load.load(path, profile=contract.profile or None, targets=asked.targets, home=caller.home, data=data)

    before = loaded()
    given = {name: getattr(asked, name) for name in GRANTS}
    wanted = load.with_cli_grants(before, **given, cwd=caller.cwd, home=caller.home)
    added = [*additions(before, wanted, os.path.dirname(path)), *_limits(before, wanted, asked.limits)]
    if not added:
        return
    for addition in reversed(added):  # each goes in front of the first of its list
        text = _with(text, path, contract.profile, addition)
    if _granted(loaded()) != _granted(wanted):
        raise _by_hand(path, *added)
    _write(path, text, new=not contract.path)
    where = visible(shorten(path, caller.cwd))
    say("\n".join(f"reach: saved into {where}:  {visible(str(addition))}" for addition in added))


def additions(before: Contract, after: Contract, base: str) -> list[Addition]:
    """List what one contract grants and another does not.

    Args:
        before: the contract as written.
        after: the contract with the command line's grants.
        base: directory that relative paths of the document start from.
    """
    found: list[Addition] = []
    modes = {grant.path: grant.mode for grant in before.files}
    for grant in _from_cli(after.files):
        if grant.path not in modes:
            found.append(Addition(("resources", "files"), f"{{path: {_path(grant, base)}, mode: {grant.mode}}}"))
        elif modes[grant.path] != grant.mode:
            raise _change(grant.path, f"mode {modes[grant.path]}", grant.mode)
    rules = {(rule.host, rule.port) for rule in before.network}
    found += [
        Addition(("resources", "network", "allow_outbound"), f"{{host: {_quoted(rule.host)}, port: {rule.port}}}")
        for rule in after.network
        if rule.origin.file == "cli" and (rule.host, rule.port) not in rules
    ]
    names = {grant.name for grant in before.env}
    found += [
        Addition(("resources", "env"), f"{{name: {_quoted(grant.name)}}}", name=_quoted(grant.name))
        for grant in after.env
        if grant.origin.file == "cli" and grant.name not in names
    ]
    commands = {grant.name for grant in before.commands}
    found += [
        Addition(("resources", "commands"), _quoted(grant.name))
        for grant in after.commands
        if grant.origin.file == "cli" and grant.name not in commands
    ]
    return found


def _limits(before: Contract, after: Contract, given: tuple[str, ...]) -> list[Addition]:
    """List the limits of the command line that the contract does not have; as they were written."""
    found = []
    have, values = dict(before.limits), dict(after.limits)
    for text in given:
        written, _, amount = text.partition("=")
        name = written.replace("io.", "io_")
        group, _, last = name.rpartition("_") if name.startswith("io_") else ("", "", name)
        if name not in have:
            found.append(Addition(("limits", group) if group else ("limits",), amount, last))
        elif have[name].value != values[name].value:
            raise _change(f"limits.{written}", "another value", amount)
    return found


def _change(what: str, old: str, new: str) -> ContractError:
    """Return the error for an entry that is there already: changing it is the author's decision."""
    message = f"{what} is in the contract with {old}; --save adds entries and changes none"
    return ContractError((Finding("E_SAVE", message, hint=f"change it to {new}"),))


def _from_cli(grants: tuple[FileGrant, ...]) -> list[FileGrant]:
    """Select what the command line added."""
    return [grant for grant in grants if grant.origin.file == "cli"]


def _path(grant: FileGrant, base: str) -> str:
    """Write a path relative to the contract where it lies below it, so that a checkout elsewhere works."""
    short = shorten(grant.path, base)
    text = (short if short.startswith("/") else f"./{short}") + ("/" if grant.directory else "")
    return _quoted(text)


def _quoted(text: str) -> str:
    """Quote a text unless YAML reads it as it is."""
    if text and _PLAIN.issuperset(text) and text[0] not in "-*@" and not text[0].isdigit():
        return text
    import json

    return json.dumps(text)


def _with(text: str, path: str, profile: str, addition: Addition) -> str:
    """Return the text with one addition."""
    root = read(text.encode(), Doc(path, path, os.path.dirname(path)), Sink())
    found = holders(root, profile) if isinstance(root, Map) else []
    if not found:
        raise _by_hand(path, addition)
    forms = [(addition.entry, addition.named)]
    if addition.path[-1] == "env":
        forms.append(("{}", addition.name))
    for entry, named in forms:
        try:
            return yaml_edit.add(text, found[0], addition.path, entry, named=named)
        except yaml_edit.CannotEdit:
            continue
    raise _by_hand(path, addition)


def _by_hand(path: str, *added: Addition) -> ContractError:
    """Return the error that tells what to write."""
    message = "this contract is written in a way that --save does not change"
    return ContractError(
        tuple(
            Finding("E_SAVE", message, file=path, key=".".join(addition.path), hint=f"add it yourself:  {addition}")
            for addition in added
        )
    )


def _granted(contract: Contract) -> Mapping[str, object]:
    """Return the grants without their order and origin."""
    return {
        "files": {(grant.path, grant.mode) for grant in contract.files},
        "network": {(rule.host, rule.port, rule.protocol) for rule in contract.network},
        "env": {grant.name for grant in contract.env},
        "commands": {grant.name for grant in contract.commands},
        "limits": {name: limit.value for name, limit in contract.limits},
    }


def _write(path: str, text: str, *, new: bool) -> None:
    """Replace the file by one rename, or make a new one."""
    real = os.path.realpath(path)
    scratch = real if new else f"{real}.{os.getpid()}.new"
    mode = 0o644 if new else os.stat(real).st_mode & 0o777
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(descriptor, "w", encoding="utf-8", newline="") as stream:
        stream.write(text)
    if not new:
        os.rename(scratch, real)
