"""One function per use case; every door calls them."""

from __future__ import annotations

import os
import time

from agent_reach import __version__, prepare
from agent_reach.errors import EXIT_REACH_FAILED, EXIT_WALL_LIMIT
from agent_reach.plan import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_reach.audit.journal import Journal
    from agent_reach.audit.record import Code, StagedFile
    from agent_reach.outcome import Connection, Denial, Receipt, Result
    from agent_reach.prepare import Prepared, Request
    from agent_reach.sandbox.launch import Assembled, Ended
    from agent_reach.staging.missing import Made
    from agent_reach.staging.progress import Progress

    Show = Callable[[Denial], None]

_MOST_EVENTS = 10_000
_SIGNAL_BASE = 128
_LARGEST_SCRIPT = 64 << 20


def run(request: Request, environ: Mapping[str, str], show: Show) -> Result:
    """Run a program under its contract.

    Args:
        request: what to run.
        environ: the caller's environment.
        show: called with each denial as it happens.

    Returns:
        What came of it; a program that failed is a result, not an exception.

    Raises:
        ReachError: nothing ran, or the sandbox was lost in set-up.
    """
    prepared = prepare.prepare(request, environ)
    return carry_out(prepared, environ, show)


def carry_out(prepared: Prepared, environ: Mapping[str, str], show: Show, progress: Progress | None = None) -> Result:
    """Apply a prepared plan, wait, and write the record.

    Args:
        prepared: the plan.
        environ: the caller's environment.
        show: called with each denial as it happens.
        progress: told about files that are being fetched, or None.

    Raises:
        ReachError: as `run`.
    """
    from agent_reach.sandbox import launch

    run_id, started = new_run_id(), time.time()
    prepared, made = _create_missing(prepared, environ)
    events = _Events(show)
    assembly = _Assembly(prepared, environ, progress)
    settings = launch.Settings(
        name=run_id,
        slot_file=os.path.join(prepared.places.state, "slots.lock"),
        filter_cache=prepared.places.cache,
        guard_files=prepared.facts.guard_files,
    )
    writable = _writable_directories(prepared)
    guarded = _protected_names(writable)
    error = ""
    result: Result | None = None
    try:
        ended = launch.run(prepared.plan, settings, assembly.assemble, events.take, idle=_import_for_the_end)
        notes = _secure_grants(writable, guarded, run_id, started, events)
        result = _result(run_id, prepared, ended.replace(notes=ended.notes + notes), events)
    except BaseException as raised:
        error = "interrupted" if isinstance(raised, KeyboardInterrupt) else f"{type(raised).__name__}: {raised}"
        if result is None:
            _secure_grants(writable, guarded, run_id, started, events)
        raise
    finally:
        _remove_unused(made)
        if prepared.request.use_record:
            _append_record(run_id, started, assembly, events, result, error)
    return result


def _import_for_the_end() -> None:
    """Import what the end of a run needs while the sandbox is being built: the launcher has nothing else to do."""
    from agent_reach import outcome  # noqa: F401
    from agent_reach.audit import record  # noqa: F401
    from agent_reach.plan import receipt  # noqa: F401


def _create_missing(prepared: Prepared, environ: Mapping[str, str]) -> tuple[Prepared, tuple[Made | None, ...]]:
    """Create writable grants that do not exist, and plan anew with them.

    Raises:
        ContractError: a required path is missing.
    """
    facts = prepared.facts.paths
    if not any(fact.kind in {"missing", "symlink"} for fact in facts):
        return prepared, ()
    from agent_reach.staging import missing

    made = missing.make(prepared.contract, facts)
    return (prepare.prepare(prepared.request, environ) if made else prepared), made


def _writable_directories(prepared: Prepared) -> tuple[str, ...]:
    """List the directories of the host that the program may write to."""
    pairs = zip(prepared.contract.files, prepared.facts.paths, strict=True)
    return tuple(fact.real for grant, fact in pairs if fact.kind == "directory" and layout.writes(grant))


