"""Best effort where no control group can be had: look at the tree from outside, ten times a second.

A program that is quicker than that gets past it; the receipt says `best effort`.
"""

from __future__ import annotations

import os
import time

PERIOD = 0.1
_TICKS = 100  # USER_HZ of both machines


def preload() -> None:
    """Do nothing: importing this module is all that it needs."""


class Watchdog:
    """Adds up memory and processor time of a process tree.

    Args:
        root: pid of its first process.
        memory: bytes, or 0.
        cpu_time: seconds, or 0.
        scratch: whether the tree has a private tmpfs, which is memory too.
    """

    def __init__(self, root: int, *, memory: float, cpu_time: float, scratch: bool) -> None:
        self._root = root
        self._memory = memory
        self._cpu_time = cpu_time
        self._has_scratch = scratch
        self._next = 0.0
        self.peak = 0

    def due(self) -> float:
        """Return seconds until the next look."""
        return max(0.0, self._next - time.monotonic())

    def look(self) -> str:
        """Return the name of the limit that is exceeded, or nothing."""
        if time.monotonic() < self._next:
            return ""
        self._next = time.monotonic() + PERIOD
        pids = _tree(self._root)
        if self._memory:
            held = sum(_anonymous(pid) for pid in pids) + (_scratch(self._root) if self._has_scratch else 0)
            self.peak = max(self.peak, held)
            if held > self._memory:
                return "memory"
        if self._cpu_time and sum(_cpu(pid) for pid in pids) > self._cpu_time:
            return "cpu_time"
        return ""


def _tree(root: int) -> list[int]:
    """List a process and its descendants."""
    found, pending = [root], [root]
    while pending:
        pid = pending.pop()
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as stream:
                    children = [int(word) for word in stream.read().split()]
                found += children
                pending += children
        except OSError:
            continue
    return found


def _anonymous(pid: int) -> int:
    """Return the bytes that a process holds for itself: resident less shared pages."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as stream:
            fields = stream.read().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def _scratch(root: int) -> int:
    """Return the bytes in the run's private tmpfs, which are memory too."""
    try:
        about = os.statvfs(f"/proc/{root}/root/tmp")
    except OSError:
        return 0
    return (about.f_blocks - about.f_bfree) * about.f_frsize


def _cpu(pid: int) -> float:
    """Return the processor time of a process and of the children it has reaped, in seconds."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11:15]) / _TICKS
