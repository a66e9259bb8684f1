"""Processes of tier ``reduced``, which has no pid namespace: find the run's own, signal them, end them all."""

from __future__ import annotations

import errno
import os
import time

from agent_reach.linux import pidfd
from agent_reach.linux._syscalls import machine
from agent_reach.linux.abi import table
from agent_reach.linux.seccomp import notify

_SIGKILL = 9
_FORKS = ("clone", "fork", "vfork")
_SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
_THREAD_SIGNALS = ("tgkill", "rt_tgsigqueueinfo")
_MOST_SIGNAL = 64
_ROUNDS = 200
_PAUSE = 0.01


class Processes:
    """The descendants of the supervisor, which is their reaper."""

    def __init__(self) -> None:
        numbers = table(machine())
        self._names = {numbers[name]: name for name in (*_FORKS, *_SIGNALS) if name in numbers}

    def calls(self) -> tuple[int, ...]:
        """Return the numbers of the calls that `handle` answers."""
        return tuple(self._names)

    def handle(self, listener: int, call: notify.Notification) -> None:
        """Answer a fork or a signal.

        Forks are notified so that none happens once the run is ending: then nobody answers any more.
        """
        name = self._names[call.nr]
        if name in _FORKS or (name in _SIGNALS and self._own(call, name)):
            # Decided on registers, and on ids that cannot pass on while the caller waits: its own. Here, and
            # nowhere else, it is safe to let the kernel go on.
            notify.continue_call(listener, call.id)
        else:
            notify.respond(listener, call.id, error=self._signal(listener, call, name))

    def _own(self, call: notify.Notification, name: str) -> bool:
        """Say whether a signal is for the caller's own process, which needs nobody's permission."""
        target = _signed(call.args[0])
        if name == "tkill":  # one word for a thread of ours and for a stranger's process
            return target == call.pid
        return name != "pidfd_send_signal" and target > 0 and target == _process_of(call.pid)

    def _signal(self, listener: int, call: notify.Notification, name: str) -> int:
        """Send a signal on the caller's behalf to processes of the run only; return the errno."""
        if name not in {"kill", "tgkill"}:
            # The others carry more than numbers, or name a thread whose process cannot be told for certain.
            return errno.EPERM
        target, number = _signed(call.args[0]), call.args[2 if name in _THREAD_SIGNALS else 1] & 0xFFFF_FFFF
        if number > _MOST_SIGNAL:
            return errno.EINVAL
        process = _process_of(call.pid)
        group = _group(process)
        if not process or not notify.valid(listener, call.id):
            return errno.ESRCH
        mine = descendants()
        if target > 0:
            chosen = [pid for pid in mine if pid == target]
        elif target == -1:
            chosen = [pid for pid in mine if pid != process]
        else:
            chosen = [pid for pid in mine if _group(pid) == (-target or group)]
        if chosen:
            return _send(chosen, number)
        return errno.EPERM if target > 0 and os.path.exists(f"/proc/{target}") else errno.ESRCH

    def end_all(self) -> bool:
        """Kill every descendant until none is left; return whether that was reached."""
        for _ in range(_ROUNDS):
            left = descendants()
            if not left:
                return True
            _send(left, _SIGKILL)
            _reap()
            time.sleep(_PAUSE)
        return False


def descendants() -> list[int]:
    """List the pids of everything that comes from this process, orphans included: it is their reaper."""
    found, pending = [], [os.getpid()]
    while pending:
        for child in _children(pending.pop()):
            found.append(child)
            pending.append(child)
    return found


def _reap() -> None:
    """Reap every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return


def _send(pids: list[int], number: int) -> int:
    """Send a signal to each descendant; return 0 when one of them got it, else the errno of the last."""
    held = []
    for pid in pids:
        try:
            held.append((pid, pidfd.open(pid)))
        except OSError:
            continue
    # Between listing and opening a number may have passed to a stranger; what is open now and still listed is ours.
    mine = frozenset(descendants())
    error = errno.ESRCH
    for pid, descriptor in held:
        try:
            if pid in mine and pidfd.send_signal(descriptor, number):
                error = 0
        except OSError as raised:
            error = error and (raised.errno or errno.EPERM)
        finally:
            os.close(descriptor)
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


def _process_of(thread: int) -> int:
    """Return the process of a thread, 0 when it is gone."""
    try:
        return pidfd.process_of(thread)
    except OSError:
        return 0
