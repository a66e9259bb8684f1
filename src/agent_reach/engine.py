"""One function per use case; every door calls them."""

from __future__ import annotations

import os

from agent_reach import __version__, prepare
from agent_reach.audit import record
from agent_reach.audit.canonical import sha256
from agent_reach.errors import EXIT_REACH_FAILED, EXIT_WALL_LIMIT
from agent_reach.outcome import Connection, Denial, Place, Result, Usage
from agent_reach.plan import layout, receipt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_reach.audit.journal import Journal
    from agent_reach.audit.record import StagedFile
    from agent_reach.outcome import Receipt
    from agent_reach.prepare import Prepared, Request
    from agent_reach.sandbox.launch import Assembled, Ended
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
    from agent_reach.staging import missing

    import time

    run_id, started = new_run_id(), time.time()
    journal = _open_journal(prepared)
    made = missing.make(prepared.contract, prepared.facts.paths)
    if made:
        prepared = prepare.prepare(prepared.request, environ)
    events = _Events(show)
    assembly = _Assembly(prepared, environ, progress)
    code = _code(prepared)
    error = ""
    result: Result | None = None
    try:
        settings = launch.Settings(
            name=run_id,
            slot_file=os.path.join(prepared.places.state, "slots.lock"),
            filter_cache=prepared.places.cache,
            guard_files=prepared.facts.guard_files,
        )
        ended = launch.run(prepared.plan, settings, assembly.assemble, events.take)
        result = _result(run_id, prepared, ended, events)
    except BaseException as raised:
        error = f"{type(raised).__name__}: {raised}" if not isinstance(raised, KeyboardInterrupt) else "interrupted"
        raise
    finally:
        missing.remove(made)
        if journal is not None:
            with journal:
                journal.append(
                    record.build(
                        run_id,
                        started=started,
                        contract=prepared.contract,
                        code=code,
                        version=__version__,
                        result=result,
                        error=error,
                        denials=events.denials,
                        connections=events.connections,
                        injected=assembly.injected,
                        staged=assembly.staged,
                    )
                )
    return result


def new_run_id() -> str:
    """Return an identifier that sorts by time: seconds in base 16, then 64 random bits."""
    import time

    return f"{int(time.time()):08x}-{os.urandom(8).hex()}"


class _Assembly:
    """Resolves what the contract grants, and remembers what for, never with what."""

    def __init__(self, prepared: Prepared, environ: Mapping[str, str], progress: Progress | None) -> None:
        self._prepared = prepared
        self._environ = environ
        self._progress = progress
        self.injected: tuple[tuple[str, str], ...] = ()
        self.staged: tuple[StagedFile, ...] = ()

    def assemble(self) -> Assembled:
        """Ask the providers; called while the sandbox is being built.

        Raises:
            ProviderError: with every failure of the run.
        """
        from agent_reach.providers.resolve import resolve_env
        from agent_reach.sandbox.launch import Assembled

        prepared = self._prepared
        environment = dict(prepared.plan.environment)
        staged: dict[int, bytes] = {}
        if prepared.contract.env:
            resolved = resolve_env(
                prepared.contract.env,
                caller_env=self._environ,
                home=prepared.caller.home,
                contract_dir=os.path.dirname(prepared.contract.path) or prepared.caller.cwd,
            )
            self.injected = resolved.injected
            environment.update(resolved.values)
            places = layout.delivered(prepared.contract)
            for name, content in resolved.files.items():
                number, path = places[name]
                staged[number] = content
                environment[name] = path
        staged.update(self._stage())
        if prepared.plan.program.guard:
            environment["PYTHONPATH"] = prepared.plan.program.guard
        return Assembled(environment, staged)

    def _stage(self) -> dict[int, bytes]:
        """Fetch the files that have a source."""
        grants = [(number, grant) for number, grant in enumerate(self._prepared.contract.files) if grant.source]
        if not grants:
            return {}
        from agent_reach.staging.fetch import stage_all

        base = os.path.dirname(self._prepared.contract.path)
        contents, staged = stage_all(grants, base, home=self._prepared.caller.home, progress=self._progress)
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
        if fields["kind"] == "count":
            self._count(fields)
        elif fields["kind"] == "denial":
            denial = _denial(fields)
            self.denials.append(denial)
            if denial.shown:
                self._show(denial)
        elif fields["kind"] == "connection":
            self.connections.append(
                Connection(fields["host"], fields["address"], int(fields["port"]), int(fields["count"]))
            )

    def _count(self, fields: dict[str, str]) -> None:
        """Correct the count of an event that happened again."""
        count = int(fields["count"])
        if "subject" in fields:
            same = _denial(fields).replace(count=1)
            self.denials = [d.replace(count=count) if d.replace(shown=same.shown) == same else d for d in self.denials]
            return
        key = (fields["host"], fields["address"], int(fields["port"]))
        self.connections = [
            c.replace(count=count) if (c.host, c.address, c.port) == key else c for c in self.connections
        ]


def _denial(fields: dict[str, str]) -> Denial:
    """Read a denial from the fields of a frame."""
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
        receipt=make_receipt(prepared, ended.held),
    )


def make_receipt(prepared: Prepared, held: Mapping[str, str]) -> Receipt:
    """Say what is enforced for a plan on this host."""
    return receipt.make(prepared.plan, held, started_by_root=prepared.facts.started_by_root)


def _verdict(ended: Ended) -> tuple[int, int, str, str, str]:
    """Return exit code, signal, cause, limit and a sentence."""
    if ended.cause in {"wall", "memory", "output", "cpu_time"}:
        code = EXIT_WALL_LIMIT if ended.cause == "wall" else _SIGNAL_BASE + 9
        return code, 9, "limit", ended.cause, f"limits.{ended.cause} reached"
    if ended.cause == "denied":
        return EXIT_REACH_FAILED, 0, "denied", "", "stopped at the first denial (options.on_denial)"
    if ended.status is None:
        return _SIGNAL_BASE + 9, 9, "lost", "", "the sandbox was killed from outside"
    if os.WIFSIGNALED(ended.status):
        number = os.WTERMSIG(ended.status)
        return _SIGNAL_BASE + number, number, "signalled", "", f"ended by signal {number}"
    return os.WEXITSTATUS(ended.status), 0, "exited", "", ""


def _open_journal(prepared: Prepared) -> Journal | None:
    """Open the audit log before anything runs: a run that cannot be recorded does not start.

    Raises:
        Unavailable: there is no writable place, and ``--no-record`` was not given.
    """
    if not prepared.request.use_record:
        return None
    from agent_reach.audit.journal import Journal

    return Journal(prepared.places.state)


def _code(prepared: Prepared) -> record.Code:
    """Describe what is run, by the digest of its bytes where they are ours to read."""
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
