"""Build the plan: contract and facts in, pure data out."""

from __future__ import annotations

from agent_reach.plan import layout, reduced
from agent_reach.plan.model import Bind, Program, SandboxPlan, Scratch, Staged, Text, Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.model import Contract
    from agent_reach.plan.facts import Facts, Invocation

_DEFAULT_PROCESSES = 1024
_DEFAULT_SCRATCH = 1 << 30
_BYTES_PER_INODE = 4096
_MOST_INODES = 1 << 18
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def build(contract: Contract, facts: Facts, invocation: Invocation) -> SandboxPlan:
    """Make the plan of one run.

    Args:
        contract: what is granted.
        facts: what this host is like.
        invocation: what is to be run.
    """
    uid, gid = layout.inner_ids(facts)
    scratch = contract.limit("scratch")
    inodes = contract.limit("scratch_inodes")
    size = int(scratch.value) if scratch else _DEFAULT_SCRATCH
    full = facts.tier == "full"
    if not full:
        reduced.check(contract)
    mounts = layout.mounts_of(contract, facts) if full else ()
    readable = _readable(contract, facts, mounts) if full else reduced.readable(contract, facts)
    return SandboxPlan(
        tier=facts.tier,
        hostname="reach",
        user=facts.caller.name,
        home=facts.caller.home,
        umask=facts.caller.umask,
        inner_uid=uid,
        inner_gid=gid,
        mounts=mounts,
        writable=_writable(contract, facts) if full else reduced.writable(contract, facts),
        readable=readable,
        executables=_executables(facts),
        scratch=size,
        scratch_inodes=int(inodes.value) if inodes else min(_MOST_INODES, max(1024, size // _BYTES_PER_INODE)),
        environment=_environment(contract, facts),
        network=contract.network,
        limits=_limits(contract),
        program=_program(facts, invocation),
        landlock=facts.landlock,
        listable=() if full else reduced.listable(facts),
        private=facts.private,
        notify_socket=not full and not facts.pidfd_getfd,
        on_denial=contract.options.on_denial,
        notes=contract.notes + _notes(contract, facts) + _read_all_the_same(contract, facts, readable),
    )


def _writable(contract: Contract, facts: Facts) -> tuple[str, ...]:
    """List the paths that Landlock lets be written."""
    grants = [
        fact.real
        for grant, fact in zip(contract.files, facts.paths, strict=True)
        if not grant.source and layout.writes(grant) and fact.kind in {"file", "directory"}
    ]
    return (*grants, facts.caller.home, "/tmp", "/var/tmp", "/dev", "/proc")  # noqa: S108 - names inside


def _readable(contract: Contract, facts: Facts, mounts: tuple[object, ...]) -> tuple[str, ...]:
    """List the paths that Landlock lets be read.

    Only granted files exist inside so one rule on the root does, unless a grant is for writing
    only: Landlock cannot subtract, so what lies beside such a grant is then listed piece by piece.
    """
    write_only = [
        fact.real
        for grant, fact in zip(contract.files, facts.paths, strict=True)
        if not grant.source and layout.writes(grant) and not layout.reads(grant)
    ]
    if not write_only:
        return ("/",)
    shown = [
        mount.target
        for mount in mounts
        if isinstance(mount, (Bind, Scratch, Text, Staged)) and mount.target not in write_only
    ]
    tops = {_top(path) for path in write_only}
    shown = [path if _top(path) in tops else _top(path) for path in shown]
    return (*dict.fromkeys(shown), "/dev", "/proc")


def _top(path: str) -> str:
    """Return the first component."""
    return "/" + path.split("/")[1]


def _executables(facts: Facts) -> tuple[str, ...]:
    """List the files that Landlock lets be executed in tier ``reduced``."""
    known = facts.interpreter
    files = [known.executable, known.real]
    files += [path for command in facts.commands for pair in command.files for path in pair]
    files += [path for command in facts.commands for path in command.directories]
    return tuple(dict.fromkeys(files))


def _environment(contract: Contract, facts: Facts) -> tuple[tuple[str, str], ...]:
    """Build the names that every program may count on, with harmless values."""
    known, caller = facts.interpreter, facts.caller
    directories = [known.executable.rpartition("/")[0], "/usr/local/bin", "/usr/bin", "/bin"]
    directories += [path.rstrip("/") for command in facts.commands for path in command.directories]
    directories += [command.found.rpartition("/")[0] for command in facts.commands if command.found]
    values = {
        "PATH": ":".join(dict.fromkeys(directories)),
        "HOME": caller.home,
        "USER": caller.name,
        "LOGNAME": caller.name,
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",  # noqa: S108 - a name inside
        "PYTHONUTF8": "1",
    }
    values.update(facts.terminal)
    cpus = contract.limit("cpus")
    if cpus:
        values.update(dict.fromkeys(_THREAD_VARIABLES, str(max(1, round(cpus.value)))))
    if facts.tier != "full":
        values.update(reduced.environment(facts))
    if contract.options.disable_pycache:
        values["PYTHONDONTWRITEBYTECODE"] = "1"
    return tuple(values.items())


def _limits(contract: Contract) -> tuple[Wanted, ...]:
    """List the limits asked for, and the one that every run has."""
    wanted = [Wanted(name, limit.value, limit.enforced, limit.origin) for name, limit in contract.limits]
    if not contract.limit("processes"):
        wanted.append(Wanted("processes", _DEFAULT_PROCESSES))
    return tuple(wanted)


def _program(facts: Facts, invocation: Invocation) -> Program:
    """Say what is executed: the interpreter as in a bare run, or a granted command."""
    guard = ""
    if facts.guard_files:
        guard = layout.GUARD if facts.tier == "full" else f"{facts.private}/guard"
    if invocation.kind == "command":
        found = next((c.found for c in facts.commands if c.name == invocation.target), invocation.target)
        return Program(found, (invocation.target, *invocation.arguments), facts.caller.cwd, guard)
    options = {
        "script": (invocation.target,),
        "module": ("-m", invocation.target),
        "code": ("-c", invocation.target),
        "stdin": ("-",),
    }[invocation.kind]
    executable = facts.interpreter.executable
    return Program(executable, (executable, *options, *invocation.arguments), facts.caller.cwd, guard)


def _notes(contract: Contract, facts: Facts) -> tuple[str, ...]:
    """Collect the remarks that the receipt owes the reader."""
    notes = ["started by root: runs as an unprivileged uid"] if facts.started_by_root else []
    notes += [f"interpreter {facts.interpreter.executable} ({facts.interpreter.chosen_by})"]
    if facts.python_path and contract.options.context_isolation:
        notes.append("PYTHONPATH ignored (options.context_isolation)")
    if any(rule.protocol in {"http", "https"} for rule in contract.network):
        notes.append("http and https rules: host and port enforced, https not checked")
    if facts.tier != "full":
        notes += reduced.notes(contract, facts)
    if any(grant.mode.startswith("a") for grant in contract.files):
        notes.append("append: held for Python code, not enforced for native code")
    return tuple(notes)


def _read_all_the_same(contract: Contract, facts: Facts, readable: tuple[str, ...]) -> tuple[str, ...]:
    """Name the grants for writing alone that can be read, because Landlock cannot take them out of what is above."""
    notes = []
    for grant, fact in zip(contract.files, facts.paths, strict=True):
        if grant.source or layout.reads(grant) or fact.kind not in {"file", "directory"}:
            continue
        above = next((path for path in readable if f"{fact.real}/".startswith(f"{path}/")), "")
        if above:
            notes.append(f"files: {grant.path} ({grant.mode}): can be read as well, like everything in {above}")
    return tuple(notes)
