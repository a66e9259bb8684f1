"""Unprivileged uids for runs that root starts: one pair a run, held by a lock."""

from __future__ import annotations

import fcntl
import os

from agent_reach._util.record import Record
from agent_reach.errors import Unavailable
from agent_reach.linux import identity

_RANGES = ((identity.FIRST, identity.SLOTS), (identity.FIRST_IN_CONTAINER, identity.SLOTS_IN_CONTAINER))


class Slot(Record):
    """A held slot.

    Args:
        run_uid: uid and gid of the sandbox on the host.
        supervisor_uid: uid and gid of the supervisor.
        number: which slot.
        lock: descriptor that holds it; released when the last copy is closed.
    """

    run_uid: int
    supervisor_uid: int
    number: int
    lock: int


def take(lock_file: str) -> Slot:
    """Take a free slot.

    Args:
        lock_file: one byte of it is locked for each slot; it stays, its content does not matter.

    Raises:
        Unavailable: every slot is taken, or this user namespace maps too few ids.
    """
    first, count = _range()
    os.makedirs(os.path.dirname(lock_file), mode=0o700, exist_ok=True)
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    for number in range(count):
        if _lock(descriptor, number):
            return Slot(first + 2 * number, first + 2 * number + 1, number, descriptor)
    os.close(descriptor)
    raise Unavailable("a free uid slot", needed="one for each run that root starts", found=f"{count} taken")


def _lock(descriptor: int, number: int) -> bool:
    """Lock one byte for this open file: the lock passes to forked copies and ends with the last of them."""
    import struct

    # struct flock: type, whence, start, length, pid (fcntl(2), F_OFD_SETLK; Linux 3.15).
    request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0)
    try:
        fcntl.fcntl(descriptor, 37, request)  # F_OFD_SETLK
    except OSError:
        return False
    return True


def _range() -> tuple[int, int]:
    """Return the first uid and the number of slots that this user namespace maps.

    Raises:
        Unavailable: no range is mapped.
    """
    for first, count in _RANGES:
        if identity.holds_range(first, 2 * count):
            return first, count
    raise Unavailable("an unprivileged uid", needed="a mapped range of ids for the sandbox", found="none is mapped")
