"""The supervisor: makes the namespaces, answers the sandbox's calls, holds the deadline, kills, cleans up."""

from __future__ import annotations

import os
import select
import time

import agent_reach
from agent_reach._util.record import Record
from agent_reach.linux import caps, namespaces, pidfd
from agent_reach.linux.seccomp import notify
from agent_reach.sandbox import channel, descriptors, init, selftest, worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.linux.cgroups import Group
    from agent_reach.plan.model import SandboxPlan
    from agent_reach.sandbox.channel import Channel
    from agent_reach.sandbox.lock import Lock
    from agent_reach.sandbox.metadata import Metadata
    from agent_reach.sandbox.network import Network
    from agent_reach.sandbox.processes import Processes
    from agent_reach.sandbox.sources import Sources
    from agent_reach.sandbox.watchdog import Watchdog

_SIGKILL = 9
_SIGTERM = 15
_JOB_CONTROL = (18, 19)  # SIGCONT, SIGSTOP
_POLL_IN = select.POLLIN
_DEFAULT_GRACE = 1.5
_MILLISECONDS = 1000


class Start(Record):
    """What one supervisor starts with.

    Args:
        plan: what to apply.
        lock: what the worker puts on itself.
        stdio: the worker's 0, 1 and 2; -1 where it opens a terminal.
        values: read end of the pipe of values.
        kept: descriptors that hold locks for as long as we live.
        sources: trees opened by root, or None.
        supervisor_uid: uid and gid to take when root starts the run, or None.
        run_uid: uid and gid of the sandbox on the host when root starts the run, or None.
        private: descriptor of the private directory (``reduced``), or -1.
        ask: tell the launcher init's pid and wait for its answer: it maps ids, or moves it into a control group.
        watched: limits that no control group holds.
        group: the run's control group, which the launcher removes, or None.
    """

    plan: SandboxPlan
    lock: Lock
    stdio: tuple[int, int, int]
    values: int
    kept: tuple[int, ...] = ()
    sources: Sources | None = None
    supervisor_uid: int | None = None
    run_uid: int | None = None
    private: int = -1
    ask: bool = False
    watched: tuple[tuple[str, float], ...] = ()
    group: Group | None = None


def run(start: Start, control: Channel) -> None:
    """Be the supervisor; never returns.

    Args:
        start: what to begin with.
        control: channel to the launcher.
    """
    code = 125
    try:
        _let_go_of_stdio()
        Supervisor(start, control).serve()
        code = 0
    except Exception as error:  # noqa: BLE001 - reported as our fault, and the sandbox ends with us
        control.send({"kind": "internal", "detail": f"{type(error).__name__}: {error}"[:500]})
    finally:
        os._exit(code)


def importable_by_others() -> bool:
    """Say whether any uid may read our package and the standard library; a private Python lies under root's home."""
    for module in (agent_reach, os):
        path = os.path.dirname(os.path.abspath(module.__file__ or "/"))
        while path != "/":
            if not os.stat(path).st_mode & 0o001:
                return False
            path = os.path.dirname(path)
    return True


def _let_go_of_stdio() -> None:
    """Hold nothing of the caller's: neither its output, which must end with the program, nor its terminal."""
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for number in range(3):
        os.dup2(null, number)
    os.close(null)


