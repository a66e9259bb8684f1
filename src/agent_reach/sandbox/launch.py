"""The launcher's side of a run: start the supervisor, deliver values, relay, wait."""

from __future__ import annotations

import os
import select
import time

from agent_reach._util.record import Record
from agent_reach.errors import ReachInternalError, SetupError, Unavailable
from agent_reach.linux import namespaces
from agent_reach.sandbox import channel, limits, stdio, supervisor
from agent_reach.sandbox.lock import make_lock
from agent_reach.sandbox.values import ValuesWriter, send_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_reach.linux.cgroups import Group
    from agent_reach.plan.model import SandboxPlan
    from agent_reach.sandbox.channel import Channel
    from agent_reach.sandbox.slots import Slot

    Report = Callable[[dict[str, str]], None]

_POLLIN = 1
_DRAIN_MILLISECONDS = 200
GROUP_PREFIX = "reach-"


class Assembled(Record):
    """What the providers brought: the environment's values, and the content of staged files by number and name."""

    environment: Mapping[str, str]
    staged: Mapping[int, bytes] = {}


class Ended(Record):
    """How a run ended.

    Args:
        status: wait status of the worker, None when it was lost with everything else.
        cause: ``wall``, ``memory``, ``denied`` … when reach ended it, else empty.
        cpu: seconds.
        max_rss: bytes.
        output: bytes.
        wall: seconds since user code started.
        memory_peak: bytes of the whole tree, 0 when nobody counted.
        held: limit name to the mechanism that held it for the whole tree.
        notes: what the receipt must say besides.
    """

    status: int | None
    cause: str
    cpu: float = 0.0
    max_rss: int = 0
    output: int = 0
    wall: float = 0.0
    memory_peak: int = 0
    held: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()


class _Doors(Record):
    """What the caller of `run` wants to be called for."""

    assemble: Callable[[], Assembled]
    report: Report
    idle: Callable[[], None]


class Settings(Record):
    """What the launcher needs besides the plan.

    Args:
        name: name of the run, for its control group.
        slot_file: where uid slots are held when root starts the run.
        filter_cache: private directory of compiled filters, or empty.
        guard_files: files of the guard (``reduced``; in ``full`` they are part of the plan's mounts).
    """

    name: str
    slot_file: str
    filter_cache: str = ""
    guard_files: tuple[tuple[str, bytes], ...] = ()


def run(
    plan: SandboxPlan,
    settings: Settings,
    assemble: Callable[[], Assembled],
    report: Report,
    idle: Callable[[], None] = lambda: None,
) -> Ended:
    """Apply a plan and wait for its end.

    Args:
        plan: what to apply.
        settings: names and places.
        assemble: called while the sandbox is being built; may raise, and then nothing runs.
        report: gets each event (``denial``, ``connection``) as fields.
        idle: called once while the program starts.

    Raises:
        SetupError: a step was refused.
        Unavailable: no uid slot, no user namespace, or a limit that must be enforced and cannot be.
        ProviderError: from `assemble`.
    """
    group = _make_group(plan, settings)
    try:
        held = _check_held(plan, group)
        doors = _Doors(assemble, report, idle)
        return _run_in(plan.replace(memory_cgroup="memory" in held), settings, doors, group, held)
    finally:
        if group is not None:
            from agent_reach.linux import cgroups

            cgroups.remove(group)
        if plan.private:
            from agent_reach.sandbox import private

            private.remove(plan.private)


def _make_group(plan: SandboxPlan, settings: Settings) -> Group | None:
    """Make a control group if a limit asks for one, and clear away those of runs that nobody is left to end."""
    wanted = limits.by_control_group(plan)
    if not wanted:
        return None
    from agent_reach.linux import cgroups

    name = GROUP_PREFIX + settings.name
    cgroups.collect(GROUP_PREFIX, len(name))
    return cgroups.create(name, wanted)


