"""Processes of tier ``reduced``, which has no pid namespace: find the run's own, signal them, end them all."""

from __future__ import annotations

import errno
import os
import time

from agent_reach.linux import pidfd
from agent_reach.linux._syscalls import machine
from agent_reach.linux.abi import table
from agent_reach.linux.seccomp import notify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.egress.call import Call

_SIGKILL = 9
_FORKS = ("clone", "fork", "vfork")
_SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
_ROUNDS = 200
_PAUSE = 0.01


class Processes:
    """The descendants of the supervisor, which is their reaper.

    Args:
        root: pid of the worker.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._ending = False
        numbers = table(machine())
        self._names = {numbers[name]: name for name in (*_FORKS, *_SIGNALS) if name in numbers}

    def calls(self) -> tuple[int, ...]:
        """Return the numbers of the calls that `handle` answers."""
        return tuple(self._names)

    def handle(self, listener: int, call: notify.Notification | Call) -> None:
        """Answer a fork or a signal."""
        name = self._names[call.nr]
        if name in _FORKS:
            # A decision on nothing but our own state: letting the kernel go on is safe here.
            if self._ending:
                notify.respond(listener, call.id, error=errno.EAGAIN)
            else:
                notify.continue_call(listener, call.id)
            return
        notify.respond(listener, call.id, error=self._signal(listener, call, name))

    def _signal(self, listener: int, call: notify.Notification | Call, name: str) -> int:
        """Send a signal on the caller's behalf to processes of the run only; return the errno."""
        tid = call.pid if isinstance(call, notify.Notification) else call.tid
        if name == "pidfd_send_signal":
            return errno.EPERM
        target, number = _signed(call.args[0]), call.args[1] & 0xFFFF_FFFF
        if name in {"tgkill", "rt_tgsigqueueinfo"}:
            number = call.args[2] & 0xFFFF_FFFF
        if not notify.valid(listener, call.id):
            return errno.ESRCH
        mine = self.descendants()
        if target > 0:
            chosen = [target] if target in mine or (name == "tkill" and _leader(target) in mine) else []
        elif target == -1:
            chosen = [pid for pid in mine if pid != tid]
        else:
            group = -target if target else _group(tid)
            chosen = [pid for pid in mine if _group(pid) == group]
        if not chosen:
            return errno.EPERM if target > 0 and os.path.exists(f"/proc/{target}") else errno.ESRCH
        return _send(chosen, number)

    def descendants(self) -> list[int]:
        """List the pids of the worker and everything that comes from it, orphans included."""
        found, pending = [], [os.getpid()]
        while pending:
            for child in _children(pending.pop()):
                found.append(child)
                pending.append(child)
        return found

    def end_all(self) -> bool:
        """Kill every descendant until none is left; return whether that was reached."""
        self._ending = True
        for _ in range(_ROUNDS):
            left = self.descendants()
            if not left:
                return True
            for pid in left:
                try:
                    descriptor = pidfd.open(pid)
                except OSError:
                    continue
                try:
                    # Between listing and opening the number may have passed to a stranger.
                    if pid in self.descendants():
                        pidfd.send_signal(descriptor, _SIGKILL)
                except OSError:
                    continue
                finally:
                    os.close(descriptor)
            _reap()
            time.sleep(_PAUSE)
        return False


def _reap() -> None:
    """Reap every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return


def _send(pids: list[int], number: int) -> int:
    """Send a signal to each; return 0 when one of them got it."""
    error = errno.ESRCH
    for pid in pids:
        try:
            os.kill(pid, number)
            error = 0
        except OSError as raised:
            error = error and (raised.errno or errno.EPERM)
    return error


def _signed(value: int) -> int:
    """Take a register as the C int that the kernel takes it for."""
    low = value & 0xFFFF_FFFF
    return low - (1 << 32) if low >> 31 else low


def _children(pid: int) -> list[int]:
    """List the children of every thread of a process."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as stream:
                found += [int(word) for word in stream.read().split()]
    except OSError:
        return found
    return found


def _group(pid: int) -> int:
    """Return the process group, 0 when the process is gone."""
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def _leader(tid: int) -> int:
    """Return the process of a thread."""
    try:
        with open(f"/proc/{tid}/status", encoding="ascii", errors="replace") as stream:
            return next((int(line.split()[1]) for line in stream if line.startswith("Tgid:")), 0)
    except OSError:
        return 0
