"""How the broker comes to the caller's sockets: by descriptor, or by having made them itself.

`pidfd_getfd` is the ordinary way. The default filter of a container refuses it; then `socket` is notified as
well, the broker makes each Internet socket and keeps its twin, and finds the twin again by inode.
"""

from __future__ import annotations

import _socket as socket
import errno
import os
import stat

from agent_reach._util.record import Record
from agent_reach.egress import tcp
from agent_reach.egress.loop import WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.egress.call import Call
    from agent_reach.egress.loop import Loop

MOST_TWINS = 128

_TYPE = 0xF  # the lower bits of socket(2)'s type; the others are SOCK_CLOEXEC and SOCK_NONBLOCK


class Files:
    """The caller's sockets by `pidfd_getfd`.

    Args:
        release_fd: closes our descriptor of a file of any kind, without ever waiting.
    """

    sees_all = True  # whether sockets that we did not make can be taken, Unix sockets among them

    def __init__(self, release_fd: Callable[[int], None]) -> None:
        self._release_fd = release_fd

    def take(self, call: Call, number: int) -> socket.socket:
        """Return a descriptor of ours for the caller's socket; ask `call.valid` behind it.

        What comes back is the open file, whatever the caller's threads do to the descriptor from now on.

        Raises:
            OSError: EBADF or ENOTSOCK.
        """
        fd = call.take(number)
        try:
            return socket.socket(fileno=fd)
        except OSError:
            self._release_fd(fd)
            raise

    def replaced(self, old: socket.socket) -> None:
        """Learn that another file has taken the place of the caller's socket."""

    def handed(self, new: socket.socket) -> None:
        """Learn of a socket that was handed in."""

    def close(self) -> None:
        """Let go of everything."""


class _Twin(Record):
    """A socket that we made for the program: ours, and the process that asked for it."""

    sock: socket.socket
    tgid: int


class Twins(Files):
    """The caller's sockets by having made them; for tier ``reduced``, where they are all the host's.

    A twin keeps its socket open when the program closes it. So it lives only while the socket is unconnected
    or connecting, and those of programs that never connect are swept when there are many.

    Args:
        release_fd: closes our descriptor of a file of any kind, without ever waiting.
        loop: where connecting sockets are watched.
    """

    sees_all = False

    def __init__(self, release_fd: Callable[[int], None], loop: Loop) -> None:
        super().__init__(release_fd)
        self._loop = loop
        self._twins: dict[int, _Twin] = {}

    def create(self, call: Call) -> int | None:
        """Handle socket(2); its arguments are registers, which nobody can change."""
        family, kind, protocol = (call.integer(index) for index in range(3))
        if len(self._twins) >= MOST_TWINS:
            self._sweep()
        process = call.process()
        new = socket.socket(family, kind & _TYPE, protocol)
        os.set_blocking(new.fileno(), not kind & socket.SOCK_NONBLOCK)
        inode = os.fstat(new.fileno()).st_ino
        try:
            call.add(new.fileno(), bool(kind & socket.SOCK_CLOEXEC))
        except OSError:
            new.close()
            raise
        self._twins[inode] = _Twin(new, process)
        return None

    def take(self, call: Call, number: int) -> socket.socket:
        """Return a descriptor of ours for the caller's socket.

        Raises:
            OSError: EBADF, ENOTSOCK, or EISCONN for a socket without a twin: it was connected through us, or
                the program did not get it from us.
        """
        try:
            status = os.stat(f"/proc/{call.tid}/fd/{number}")
        except FileNotFoundError as error:
            raise OSError(errno.EBADF, "no such descriptor") from error
        if not stat.S_ISSOCK(status.st_mode):
            raise OSError(errno.ENOTSOCK, "not a socket")
        twin = self._twins.get(status.st_ino)
        if twin is None:
            raise OSError(errno.EISCONN, "a socket that we do not hold")
        return socket.socket(fileno=os.dup(twin.sock.fileno()))

    def replaced(self, old: socket.socket) -> None:
        """Drop the twin: its epoll entries inside would live on."""
        inode = os.fstat(old.fileno()).st_ino
        if inode in self._twins:
            self._drop(inode)

    def handed(self, new: socket.socket) -> None:
        """Keep a twin of a socket while it connects; once it is connected, its end is the program's alone."""
        if new.family == socket.AF_UNIX or tcp.state(new) != tcp.SYN_SENT:
            return
        inode = os.fstat(new.fileno()).st_ino
        twin = socket.socket(fileno=os.dup(new.fileno()))
        self._twins[inode] = _Twin(twin, 0)
        self._loop.watch(twin.fileno(), WRITE, lambda _mask: self._drop(inode))

    def close(self) -> None:
        """Close every twin."""
        for twin in self._twins.values():
            self._loop.forget(twin.sock.fileno())
            twin.sock.close()
        self._twins.clear()

    def _drop(self, inode: int) -> None:
        """Close a twin."""
        twin = self._twins.pop(inode).sock
        self._loop.forget(twin.fileno())
        self._release_fd(twin.detach())

    def _sweep(self) -> None:
        """Close the twins of sockets that the asking process does not have open any more."""
        open_by: dict[int, set[int]] = {}
        for inode, twin in list(self._twins.items()):
            if twin.tgid and inode not in open_by.setdefault(twin.tgid, _sockets_of(twin.tgid)):
                self._drop(inode)
        while len(self._twins) >= MOST_TWINS:
            self._drop(next(iter(self._twins)))


def _sockets_of(tgid: int) -> set[int]:
    """Return the inodes of what a process has open, empty when it has ended."""
    found = set()
    try:
        with os.scandir(f"/proc/{tgid}/fd") as entries:
            for entry in entries:
                found.add(entry.stat().st_ino)
    except OSError:
        return found
    return found
