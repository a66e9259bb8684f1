"""Connections on sockets of our own, handed in to the caller.

The caller's memory was copied and its decision made before anything here runs; nothing here looks at the
caller again, but to see that it still waits. A blocking connect completes on a socket that only we hold, so
no other thread of the program can make us wait or steer it; a non-blocking one is handed in at once.
"""

from __future__ import annotations

import _socket as socket
import errno
import os

from agent_reach._util.record import Record
from agent_reach.egress import epolls, tcp
from agent_reach.egress.loop import WRITE
from agent_reach.egress.pending import Waiting
from agent_reach.linux import sockets
from agent_reach.linux.seccomp import notify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.egress.call import Call
    from agent_reach.egress.files import Files
    from agent_reach.egress.loop import Loop
    from agent_reach.egress.pending import Waitlist


class Target(Record):
    """Where a connection goes and what it replaces.

    Args:
        number: the caller's descriptor.
        address: as `socket.connect` takes it.
    """

    number: int
    address: tuple[str, int] | tuple[str, int, int, int]


class _Attempt(Record):
    """A connection under way.

    Args:
        new: the connecting socket, which only we hold.
        target: where it goes and what it replaces.
        flags: O_* flags of the caller's descriptor.
        old: identity of the caller's socket.
    """

    new: socket.socket
    target: Target
    flags: int
    old: bytes


class Dialer:
    """Starts and completes connections.

    Args:
        loop: where sockets are watched.
        waitlist: where calls are watched.
        files: how the caller's sockets are come by.
        release: closes our descriptor of a file of the program, without ever waiting.
    """

    def __init__(self, loop: Loop, waitlist: Waitlist, files: Files, release: Callable[[socket.socket], None]) -> None:
        self._loop, self._waitlist, self.files, self.release = loop, waitlist, files, release
        self._replacer = tcp.Replacer()

    def dial(self, call: Call, old: socket.socket, target: Target) -> None:
        """Connect a new socket and let it take the place of the caller's.

        Args:
            call: the connect; it is answered here or later, unless an error is raised.
            old: descriptor of ours for the caller's socket, unconnected; closed here, unless an error is raised.
            target: a checked address.

        Raises:
            OSError: what the connect fails with at once.
        """
        flags = call.flags(target.number)
        new = self._replacer.replacement(old)
        try:
            error = _begin(new, target)
            if not flags & os.O_NONBLOCK and error:
                error = _again(new, target)  # a near host has answered by now
            if error == 0 or flags & os.O_NONBLOCK:
                self.hand_in(call, new, target.number, flags, old)
                new.close()
                call.answer(error)
                return
            deadline = self._deadline(old)
            attempt = _Attempt(new, target, flags, tcp.identity(old))
            self.release(old)
        except BaseException:
            new.close()
            raise
        self._watch(_Dialling(call, deadline, self, attempt), new)

    def join(self, call: Call, sock: socket.socket, raw: bytes) -> int | None:
        """Answer a connect on a socket that is connected, or on the way.

        None of it dials: `sock` is the caller's file and the program can change it under our hands, but a
        socket that is no longer closed never makes another connection from here.

        Args:
            call: the connect.
            sock: descriptor of ours for the caller's socket, in any state but `CLOSED`.
            raw: address of the call; only its form matters.

        Returns:
            An error number; None when the call is answered later, and `sock` is ours to release then.
        """
        found = tcp.state(sock)
        if found == tcp.LISTENING:
            return errno.EISCONN
        if found not in {tcp.SYN_SENT, tcp.SYN_RECEIVED}:
            return sockets.connect(sock.fileno(), raw)  # 0 the first time, then EISCONN; returns at once
        if not os.get_blocking(sock.fileno()):
            return errno.EALREADY
        self._watch(_Joining(call, self._deadline(sock), self, (sock, raw)), sock)
        return None

    def hand_in(self, call: Call, new: socket.socket, number: int, flags: int, old: socket.socket | None) -> None:
        """Put a socket on the caller's descriptor, with the flags and epoll entries that the old one had there.

        Args:
            call: the connect.
            new: socket of ours; stays ours to close.
            number: the caller's descriptor.
            flags: O_* flags that it has there.
            old: descriptor of ours for the old socket; closed here, unless an error is raised. It is the last one of
                that file by then, and until it is closed an epoll inside reports the old file's events. A thread that
                registers the new file would copy it.

        Raises:
            OSError: the caller's descriptor cannot be had.
        """
        blocking = not flags & os.O_NONBLOCK
        os.set_blocking(new.fileno(), blocking)
        wanted = [] if blocking else epolls.entries(call.tid, number)
        there = call.hand_in(new.fileno(), number, bool(flags & os.O_CLOEXEC))
        if old is not None:
            self.files.replaced(old)
            self.release(old)
        if there:
            self.files.handed(new)
            epolls.register(call, new.fileno(), number, wanted)

    def finish(self, waiting: Waiting, sock: socket.socket) -> None:
        """Stop waiting for a socket."""
        self._loop.forget(sock.fileno())
        self._waitlist.remove(waiting)

    def _deadline(self, sock: socket.socket) -> float:
        """Return when a blocking connect of a socket gives up by SO_SNDTIMEO, 0 for never."""
        timeout = tcp.send_timeout(sock)
        return self._waitlist.now() + timeout if timeout else 0.0

    def _watch(self, waiting: _Dialling | _Joining, sock: socket.socket) -> None:
        """Wait for a socket to become writable."""
        self._waitlist.add(waiting)
        self._loop.watch(sock.fileno(), WRITE, lambda _mask: waiting.ready())


