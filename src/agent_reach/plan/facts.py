"""The facts that one plan is made from, gathered before and passed in whole."""

from __future__ import annotations

from agent_reach._util.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.host.model import Caller, CommandFact, Interpreter, PathFact, ProjectFact
    from agent_reach.host.system import SystemFact


class Invocation(Record):
    """What the user asked to run.

    Args:
        kind: ``script``, ``module``, ``code``, ``stdin`` or ``command``.
        target: script path as typed, module name, code, ``-``, or the command's name.
        arguments: everything behind it.
        script: absolute path of the script, or empty.
    """

    kind: str
    target: str
    arguments: tuple[str, ...] = ()
    script: str = ""


class Pieces(Record):
    """What lies in a granted directory beside things that are kept from the program (``reduced``).

    Args:
        path: real path of the directory.
        kept: what is kept from it.
        readable: what may be read, empty when the grant is not for reading.
        writable: what may be written, empty when the grant is not for writing.
    """

    path: str
    kept: tuple[str, ...]
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


class Facts(Record):
    """Everything that `plan.build` looks at besides the contract.

    Args:
        tier: ``full`` or ``reduced``.
        landlock: usable ABI, 0 for none.
        pidfd_getfd: the supervisor can copy descriptors out of the sandbox.
        caller, interpreter, project, system: see `host`.
        paths: one fact for each file grant, in the contract's order (globs already expanded).
        specials: sockets, FIFOs and devices inside granted directories.
        own: reach's own directories inside what is shown: cache, records, the user's configuration and providers.
        protected: names inside writable grants that stay read-only, with their kind.
        commands: one fact for each command grant.
        terminal: values of TERM and its kind that the caller has.
        started_by_root: ids inside differ from the caller's, files are shown id-mapped.
        entries: what of the project may be read, piece by piece (``reduced``).
        pieces: granted directories of which not everything may be read or written (``reduced``).
        private: fresh directory of the run (``reduced``), made when the plan is applied.
        python_path: the caller's PYTHONPATH, directories that exist.
        guard_files: name and content of the Python-level guard.
    """

    tier: str
    landlock: int
    caller: Caller
    interpreter: Interpreter
    project: ProjectFact
    system: SystemFact
    pidfd_getfd: bool = True
    paths: tuple[PathFact, ...] = ()
    specials: tuple[tuple[str, str], ...] = ()
    own: tuple[str, ...] = ()
    protected: tuple[tuple[str, str], ...] = ()
    commands: tuple[CommandFact, ...] = ()
    terminal: tuple[tuple[str, str], ...] = ()
    started_by_root: bool = False
    entries: tuple[str, ...] = ()
    pieces: tuple[Pieces, ...] = ()
    private: str = ""
    python_path: tuple[str, ...] = ()
    guard_files: tuple[tuple[str, bytes], ...] = ()
