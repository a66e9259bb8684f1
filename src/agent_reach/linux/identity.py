"""Which ids there are besides our own, and how one thread acts as another of them for the length of a block."""

from __future__ import annotations

from agent_reach.linux import _syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_UNCHANGED = -1
# Unprivileged ids for runs that root starts. Above the ranges that systemd, container managers and /etc/subuid
# hand out, and below the sign bit; or, where a container maps 65,536 ids, behind the dynamic users of systemd.
FIRST, SLOTS = 0x7000_0000, 512
FIRST_IN_CONTAINER, SLOTS_IN_CONTAINER = 65_280, 120


def holds_range(first: int, count: int) -> bool:
    """Say whether our user namespace maps every id of a range."""
    with open("/proc/self/uid_map", encoding="ascii") as stream:
        maps = [tuple(int(word) for word in line.split()) for line in stream]
    return any(start <= first and first + count <= start + length for start, _, length in maps)


class ActingAs:
    """Context in which the calling thread's effective uid, and so its rights over files, are another's.

    The C library's `seteuid` changes every thread of the process; the bare call changes the calling one.
    The uid must be the real or the saved one of the process (setresuid(2)).

    Args:
        uid: uid to take, or None for no change.
    """

    def __init__(self, uid: int | None) -> None:
        self._uid = uid
        self._own = -1

    def __enter__(self) -> None:
        """Take the uid."""
        if self._uid is not None:
            import os

            self._own = os.getuid()
            _syscalls.syscall(_syscalls.number("setresuid"), _UNCHANGED, self._uid, _UNCHANGED)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Go back to the real uid."""
        if self._uid is not None:
            _syscalls.syscall(_syscalls.number("setresuid"), _UNCHANGED, self._own, _UNCHANGED)