class _Dialling(Waiting):
    """A blocking connect of a socket that the caller does not have yet."""

    def __init__(self, call: Call, deadline: float, dialer: Dialer, attempt: _Attempt) -> None:
        super().__init__(call, deadline)
        self._dialer, self._attempt = dialer, attempt

    def ready(self) -> None:
        """Complete the connect: the second call gives its outcome, and cannot block on a socket of ours."""
        error = self._attempt.new.connect_ex(self._attempt.target.address)
        if error != errno.EALREADY:  # else a spurious wake-up
            self._end(error, give=error == 0)

    def interrupt(self) -> None:
        """Give the caller the connecting socket, and let the signal through.

        The call may be made again behind the program's handler, or the program waits on the descriptor: both
        then go on with the same connection.
        """
        self._end(_interruption(self), give=True)

    def expire(self) -> None:
        """Answer as the kernel does when SO_SNDTIMEO is over; the connect goes on."""
        self._end(errno.EINPROGRESS, give=True)

    def abandon(self) -> None:
        """Close the socket: nobody else has it."""
        self._dialer.finish(self, self._attempt.new)
        self._attempt.new.close()
        self.call.abandon()

    def _end(self, error: int, *, give: bool) -> None:
        """Answer, with the new socket in place or without."""
        attempt = self._attempt
        self._dialer.finish(self, attempt.new)
        try:
            if give:
                there = self._current()
                self._dialer.hand_in(self.call, attempt.new, attempt.target.number, attempt.flags, there)
        except OSError as failure:
            error = failure.errno or errno.EBADF
        self.call.answer(error)
        attempt.new.close()

    def _current(self) -> socket.socket:
        """Return the caller's socket again; a thread may have closed the descriptor and opened something else.

        Raises:
            OSError: EBADF when the descriptor is not the socket any more that was to be connected.
        """
        there = self._dialer.files.take(self.call, self._attempt.target.number)
        if tcp.identity(there) == self._attempt.old:
            return there
        self._dialer.release(there)
        raise OSError(errno.EBADF, "the descriptor was closed during its connect")


class _Joining(Waiting):
    """A blocking connect on a socket that was handed in before and is still connecting."""

    def __init__(self, call: Call, deadline: float, dialer: Dialer, held: tuple[socket.socket, bytes]) -> None:
        super().__init__(call, deadline)
        self._dialer = dialer
        self._sock, self._raw = held

    def ready(self) -> None:
        """Answer with the outcome."""
        found = tcp.state(self._sock)
        if found in {tcp.SYN_SENT, tcp.SYN_RECEIVED}:
            return
        if found == tcp.CLOSED:
            error = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) or errno.ECONNABORTED
        else:
            error = sockets.connect(self._sock.fileno(), self._raw)
        self._end(error)

    def interrupt(self) -> None:
        """Let the signal through; the connect goes on by itself."""
        self._end(_interruption(self))

    def expire(self) -> None:
        """Answer as the kernel does when SO_SNDTIMEO is over."""
        self._end(errno.EALREADY)

    def abandon(self) -> None:
        """Let go of the socket."""
        self._dialer.finish(self, self._sock)
        self._dialer.release(self._sock)
        self.call.abandon()

    def _end(self, error: int) -> None:
        """Answer and let go."""
        self._dialer.finish(self, self._sock)
        self.call.answer(error)
        self._dialer.release(self._sock)


def _interruption(waiting: Waiting) -> int:
    """Return how a signal ends a wait: with SO_SNDTIMEO a connect is never made again by itself (signal(7))."""
    return errno.EINTR if waiting.deadline else notify.ERESTARTSYS


def _begin(new: socket.socket, target: Target) -> int:
    """Start to connect and return 0 or EINPROGRESS.

    Raises:
        OSError: the connect fails at once.
    """
    error = new.connect_ex(target.address)
    if error not in {0, errno.EINPROGRESS}:
        raise OSError(error, os.strerror(error))
    return error


def _again(new: socket.socket, target: Target) -> int:
    """Return 0 when a connect has ended well, EALREADY when it has not ended.

    Raises:
        OSError: it has failed.
    """
    error = new.connect_ex(target.address)
    if error not in {0, errno.EALREADY}:
        raise OSError(error, os.strerror(error))
    return error
