"""Changes of mode and times in tier ``reduced``: Landlock does not cover them, so they are made here.

The supervisor and the program are the same user, so what the program names is looked up once, held by a
descriptor, checked, and changed through that descriptor: nothing that the program does meanwhile leads elsewhere.
"""

from __future__ import annotations

import errno
import os
import stat
from struct import unpack

from agent_reach.egress.call import Call
from agent_reach.linux import _syscalls, memory
from agent_reach.linux.abi import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.linux.seccomp.notify import Notification

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_AT_EMPTY_PATH = 0x1000
_RESOLVE_NO_MAGICLINKS = 0x02
_UTIME_NOW = (1 << 30) - 1
_UTIME_OMIT = (1 << 30) - 2
_NANOSECONDS = 10**9
# The set-id bits never come here, the filter refuses them; this is the second wall.
_MODE_BITS = 0o1777
# Owners and extended attributes are notified like the others, and refused.
_REFUSED = (
    *("chown", "fchown", "fchownat", "lchown", "utime", "utimes", "futimesat"),
    *("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"),
)


class Metadata:
    """Makes the changes of one run.

    Args:
        writable: real paths of what the program may write.
    """

    def __init__(self, writable: tuple[str, ...]) -> None:
        self._writable = tuple(path for path in writable if not path.startswith("/dev/"))
        numbers = table(_syscalls.machine())
        handlers: dict[str, Callable[[Call], int]] = {
            "chmod": lambda call: self._chmod(call, _AT_FDCWD, 0, 1, 0),
            "fchmod": lambda call: self._chmod(call, call.integer(0), -1, 1, 0),
            "fchmodat": lambda call: self._chmod(call, call.integer(0), 1, 2, 0),
            "fchmodat2": lambda call: self._chmod(call, call.integer(0), 1, 2, call.integer(3)),
            "utimensat": self._utimensat,
            **dict.fromkeys(_REFUSED, lambda _call: errno.EPERM),
        }
        self._handlers = {numbers[name]: handler for name, handler in handlers.items() if name in numbers}

    def calls(self) -> tuple[int, ...]:
        """Return the numbers of the calls that `handle` answers."""
        return tuple(self._handlers)

    def handle(self, listener: int, notification: Notification) -> None:
        """Answer one call."""
        call = Call(listener, notification)
        try:
            error = self._handlers[call.nr](call)
        except OSError as failure:
            error = failure.errno or errno.EPERM
        call.answer(error)

    def _chmod(self, call: Call, directory: int, path: int, mode: int, flags: int) -> int:
        """Change a mode; `path` and `mode` are indices of arguments, a path of -1 means the descriptor itself."""
        bits = call.integer(mode)
        if bits & (stat.S_ISUID | stat.S_ISGID):
            return errno.EPERM
        found = self._find(call, directory, path, flags)
        return self._change(call, found, lambda name: os.chmod(name, bits & _MODE_BITS))

    def _utimensat(self, call: Call) -> int:
        """Change times; a null path means the descriptor itself, null times mean now."""
        path = 1 if call.args[1] else -1
        times = unpack("=4q", call.read(call.args[2], 32)) if call.args[2] else (0, _UTIME_NOW, 0, _UTIME_NOW)

        def change(name: str) -> None:
            about = os.stat(name)
            accessed = _nanoseconds(times[:2], about.st_atime_ns)
            os.utime(name, ns=(accessed, _nanoseconds(times[2:], about.st_mtime_ns)))

        return self._change(call, self._find(call, call.integer(0), path, call.integer(3)), change)

    def _find(self, call: Call, directory: int, path: int, flags: int) -> int:
        """Return an O_PATH descriptor of what a call names.

        Raises:
            OSError: as the caller's own lookup would give.
        """
        name = memory.read_string(call.tid, call.args[path]) if path >= 0 else b""
        if name.startswith(b"/"):
            start = call.directory("root")
        elif directory == _AT_FDCWD:
            start = call.directory("cwd")
        else:
            start = os.open(f"/proc/{call.tid}/fd/{directory}", os.O_PATH | os.O_CLOEXEC)
        if path < 0 or (not name and flags & _AT_EMPTY_PATH):
            return start
        how = os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if flags & _AT_SYMLINK_NOFOLLOW else 0)
        try:
            return _syscalls.openat2(start, os.fsdecode(name), how, 0, _RESOLVE_NO_MAGICLINKS)
        finally:
            os.close(start)

    def _change(self, call: Call, found: int, change: Callable[[str], None]) -> int:
        """Make a change if the file is the run's to change; return the errno."""
        try:
            about = os.fstat(found)
            link = f"/proc/self/fd/{found}"
            if not call.valid():
                return errno.ESRCH
            # A root without CAP_SYS_ADMIN has rights that the program has not: over other users' files.
            if about.st_uid != os.geteuid() or not self._may_write(os.readlink(link)):
                return errno.EPERM
            if stat.S_ISLNK(about.st_mode):
                return errno.EOPNOTSUPP
            change(link)
        finally:
            os.close(found)
        return 0

    def _may_write(self, path: str) -> bool:
        """Say whether a real path lies in a writable grant."""
        return any(path == root or path.startswith(root + "/") for root in self._writable)


def _nanoseconds(time: tuple[int, ...], now_there: int) -> int:
    """Return a time in nanoseconds from seconds and nanoseconds, or from the two special values."""
    if time[1] == _UTIME_OMIT:
        return now_there
    if time[1] == _UTIME_NOW:
        import time as clock

        return clock.time_ns()
    if not 0 <= time[1] < _NANOSECONDS:
        raise OSError(errno.EINVAL, "nanoseconds out of range")
    return time[0] * _NANOSECONDS + time[1]