class Supervisor:
    """One run, seen from outside.

    Args:
        start: what to begin with.
        control: channel to the launcher.
    """

    def __init__(self, start: Start, control: Channel) -> None:
        self._start = start
        self._plan = start.plan
        self._control = control
        self._limits = {limit.name: limit.value for limit in start.plan.limits}
        self._poll = select.poll()
        self._network: Network | None = None
        self._processes: Processes | None = None
        self._metadata: Metadata | None = None
        self._watchdog: Watchdog | None = None
        self._listener = -1
        self._handed: tuple[int, ...] = ()
        self._worker = 0
        self._root = 0
        self._status = -1
        self._deadline: float | None = None
        self._cause = ""
        self._told = False
        self._status_open = False
        self._setup_open = False
        self._alone = False

    def serve(self) -> None:
        """Start the sandbox and stay until it has ended."""
        setup, gate = self._begin()
        self._poll.register(self._control.fileno(), _POLL_IN)
        self._poll.register(setup.fileno(), _POLL_IN)
        watched = pidfd.open(self._root)
        self._poll.register(watched, _POLL_IN)
        if self._plan.tier == "full":
            self._poll.register(self._status, _POLL_IN)
            self._status_open = True
        self._setup_open = True
        while self._turn(setup, gate, watched):
            continue
        # Whoever could send more has ended: what is in the channel is all, and a failure may be the last of it.
        while self._setup_open and not self._alone:
            self._setup_open = self._on_setup(setup, gate)
        self._finish()

    def _turn(self, setup: Channel, gate: int, watched: int) -> bool:
        """Wait for something and handle it; False when the sandbox, or the launcher, has ended."""
        self._watch_listener()
        ready = [number for number, _ in self._poll.poll(self._timeout())]
        self._check_limits()
        # The reason why nothing ran was sent before the end that the status tells; poll looks at them one by one.
        while self._setup_open and setup.waiting():
            self._setup_open = self._on_setup(setup, gate)
        if self._status in ready:
            self._on_status()
        if self._control.fileno() in ready and not self._on_control():
            if not self._told:
                self._kill()
                self._alone = True
            return False
        if self._listener in ready and not self._told:
            self._on_listener()
        if self._network is not None:
            self._network.handle()
        return watched not in ready

    # -- start ---------------------------------------------------------------------------------------------

    def _begin(self) -> tuple[Channel, int]:
        """Fork the sandbox, have its ids mapped and its control group set, and let it go."""
        caps.adopt_orphans()
        uid = self._start.supervisor_uid
        if uid is not None:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            # The effective uid owns the user namespace that comes now, and with it every right over it.
            os.setresuid(0, uid, 0)
        ours, theirs = channel.pair()
        gate_read, gate_write = os.pipe()
        status_read, status_write = os.pipe()
        full = self._plan.tier == "full"
        try:
            self._root = namespaces.fork_into() if full else os.fork()
        except OSError as error:
            self._control.send({"kind": "failed", "step": "create namespaces", "errno": str(error.errno), "detail": ""})
            os._exit(0)
        if self._root == 0:
            self._be_inside(theirs, gate_read, status_write, full=full)
        self._status = status_read
        descriptors.close_all_but(
            (self._control.fileno(), ours.fileno(), gate_write, status_read, *self._start.kept), first=3
        )
        self._map_and_group(full=full)
        os.write(gate_write, b"ma")
        if uid is not None:
            self._leave_root(uid, self._start.run_uid or uid)
        return ours, gate_write

    def _leave_root(self, uid: int, run_uid: int) -> None:
        """Import what we may need while root's own files can still be read, then give root up for good.

        Init builds the inside meanwhile; no user code runs before the worker has had an answer from us.
        """
        os.setresuid(0, 0, 0)
        if not importable_by_others():
            from agent_reach.sandbox import network, watchdog

            network.preload()
            watchdog.preload()
        # The saved uid lets a thread look at the run's private directories; it is no way back to root.
        os.setresuid(uid, uid, run_uid)
        # The change of ids made us undumpable, and our own /proc files root's.
        caps.set_dumpable(value=True)

    def _be_inside(self, setup: Channel, gate: int, status: int, *, full: bool) -> None:
        """Be init, or in tier ``reduced`` the worker; never returns."""
        start = self._start
        trees = tuple(start.sources.trees.values()) if start.sources else ()
        private = (start.private,) if start.private >= 0 else ()
        descriptors.close_all_but((gate, status, setup.fileno(), *start.stdio, start.values, *trees, *private), first=3)
        ends = init.InitEnds(gate, status, start.stdio, start.values)
        switch = start.supervisor_uid is not None
        if full:
            init.run(self._plan, start.lock, ends, setup, start.sources, switch_ids=switch)
        else:
            worker.run_without_init(self._plan, start.lock, ends, setup, scratch=start.private)
        os._exit(125)

    def _map_and_group(self, *, full: bool) -> None:
        """Map one id inside; other ids than our own can only be mapped by root, which the launcher still is."""
        plan = self._plan
        if full and self._start.supervisor_uid is None:
            namespaces.write_map(
                self._root,
                inner_uid=plan.inner_uid,
                outer_uid=os.getuid(),
                inner_gid=plan.inner_gid,
                outer_gid=os.getgid(),
            )
        if self._start.ask:
            self._control.send({"kind": "started", "pid": str(self._root)})
            if self._control.receive() is None:
                self._kill()
                self._clean_up()
                os._exit(0)

    # -- limits --------------------------------------------------------------------------------------------

    def _timeout(self) -> int | None:
        """Return milliseconds until the deadline, the watchdog or the network's next duty."""
        waits: list[float] = []
        if self._deadline is not None:
            waits.append(max(0.0, self._deadline - time.monotonic()))
        if self._watchdog is not None:
            waits.append(self._watchdog.due())
        if self._network is not None:
            waits += self._network.timeout()
        return int(min(waits) * _MILLISECONDS) + 1 if waits else None

    def _check_limits(self) -> None:
        """End the program at a limit: at the wall a request first, the kill when the grace is over."""
        if self._watchdog is not None:
            exceeded = self._watchdog.look()
            if exceeded:
                self._cause = exceeded
                self._kill()
        if self._deadline is None or time.monotonic() < self._deadline:
            return
        if self._cause == "wall":
            self._kill()
            self._deadline = None
            return
        self._cause = "wall"
        self._deadline = time.monotonic() + self._limits.get("grace", _DEFAULT_GRACE)
        self._signal(_SIGTERM)

    def _on_ready(self) -> None:
        """Start the clocks: user code begins now."""
        self._control.send({"kind": "ready"})
        if "wall" in self._limits:
            self._deadline = time.monotonic() + self._limits["wall"]
        watched = dict(self._start.watched)
        if "memory" in watched or "cpu_time" in watched:
            # Opens files of /proc only; imported here since most runs have no such limit.
            from agent_reach.sandbox.watchdog import Watchdog

            memory, cpu_time = watched.get("memory", 0), watched.get("cpu_time", 0)
            scratch = self._plan.tier == "full"
            self._watchdog = Watchdog(self._root, memory=memory, cpu_time=cpu_time, scratch=scratch)

    def _watch_listener(self) -> None:
        """Take further calls only while there is room for them: what waits in the kernel costs us nothing."""
        if self._network is None:
            return
        self._poll.register(self._listener, _POLL_IN if self._network.has_room() else 0)

    # -- messages ------------------------------------------------------------------------------------------

    def _on_setup(self, setup: Channel, gate: int) -> bool:
        """Handle a message of init or the worker; return False when the channel is closed."""
        message = setup.receive()
        if message is None:
            self._poll.unregister(setup.fileno())
            setup.close()
            os.close(gate)
            return False
        fields, received = message
        kind = fields.get("kind")
        if kind == "failed":
            self._control.send(fields)
            self._kill()
        elif kind == "listener":
            self._take_listener(fields, received)
        elif kind == "ready":
            self._on_ready()
        return True

    def _take_listener(self, fields: dict[str, str], received: tuple[int, ...]) -> None:
        """Start to answer the sandbox's calls."""
        self._listener, *rest = received
        if fields.get("terminal") == "1":
            master = rest.pop()
            self._control.send({"kind": "terminal"}, (master,))
            os.close(master)
        self._handed = (int(fields["device"]), *rest)
        self._poll.register(self._listener, _POLL_IN)
        if self._plan.tier != "full":
            from agent_reach.sandbox.metadata import Metadata
            from agent_reach.sandbox.processes import Processes

            self._processes, self._metadata = Processes(), Metadata(self._plan.writable)

    def _on_control(self) -> bool:
        """Handle a message of the launcher; False when it is gone."""
        message = self._control.receive()
        if message is None:
            return False
        fields, _ = message
        if fields.get("kind") == "signal":
            self._signal(int(fields["number"]))
        elif fields.get("kind") == "kill":
            self._cause = fields.get("cause", "killed")
            self._kill()
        return True

    def _on_listener(self) -> None:
        """Answer a call; the first ones are the worker's proof that somebody listens."""
        call = notify.receive(self._listener)
        if call is None:
            return
        if self._processes is not None and call.nr in self._processes.calls():
            self._processes.handle(self._listener, call)
        elif self._metadata is not None and call.nr in self._metadata.calls():
            self._metadata.handle(self._listener, call)
        elif call.args[0] & 0xFFFF_FFFF == 0xFFFF_FFFF:
            self._worker = self._worker or call.pid
            notify.respond(self._listener, call.id, error=selftest.ANSWER)
        else:
            self._on_network(call)

    def _on_network(self, call: notify.Notification) -> None:
        """Hand a call to the network half, which only a program that connects makes us import."""
        if self._network is None:
            from agent_reach.sandbox.network import Network

            self._network = Network(self._plan, self._listener, self._handed, self._report, self._start.run_uid)
            for descriptor in self._network.descriptors():
                self._poll.register(descriptor, _POLL_IN)
        self._network.take(call)

    def _report(self, fields: dict[str, str]) -> None:
        """Pass an event to the launcher, which shows and records it."""
        if self._control.send(fields) and fields["kind"] == "denial" and self._plan.on_denial != "continue":
            self._cause = "denied"
            if self._plan.on_denial == "kill":
                self._kill()

    def _on_status(self) -> bool:
        """Read how the worker ended, or that it stopped; False when init has nothing more to say."""
        answer = os.read(self._status, init.REPORT_BYTES)
        if not answer:
            if self._status_open:
                self._poll.unregister(self._status)
                self._status_open = False
            return False
        status, cpu, rss = init.read_report(answer)
        if os.WIFSTOPPED(status):
            self._control.send({"kind": "stopped"})
        else:
            # Nothing runs inside any more, init is on its way out: the launcher need not wait for the kernel to take
            # the namespaces apart.
            self._tell_end(str(status), cpu, rss)
        return True

    # -- end -----------------------------------------------------------------------------------------------

    def _signal(self, number: int) -> None:
        """Send a signal to the worker, if it is there."""
        if self._worker:
            # The worker leads its process group: a stopped job goes on as a whole.
            target = -self._worker if number in _JOB_CONTROL else self._worker
            try:
                os.kill(target, number)
            except (ProcessLookupError, PermissionError):
                return

    def _kill(self) -> None:
        """Kill everything inside: the end of a pid namespace's init takes all with it."""
        try:
            os.kill(self._root, _SIGKILL)
        except ProcessLookupError:
            return

    def _finish(self) -> None:
        """Reap, and tell the launcher how the worker ended."""
        _, ended, usage = os.wait4(self._root, 0)
        cpu, rss = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        if self._plan.tier == "full":
            # Init has ended only after everything else inside has: the kernel waits for all of its namespace.
            while not self._told and self._on_status():
                continue
            if not self._told:
                self._tell_end("", cpu, rss)
        else:
            if self._processes is not None and not self._processes.end_all():
                self._report_survivors()
            self._tell_end(str(ended), cpu, rss)
        if self._alone:
            self._clean_up()

    def _tell_end(self, status: str, cpu: float, rss: int) -> None:
        """Tell the launcher how the worker ended; an empty status means that it was killed with init."""
        self._told = True
        if self._network is not None:
            self._network.close()
            self._network = None
        self._control.send(
            {
                "kind": "ended",
                "status": status,
                "cause": self._cause,
                "cpu": f"{cpu:.6f}",
                "rss": str(rss),
                "peak": str(self._watchdog.peak if self._watchdog else 0),
            }
        )

    def _clean_up(self) -> None:
        """Do what the launcher would have done; a root's control group is left to the next run, we are no root."""
        if self._plan.private:
            from agent_reach.sandbox import private

            private.remove(self._plan.private)
        if self._start.group is not None and self._start.supervisor_uid is None:
            from agent_reach.linux import cgroups

            cgroups.remove(self._start.group)

    def _report_survivors(self) -> None:
        """Say that something outlived the run: never silently weaker."""
        self._control.send({"kind": "note", "text": "processes of the run could not all be ended"})