def _check_held(plan: SandboxPlan, group: Group | None) -> dict[str, str]:
    """Say what holds each limit, and refuse to run where the contract asks for more than best effort.

    Raises:
        Unavailable: a limit with `enforced` is best effort here.
    """
    uid = 1 if os.geteuid() == 0 and plan.tier == "full" else os.geteuid()
    held = limits.held_without(plan, uid)
    if group is not None:
        from agent_reach.linux import cgroups

        held |= cgroups.held(group)
    for limit in plan.limits:
        if limit.enforced and limit.name not in held:
            raise Unavailable(
                f"an enforced `limits.{limit.name}`",
                needed=f"{limit.origin.file}:{limit.origin.line} says `enforced: true`",
                found="no control group that this user may write to: the limit would be best effort",
                fix="systemd-run --user --scope -p Delegate=yes reach run …, or drop `enforced`",
            )
    return held


def _run_in(plan: SandboxPlan, settings: Settings, doors: _Doors, group: Group | None, held: dict[str, str]) -> Ended:
    """Start the supervisor and see the run to its end."""
    slot, start, wires, values_write = _start(plan, settings, group, held)
    ours, theirs = channel.pair()
    pid = os.fork()
    if pid == 0:
        supervisor.run(start, theirs)
    theirs.close()
    os.close(start.values)
    wires.close_inner()
    for tree in start.sources.trees.values() if start.sources else ():
        os.close(tree)
    run_ = _Run(ours, pid, wires, doors.report, ValuesWriter(values_write))
    try:
        if start.ask:
            run_.on_started(plan, slot, group)
        run_.deliver(doors.assemble)
        doors.idle()
        ended = run_.wait()
    finally:
        run_.close()
        if slot is not None:
            os.close(slot.lock)
        if start.private >= 0:
            os.close(start.private)
    return _with_group(ended.replace(held=held), group)


def _start(
    plan: SandboxPlan, settings: Settings, group: Group | None, held: dict[str, str]
) -> tuple[Slot | None, supervisor.Start, stdio.Wires, int]:
    """Open everything that the supervisor starts with."""
    lock = make_lock(plan, settings.filter_cache)
    slot = sources = None
    if os.geteuid() == 0 and plan.tier == "full":
        from agent_reach.sandbox import slots
        from agent_reach.sandbox.sources import open_sources

        slot = slots.take(settings.slot_file)
        sources = open_sources(plan, slot.run_uid, slot.run_uid)
    private_directory = -1
    if plan.private:
        from agent_reach.sandbox import private

        private.collect(plan.private)
        private_directory = private.make(plan, settings.guard_files)
    wires = stdio.open_stdio(bound=_output_bound(plan), owner=slot.run_uid if slot else None)
    values_read, values_write = os.pipe()
    start = supervisor.Start(
        plan=plan,
        lock=lock,
        stdio=wires.inner,
        values=values_read,
        kept=(
            *((slot.lock,) if slot else ()),
            *((private_directory,) if private_directory >= 0 else ()),
            *(group.locks if group else ()),
        ),
        group=group,
        sources=sources,
        supervisor_uid=slot.supervisor_uid if slot else None,
        run_uid=slot.run_uid if slot else None,
        private=private_directory,
        ask=slot is not None or group is not None,
        watched=tuple((limit.name, limit.value) for limit in plan.limits if limit.name not in held),
    )
    return slot, start, wires, values_write


def _output_bound(plan: SandboxPlan) -> int | None:
    """Return the limit of the output in bytes."""
    return next((int(limit.value) for limit in plan.limits if limit.name == "output"), None)


def _with_group(ended: Ended, group: Group | None) -> Ended:
    """Add what the control group counted."""
    if group is None:
        return ended
    from agent_reach.linux import cgroups

    killed = not ended.cause and cgroups.killed_by_memory(group)
    return ended.replace(
        memory_peak=cgroups.memory_peak(group) or ended.memory_peak, cause="memory" if killed else ended.cause
    )