def _protected_names(directories: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """List the protected names in them that no mount keeps."""
    if not directories:
        return ()
    from agent_reach.staging import protected

    return protected.unmounted(directories)


def _secure_grants(
    directories: tuple[str, ...], names: tuple[tuple[str, str], ...], run_id: str, started: float, events: _Events
) -> tuple[str, ...]:
    """Undo what must not stay in writable grants; return remarks for the receipt."""
    if not directories:
        return ()
    from agent_reach.staging import protected

    for denial in protected.move_aside(names, run_id):
        events.add(denial)
    return tuple(f"set-id bits cleared: {path}" for path in protected.clear_set_id(directories, started))


def _remove_unused(made: tuple[Made | None, ...]) -> None:
    """Take back the files that were created and stayed empty."""
    if made:
        from agent_reach.staging import missing

        missing.remove(made)


def new_run_id() -> str:
    """Return an identifier that sorts by time: seconds in base 16, then 64 random bits."""
    return f"{int(time.time()):08x}-{os.urandom(8).hex()}"


class _Assembly:
    """Resolves what the contract grants, and remembers what for, never with what."""

    def __init__(self, prepared: Prepared, environ: Mapping[str, str], progress: Progress | None) -> None:
        self.prepared = prepared
        self._environ = environ
        self._progress = progress
        self.journal: Journal | None = None
        self.code: Code | None = None
        self.injected: tuple[tuple[str, str], ...] = ()
        self.staged: tuple[StagedFile, ...] = ()

    def assemble(self) -> Assembled:
        """Ask the providers, and see that the run can be recorded; called while the sandbox is being built.

        Raises:
            ProviderError: with every failure of the run.
            Unavailable: there is no writable place for the record, and ``--no-record`` was not given.
        """
        from agent_reach.sandbox.launch import Assembled

        prepared = self.prepared
        environment = dict(prepared.plan.environment)
        staged: dict[int, bytes] = {}
        if prepared.request.use_record:
            self.code = _code(prepared)
            self.journal = _open_journal(prepared)
        if prepared.contract.env:
            staged = self._resolve(environment)
        staged.update(self._stage())
        if prepared.plan.program.guard:
            honoured = layout.honoured(prepared.contract, prepared.facts)
            environment["PYTHONPATH"] = ":".join((prepared.plan.program.guard, *honoured))
        return Assembled(environment, staged)

    def _resolve(self, environment: dict[str, str]) -> dict[int, bytes]:
        """Resolve the environment's entries; return the content of those that are delivered as files."""
        from agent_reach.providers.resolve import resolve_env

        prepared = self.prepared
        resolved = resolve_env(
            prepared.contract.env,
            caller_env=self._environ,
            home=prepared.caller.home,
            contract_dir=os.path.dirname(prepared.contract.path) or prepared.caller.cwd,
        )
        self.injected = resolved.injected
        environment.update(resolved.values)
        places = layout.delivered(prepared.contract, prepared.plan.private)
        staged = {}
        for name, content in resolved.files.items():
            number, path = places[name]
            staged[number] = content
            environment[name] = path
        return staged

    def _stage(self) -> dict[int, bytes]:
        """Fetch the files that have a source."""
        grants = [(number, grant) for number, grant in enumerate(self.prepared.contract.files) if grant.source]
        if not grants:
            return {}
        from agent_reach.audit import record
        from agent_reach.staging.fetch import stage_all

        base = os.path.dirname(self.prepared.contract.path)
        contents, staged = stage_all(grants, base, home=self.prepared.caller.home, progress=self._progress)
        self.staged = tuple(record.StagedFile(file.path, file.source, file.sha256, file.size) for file in staged)
        return contents


class _Events:
    """Collects what the supervisor reports, bounded."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self.denials: list[Denial] = []
        self.connections: list[Connection] = []

    def take(self, fields: dict[str, str]) -> None:
        """Take one event."""
        if len(self.denials) + len(self.connections) >= _MOST_EVENTS:
            return
        from agent_reach.outcome import Connection

        if fields["kind"] == "count":
            self._count(fields)
        elif fields["kind"] == "denial":
            self.add(_denial(fields))
        elif fields["kind"] == "connection":
            self.connections.append(
                Connection(fields["host"], fields["address"], int(fields["port"]), int(fields["count"]))
            )

    def add(self, denial: Denial) -> None:
        """Take down a denial, and show it."""
        self.denials.append(denial)
        if denial.shown:
            self._show(denial)

    def _count(self, fields: dict[str, str]) -> None:
        """Correct the count of an event that happened again."""
        count = int(fields["count"])
        if "subject" in fields:
            same = _denial(fields).replace(count=1)
            self.denials = [
                d.replace(count=count) if d.replace(shown=same.shown, count=1) == same else d for d in self.denials
            ]
            return
        key = (fields["host"], fields["address"], int(fields["port"]))
        self.connections = [
            c.replace(count=count) if (c.host, c.address, c.port) == key else c for c in self.connections
        ]


def _denial(fields: dict[str, str]) -> Denial:
    """Read a denial from the fields of a frame."""
    from agent_reach.outcome import Denial, Place

    place = Place(fields["file"], int(fields["line"]), fields["function"]) if fields["file"] else None
    return Denial(
        action=fields["action"],
        subject=fields["subject"],
        clause=fields["clause"],
        entry=fields["entry"],
        place=place,
        shown=fields["shown"] == "1",
        layer=fields["layer"],
        count=int(fields["count"]),
    )


def _result(run_id: str, prepared: Prepared, ended: Ended, events: _Events) -> Result:
    """Turn the end of a sandbox into a result."""
    from agent_reach.outcome import Result, Usage

    exit_code, signal, cause, limit, message = _verdict(ended)
    return Result(
        run_id=run_id,
        exit_code=exit_code,
        signal=signal,
        cause=cause,
        limit=limit,
        message=message,
        denials=tuple(events.denials),
        connections=tuple(events.connections),
        usage=Usage(
            wall=ended.wall,
            cpu=ended.cpu,
            max_rss=ended.max_rss,
            memory_peak=ended.memory_peak,
            output=ended.output,
        ),
        receipt=make_receipt(prepared, ended.held, ended.notes),
    )


def make_receipt(prepared: Prepared, held: Mapping[str, str], notes: tuple[str, ...] = ()) -> Receipt:
    """Say what is enforced for a plan on this host.

    Args:
        prepared: the plan.
        held: limit name to mechanism.
        notes: what came up in the run.
    """
    from agent_reach.plan import receipt

    uid = 0 if prepared.caller.uid == 0 and not prepared.facts.started_by_root else 1
    return receipt.make(prepared.plan, held, notes, uid=uid)


def _verdict(ended: Ended) -> tuple[int, int, str, str, str]:
    """Return exit code, signal, cause, limit and a sentence."""
    if ended.cause in {"wall", "memory", "output", "cpu_time"}:
        code = EXIT_WALL_LIMIT if ended.cause == "wall" else _SIGNAL_BASE + 9
        return code, 9, "limit", ended.cause, f"limits.{ended.cause} reached"
    if ended.cause == "denied":
        return EXIT_REACH_FAILED, 0, "denied", "", "a denial makes the run fail (options.on_denial)"
    if ended.status is None:
        return _SIGNAL_BASE + 9, 9, "lost", "", "the sandbox was killed from outside"
    if os.WIFSIGNALED(ended.status):
        number = os.WTERMSIG(ended.status)
        return _SIGNAL_BASE + number, number, "signalled", "", f"ended by signal {number}"
    return os.WEXITSTATUS(ended.status), 0, "exited", "", ""


def _open_journal(prepared: Prepared) -> Journal:
    """Open the audit log before anything runs: a run that cannot be recorded does not start.

    Raises:
        Unavailable: there is no writable place.
    """
    from agent_reach.audit.journal import Journal

    return Journal(prepared.places.state)


def _append_record(  # noqa: PLR0917 - everything that one record tells
    run_id: str, started: float, assembly: _Assembly, events: _Events, result: Result | None, error: str
) -> None:
    """Write the record of a run, also of one that never started."""
    from agent_reach.audit import record

    prepared = assembly.prepared
    journal = assembly.journal or _open_journal(prepared)
    with journal:
        journal.append(
            record.build(
                run_id,
                started=started,
                contract=prepared.contract,
                code=assembly.code or _code(prepared),
                version=__version__,
                result=result,
                error=error,
                denials=events.denials,
                connections=events.connections,
                injected=assembly.injected,
                staged=assembly.staged,
            )
        )


def _code(prepared: Prepared) -> Code:
    """Describe what is run, by the digest of its bytes where they are ours to read."""
    from agent_reach.audit import record
    from agent_reach.audit.canonical import sha256

    invocation, python = prepared.request, prepared.facts.interpreter.executable
    if invocation.kind == "script":
        try:
            with open(prepared.script, "rb") as stream:
                digest = sha256(stream.read(_LARGEST_SCRIPT))
        except OSError:
            digest = ""
        return record.Code(prepared.script, digest, python)
    if invocation.kind == "code":
        return record.Code("-c", sha256(invocation.target.encode("utf-8", "surrogateescape")), python)
    if invocation.kind == "command":
        return record.Code(invocation.target)
    return record.Code("<stdin>" if invocation.kind == "stdin" else f"-m {invocation.target}", "", python)
