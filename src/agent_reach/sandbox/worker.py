"""Pid 2 of the sandbox: locks itself in step by step, proves it, and executes the user's program."""

from __future__ import annotations

import os

from agent_reach.linux import caps, landlock, rlimits
from agent_reach.linux.seccomp import notify
from agent_reach.sandbox import descriptors, filesystem, selftest, values
from agent_reach.sandbox.channel import Steps
from agent_reach.sandbox.terminal import Terminal, open_terminal, take_foreground

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.plan.model import SandboxPlan
    from agent_reach.sandbox.channel import Channel
    from agent_reach.sandbox.filesystem import Built
    from agent_reach.sandbox.init import InitEnds
    from agent_reach.sandbox.lock import Lock

_TERMINAL_RIGHTS = landlock.READ_FILE | landlock.WRITE_FILE


def run(
    plan: SandboxPlan,
    lock: Lock,
    ends: InitEnds,
    setup: Channel,
    *,
    built: Built | None,
    stub: tuple[int, ...],
    terminal: Terminal,
    started: int,
) -> None:
    """Be the worker; returns only when executing failed.

    Args:
        plan: what to run.
        lock: what to put on ourselves.
        ends: inherited descriptors.
        setup: where steps and descriptors are reported.
        built: the file system, None in tier ``reduced``.
        stub: sockets of the resolver to hand over.
        terminal: our own terminal, if the program gets one.
        started: read end of a pipe; init writes when it has locked itself.
    """
    steps = Steps(setup)
    try:
        steps.at("wait for init")
        if started >= 0 and not os.read(started, 1):
            os._exit(125)
        if stub:
            steps.at("hide the mount table")
            filesystem.hide_mountinfo()
        steps.at("open standard input and output")
        _open_stdio(ends.stdio, terminal)
        steps.at("receive values")
        environment = values.receive(ends.values, built.scratch if built else -1)
        if environment is None:
            os._exit(125)
        steps.at("enter working directory", plan.program.cwd)
        os.umask(plan.umask)
        os.chdir(plan.program.cwd)
        if terminal.master >= 0 and plan.tier != "full":
            lock = lock.replace(rules=(*lock.rules, (os.ttyname(ends.stdio.index(-1)), _TERMINAL_RIGHTS)))
        _lock_in(lock, setup, stub, built, terminal.master, steps)
        steps.at("execute", plan.program.executable)
        setup.send({"kind": "ready"})
        _execute(plan, environment)
    except BaseException as error:  # noqa: BLE001 - whatever it is, nothing may run
        steps.fail(error)


def run_without_init(plan: SandboxPlan, lock: Lock, ends: InitEnds, setup: Channel, *, scratch: int) -> None:
    """Be the worker of tier ``reduced``, a child of the supervisor; returns only when executing failed.

    Args:
        plan: what to run.
        lock: what to put on ourselves.
        ends: inherited descriptors.
        setup: where steps and descriptors are reported.
        scratch: descriptor of the private directory.
    """
    if os.read(ends.gate, 1) != b"m":
        os._exit(125)
    caps.die_with_parent()
    # The second byte comes after PDEATHSIG is armed: a supervisor that died in between would go unnoticed.
    os.setsid()
    terminal = open_terminal() if -1 in ends.stdio else Terminal()
    built = filesystem.Built(scratch, 0)
    run(plan, lock, ends, setup, built=built, stub=(), terminal=terminal, started=ends.gate)


def _open_stdio(stdio: tuple[int, int, int], terminal: Terminal) -> None:
    """Put pipes, or the terminal of our own, on 0, 1 and 2."""
    if terminal.slave >= 0 and os.getsid(0) != os.getpid():
        take_foreground(terminal)
    for number, descriptor in enumerate(stdio):
        os.dup2(terminal.slave if descriptor < 0 else descriptor, number, inheritable=True)


def _lock_in(  # noqa: PLR0917 - the steps share nothing else
    lock: Lock, setup: Channel, stub: tuple[int, ...], built: Built | None, master: int, steps: Steps
) -> None:
    """Take the last steps, in the order that `sandbox` explains."""
    steps.at("no new privileges")
    caps.no_new_privileges()
    steps.at("drop capabilities")
    caps.drop_all()
    steps.at("set resource limits")
    rlimits.set_limits(lock.limits)
    handed = [*stub, *([master] if master >= 0 else [])]
    steps.at("close descriptors")
    descriptors.close_all_but((setup.fileno(), *handed), first=3)
    if lock.version:
        steps.at("restrict with Landlock")
        landlock.restrict(lock.rules, version=lock.version, refuse_bind=lock.refuse_bind, scopes=True)
    steps.at("install seccomp filter")
    listener = notify.install(lock.program)
    fields = {"kind": "listener", "device": str(built.device if built else 0), "terminal": str(int(master >= 0))}
    setup.send(fields, (listener, *handed))
    os.close(listener)
    steps.at("prove the lock")
    selftest.prove(lock.version, full=bool(stub))
    descriptors.close_all_but((setup.fileno(),), first=3)


def _execute(plan: SandboxPlan, environment: dict[bytes, bytes]) -> None:
    """Replace this process, and with it every trace of the launcher's memory."""
    program = plan.program
    os.execve(program.executable, list(program.argv), environment)  # noqa: S606 - there is no shell  # type: ignore[arg-type]  # bytes are taken too
