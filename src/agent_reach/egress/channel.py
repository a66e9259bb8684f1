"""The channels over which guards inside report. Everything that comes is hostile until proven readable."""

from __future__ import annotations

import _socket as socket

from agent_reach.egress import reports
from agent_reach.egress.loop import READ
from agent_reach.wire import reports as wire
from agent_reach.wire.frames import Decoder, FrameError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.egress.loop import Loop
    from agent_reach.outcome import Denial

MOST_CHANNELS = 256
MOST_REPORTS = 10_000  # of one run
MOST_PER_SECOND = 2_000

_READ_BYTES = 16_384


class Channels:
    """The open channels of a run.

    Args:
        loop: where sockets are watched.
        take: given each report but questions.
        path_exists: answers whether a path exists outside; None tells the guards nothing.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        loop: Loop,
        take: Callable[[reports.At | reports.Lookup | Denial], None],
        path_exists: Callable[[str], bool] | None,
        clock: Callable[[], float],
    ) -> None:
        self._loop, self._take, self._path_exists, self._clock = loop, take, path_exists, clock
        self._open: dict[int, tuple[socket.socket, Decoder]] = {}
        self._total = self._in_second = 0
        self._second = 0

    def open(self) -> socket.socket | None:
        """Return the end of a new channel that goes inside; None when there are too many, or enough was said."""
        if len(self._open) >= MOST_CHANNELS:
            self.drain()  # those that have ended make room
        if len(self._open) >= MOST_CHANNELS or self._total >= MOST_REPORTS:
            return None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        fd = ours.fileno()
        self._open[fd] = (ours, Decoder())
        self._loop.watch(fd, READ, lambda _mask: self._read(fd))
        return theirs

    def drain(self) -> None:
        """Read what has been said so far: a thread says where it stands before it connects."""
        for fd in list(self._open):
            self._read(fd)

    def close(self) -> None:
        """Close every channel."""
        for fd in list(self._open):
            self._end(fd)

    def _read(self, fd: int) -> None:
        """Read one channel once; ends it at the end, at the first broken frame, and when too much was said."""
        sock, decoder = self._open[fd]
        try:
            data = sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        try:
            frames = decoder.feed(data)
            for fields in frames:
                self._handle(sock, reports.read(fields))
        except (FrameError, OSError):
            data = b""
        if not data or self._total > MOST_REPORTS:
            self._end(fd)

    def _handle(self, sock: socket.socket, report: reports.Report) -> None:
        """Take one report, or answer one question."""
        wanted = self._count()
        if isinstance(report, reports.Existence):
            exists = self._path_exists(report.path) if wanted and self._path_exists is not None else None
            sock.send(wire.existence(exists), socket.MSG_NOSIGNAL)
        elif wanted:
            self._take(report)

    def _count(self) -> bool:
        """Count a report; False when this second had enough."""
        second = int(self._clock())
        if second != self._second:
            self._second, self._in_second = second, 0
        self._total += 1
        self._in_second += 1
        return self._in_second <= MOST_PER_SECOND

    def _end(self, fd: int) -> None:
        """Close a channel."""
        sock, _decoder = self._open.pop(fd)
        self._loop.forget(fd)
        sock.close()