class _Run:
    """A started sandbox, seen by the launcher."""

    def __init__(self, control: Channel, pid: int, wires: stdio.Wires, report: Report, values: ValuesWriter) -> None:
        self._control = control
        self._pid = pid
        self._wires = wires
        self._report = report
        self._values = values
        self._ended: dict[str, str] | None = None
        self._failure: dict[str, str] | None = None
        self._ready_at = 0.0
        self._notes: list[str] = []

    def on_started(self, plan: SandboxPlan, slot: Slot | None, group: Group | None) -> None:
        """Map the run's uid, which only root may, and move init into its control group before it forks."""
        message = self._control.receive()
        if message is None or message[0].get("kind") != "started":
            self._fail(message[0] if message else None)
            return
        pid = int(message[0]["pid"])
        if slot is not None:
            namespaces.write_map(
                pid,
                inner_uid=plan.inner_uid,
                outer_uid=slot.run_uid,
                inner_gid=plan.inner_gid,
                outer_gid=slot.run_uid,
            )
        if group is not None:
            from agent_reach.linux import cgroups

            cgroups.add(group, pid)
        self._control.send({"kind": "go"})

    def deliver(self, assemble: Callable[[], Assembled]) -> None:
        """Resolve what the contract grants and send it to the worker."""
        assembled = assemble()
        try:
            send_all(self._values, assembled.environment, assembled.staged)
        except BrokenPipeError:  # the worker failed before: its report is on the control channel
            self._values.abandon()

    def wait(self) -> Ended:
        """Relay and wait until the program has ended and its output with it."""
        poll = select.poll()
        poll.register(self._control.fileno(), _POLLIN)
        self._wires.attach(poll, self._control)
        control_open = True
        while control_open and not (self._ended and self._wires.all_ended):
            for descriptor, _ in poll.poll():
                if descriptor == self._control.fileno():
                    control_open = self._on_control()
                else:
                    self._wires.handle(descriptor)
        self._wires.drain(poll, _DRAIN_MILLISECONDS)
        if self._failure is not None:
            self._fail(self._failure)
        return self._outcome()

    def _on_control(self) -> bool:
        """Handle a message of the supervisor; False when there will be no more."""
        message = self._control.receive()
        if message is None:
            return False
        fields, received = message
        kind = fields.get("kind")
        if kind == "ready":
            self._ready_at = time.monotonic()
        elif kind == "ended":
            self._ended = fields
        elif kind in {"failed", "internal"}:
            self._failure = self._failure or fields
        elif kind == "terminal":
            self._wires.take_terminal(received[0])
        elif kind == "stopped":
            self._wires.stop_with_program()
        elif kind == "note":
            self._notes.append(fields["text"])
        else:
            self._report(fields)
        return True

    def _outcome(self) -> Ended:
        """Put together how it ended."""
        wall = time.monotonic() - self._ready_at if self._ready_at else 0.0
        ended = self._ended
        if ended is None:
            return Ended(None, "lost", output=self._wires.count, wall=wall)
        status = int(ended["status"]) if ended["status"] else None
        return Ended(
            status=status,
            cause=self._wires.cause or ended["cause"] or ("" if status is not None else "lost"),
            cpu=float(ended["cpu"]),
            max_rss=int(ended["rss"]),
            output=self._wires.count,
            wall=wall,
            memory_peak=int(ended["peak"]),
            notes=tuple(self._notes),
        )

    def _fail(self, fields: dict[str, str] | None) -> None:
        """Raise what a message of failure stands for."""
        if fields is None:
            raise ReachInternalError("the supervisor ended before the sandbox was set up")
        if fields.get("kind") == "internal":
            raise ReachInternalError(f"supervisor: {fields.get('detail', '')}")
        error: SetupError | Unavailable = channel.failure(fields)
        if fields.get("step") == "create namespaces":
            error = Unavailable(
                "user namespaces", needed="tier full", found=str(error), fix="run `reach doctor` for the fix"
            )
        raise error

    def close(self) -> None:
        """Let go of everything; the supervisor kills the sandbox when the control channel closes."""
        self._values.abandon()
        self._control.close()
        self._wires.close()
        # A supervisor that has told the end only waits for the kernel to take the namespaces apart.
        os.waitpid(self._pid, os.WNOHANG if self._ended else 0)
