"""One notified call: who made it, what it points to, and the ways to answer it."""

from __future__ import annotations

import errno
import os

from agent_reach.linux import memory, pidfd
from agent_reach.linux.seccomp import notify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.linux.seccomp.notify import Notification

_READ_BYTES = 8192


class Call:
    """A call that waits for our answer.

    The caller's id is only as good as the last `valid`: until then it may be that of another process by now.
    What was opened or copied before a `valid` that said yes belongs to the caller.

    Args:
        listener: descriptor of the filter's listener.
        notification: what the kernel said.
    """

    __slots__ = ("_listener", "_pidfd", "args", "id", "nr", "tid")

    def __init__(self, listener: int, notification: Notification) -> None:
        self._listener, self._pidfd = listener, -1
        self.id, self.tid = notification.id, notification.pid
        self.nr, self.args = notification.nr, notification.args

    def integer(self, index: int) -> int:
        """Return an argument as the C int that the kernel takes it for."""
        low = self.args[index] & 0xFFFF_FFFF
        return low - (1 << 32) if low >> 31 else low

    def read(self, pointer: int, size: int) -> bytes:
        """Return a copy of the caller's memory.

        Raises:
            OSError: EFAULT when part of it is not there.
        """
        try:
            copy = memory.read(self.tid, pointer, size)
        except OSError as error:
            raise OSError(errno.EFAULT, "the caller's memory cannot be read") from error
        if len(copy) != size:
            raise OSError(errno.EFAULT, "part of the caller's memory cannot be read")
        return copy

    def thread(self) -> int:
        """Return a pidfd of the calling thread; the call closes it when it is answered."""
        if self._pidfd < 0:
            self._pidfd = pidfd.open_thread(self.tid)
        return self._pidfd

    def take(self, number: int) -> int:
        """Return a descriptor of ours for the file behind one of the caller's.

        Raises:
            OSError: EBADF when the caller has none of that number.
        """
        return pidfd.get_fd(self.thread(), number)

    def flags(self, number: int) -> int:
        """Return the O_* flags of one of the caller's descriptors, O_CLOEXEC among them.

        Raises:
            OSError: EBADF when it was closed meanwhile.
        """
        try:
            text = _read(f"/proc/{self.tid}/fdinfo/{number}")
        except FileNotFoundError as error:
            raise OSError(errno.EBADF, "the descriptor was closed during the call") from error
        _, _, rest = text.partition(b"flags:")
        return int(rest.split(None, 1)[0], 8)

    def directory(self, kind: str) -> int:
        """Return an O_PATH descriptor of the caller's ``root`` or ``cwd``."""
        return os.open(f"/proc/{self.tid}/{kind}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def inner_tid(self) -> int:
        """Return the caller's thread id as it sees it itself, in its innermost pid namespace."""
        return int(self._status()[b"NSpid"].split()[-1])

    def process(self) -> int:
        """Return the id of the caller's process, as we see it."""
        return int(self._status()[b"Tgid"])

    def interrupted(self) -> bool:
        """Tell whether a signal waits for the caller, so that `restart` is safe and due.

        `restart` leaves ERESTARTSYS behind, which the kernel turns into EINTR or a restart only when the
        thread's signal flag is set; otherwise errno 512 would reach the program. The flag is surely set for a
        signal of the thread's own, which nobody else can take, and for one of the process when this is its
        main thread: the kernel offers such a signal to the main thread first (complete_signal), and only a
        thread itself clears its flag. Any other thread goes on waiting: the signal is another's to take.
        """
        try:
            status = self._status()
            deliverable = ~(int(status[b"SigBlk"], 16) | int(status[b"SigIgn"], 16))
            if int(status[b"SigPnd"], 16) & deliverable:
                return True
            return bool(int(status[b"ShdPnd"], 16) & deliverable) and int(status[b"Tgid"]) == self.tid
        except (OSError, KeyError, ValueError):
            return False

    def valid(self) -> bool:
        """Tell whether the caller is still waiting, and so whether what we hold is the caller's."""
        return notify.valid(self._listener, self.id)

    def hand_in(self, source: int, number: int, cloexec: bool) -> bool:
        """Put a file of ours on one of the caller's descriptors, in place of what is there.

        Returns:
            False when the caller is no longer waiting.
        """
        return notify.add_fd(self._listener, self.id, source, number, cloexec=cloexec) >= 0

    def add(self, source: int, cloexec: bool) -> None:
        """Put a file of ours on the caller's lowest free descriptor and answer with its number (Linux 5.14)."""
        notify.add_fd(self._listener, self.id, source, cloexec=cloexec, send=True)
        self._end()

    def answer(self, error: int = 0, value: int = 0) -> None:
        """Let the call return a value, or fail with an error number."""
        notify.respond(self._listener, self.id, value=value, error=error)
        self._end()

    def restart(self) -> None:
        """Let the call be interrupted; only when `interrupted`."""
        self.answer(notify.ERESTARTSYS)

    def abandon(self) -> None:
        """Give up a call whose caller has gone."""
        self._end()

    def _end(self) -> None:
        """Close what the call holds."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def _status(self) -> dict[bytes, bytes]:
        """Return the fields of the thread's status."""
        text = _read(f"/proc/{self.tid}/status")
        return dict(line.split(b":\t", 1) for line in text.splitlines() if b":\t" in line)


def _read(path: str) -> bytes:
    """Return a small file of /proc."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _READ_BYTES)
    finally:
        os.close(fd)
