"""Pid 1 of the sandbox: builds the inside, starts the worker, reaps, and reports how the worker ended."""

from __future__ import annotations

import os

from agent_reach._util.record import Record
from agent_reach.linux import caps, mounts, namespaces, netlink
from agent_reach.sandbox import descriptors, filesystem, worker
from agent_reach.sandbox.channel import Steps
from agent_reach.sandbox.terminal import Terminal, open_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.plan.model import SandboxPlan
    from agent_reach.sandbox.channel import Channel
    from agent_reach.sandbox.lock import Lock
    from agent_reach.sandbox.sources import Sources

_STUB = "127.0.0.53"
_STUB_PORT = 53
REPORT_BYTES = 20
_SIGKILL = 9
# Fake addresses of allowed and refused names; a whole range of the network namespace's own.
FAKE_RANGES = ((bytes((198, 18, 0, 0)), 15), (bytes((0xFD, 0x19, 0x80)) + bytes(13), 64))


class InitEnds(Record):
    """Descriptors that init starts with.

    Args:
        gate: read end; one byte when the ids are mapped and the supervisor is alive.
        status: write end for the worker's end.
        stdio: descriptors for 0, 1, 2 of the worker; -1 where a terminal of our own is to be used.
        values: read end for environment and staged files.
    """

    gate: int
    status: int
    stdio: tuple[int, int, int]
    values: int


def run(  # noqa: PLR0917 - what one process starts with
    plan: SandboxPlan, lock: Lock, ends: InitEnds, setup: Channel, sources: Sources | None, switch_ids: bool
) -> None:
    """Be init; never returns.

    Args:
        plan: what to build.
        lock: for the worker.
        ends: inherited descriptors.
        setup: where steps and descriptors are reported.
        sources: trees opened by root, or None to open them here.
        switch_ids: take the mapped ids first (root started the run).
    """
    steps = Steps(setup)
    try:
        built = _build(plan, ends, steps, sources, switch_ids)
        stub = _start_network(steps)
        steps.at("open terminal")
        terminal = open_terminal() if -1 in ends.stdio else Terminal()
        steps.at("start worker")
        started_read, started_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(started_write)
            worker.run(plan, lock, ends, setup, built=built, stub=stub, terminal=terminal, started=started_read)
            os._exit(125)
        caps.no_new_privileges()
        caps.drop_all()
        os.write(started_write, b"s")
        # Init holds nothing but the pipe on which it reports: whoever got into it would find no door.
        descriptors.close_all_but((ends.status,))
    except BaseException as error:  # noqa: BLE001 - whatever it is, nothing may run
        steps.fail(error)
    _reap(pid, ends.status)


def _build(
    plan: SandboxPlan, ends: InitEnds, steps: Steps, sources: Sources | None, switch_ids: bool
) -> filesystem.Built:
    """Take our ids, tie our life to the supervisor's, and build the file system."""
    from agent_reach.sandbox.sources import open_sources

    steps.at("wait for id maps")
    if not os.read(ends.gate, 1):
        os._exit(125)
    if switch_ids:
        steps.at("take the mapped ids")
        os.setresgid(plan.inner_gid, plan.inner_gid, plan.inner_gid)
        os.setresuid(plan.inner_uid, plan.inner_uid, plan.inner_uid)
    steps.at("tie to supervisor")
    caps.die_with_parent()
    # The second byte comes after PDEATHSIG is armed: a supervisor that died in between would go unnoticed.
    if not os.read(ends.gate, 1):
        os._exit(125)
    caps.set_dumpable(value=False)
    os.setsid()
    steps.at("stop mount propagation")
    mounts.stop_propagation()
    steps.at("open sources")
    opened = sources if sources is not None else open_sources(plan, None, None)
    built = filesystem.build_root(plan, opened, steps)
    steps.at("set hostname")
    namespaces.set_hostname(plan.hostname)
    return built


def _start_network(steps: Steps) -> tuple[int, int]:
    """Bring the loopback up and bind the resolver's sockets inside the new network namespace."""
    import _socket

    steps.at("bring loopback up")
    netlink.bring_up(FAKE_RANGES)
    steps.at("bind resolver")
    datagram = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC)
    datagram.bind((_STUB, _STUB_PORT))
    stream = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    stream.bind((_STUB, _STUB_PORT))
    stream.listen(16)
    return datagram.detach(), stream.detach()


def _reap(worker_pid: int, status: int) -> None:
    """Reap until the worker ends, kill and reap everything else, and only then report and end.

    The report means that nothing runs inside any more: what the launcher does next, such as looking through
    writable grants, races with nobody. A worker that stops (Ctrl-Z in its terminal) is reported too: the launcher
    then stops like any job of a shell.
    """
    ended, cpu, rss = 0, 0.0, 0
    over = False
    while True:
        try:
            pid, how, usage = os.wait4(-1, 0 if over else os.WUNTRACED)
        except InterruptedError:
            continue
        except ChildProcessError:
            # Orphans become our children, so no child means no process in the namespace.
            os.write(status, report(ended, cpu, rss))
            os._exit(0)
        cpu += usage.ru_utime + usage.ru_stime
        rss = max(rss, usage.ru_maxrss)
        if pid == worker_pid and os.WIFSTOPPED(how):
            os.write(status, report(how, cpu, rss))
        elif pid == worker_pid:
            ended, over = how, True
        if over:
            _kill_all()


def _kill_all() -> None:
    """Kill every process of the pid namespace but ourselves; a fork with a signal pending fails (fork(2))."""
    try:
        os.kill(-1, _SIGKILL)
    except ProcessLookupError:
        return


def report(ended: int, cpu: float, rss: int) -> bytes:
    """Write how the worker ended, for `read_report`: wait status, processor time in us, resident set in KiB."""
    return ended.to_bytes(4, "little") + int(cpu * 1e6).to_bytes(8, "little") + rss.to_bytes(8, "little")


def read_report(data: bytes) -> tuple[int, float, int]:
    """Read wait status, seconds of processor time and bytes of the largest resident set.

    Raises:
        ValueError: the report is cut short.
    """
    if len(data) != REPORT_BYTES:
        raise ValueError(f"a report takes {REPORT_BYTES} bytes, not {len(data)}")
    number = int.from_bytes
    return number(data[:4], "little"), number(data[4:12], "little") / 1e6, number(data[12:], "little") * 1024
