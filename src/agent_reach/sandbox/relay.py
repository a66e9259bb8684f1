"""Standard input and output of the program: pipes or a terminal of our own, relayed and counted outside.

The program never holds a descriptor of the caller's: an inherited `>> log` could be truncated and read back
through /proc/self/fd/1.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select

_CHUNK = 1 << 16
_POLLIN = 1
_POLLOUT = 4


class Relay:
    """Moves bytes from one descriptor to another.

    Args:
        source: where bytes come from; closed at the end of file.
        sink: where they go.
        poll: the launcher's poll object; the relay registers what it waits for, so no two may share a descriptor.
        owns_sink: close the sink when the source has ended (the program's input).
        bound: most bytes to pass on, or None; what is beyond is dropped, and `over` says so.
    """

    def __init__(
        self, source: int, sink: int, poll: select.poll, *, owns_sink: bool = False, bound: int | None = None
    ) -> None:
        self.source = source
        self._sink = sink
        self._poll = poll
        self._owns_sink = owns_sink
        self._bound = bound
        self._pending = b""
        self.count = 0
        self.over = False
        self.open = True
        self._awaited = source
        poll.register(source, _POLLIN)

    def handle(self, descriptor: int) -> None:
        """Move what there is to move."""
        if not self.open:
            return
        if self._pending and descriptor == self._sink:
            self._flush()
        elif not self._pending and descriptor == self.source:
            self._pull()

    def _pull(self) -> None:
        """Read once and try to write it."""
        try:
            data = os.read(self.source, _CHUNK)
        except OSError as error:
            # A terminal's master reports EIO when the last process on the other side has gone, a socket ECONNRESET.
            if error.errno not in (errno.EIO, errno.EAGAIN, errno.ECONNRESET):
                raise
            if error.errno == errno.EAGAIN:
                return
            data = b""
        if not data:
            self.finish()
            return
        self.count += len(data)
        if self._bound is not None and self.count > self._bound:
            data = data[: max(0, len(data) - (self.count - self._bound))]
            self.over = True
        self._pending = data
        self._flush()

    def _flush(self) -> None:
        """Write what is pending; the source rests until the sink has taken it."""
        try:
            while self._pending:
                self._pending = self._pending[os.write(self._sink, self._pending) :]
        except BlockingIOError:
            self._wait_for(self._sink, _POLLOUT)
            return
        except (BrokenPipeError, ConnectionResetError):
            self.finish()
            return
        if self._awaited != self.source:
            self._wait_for(self.source, _POLLIN)

    def _wait_for(self, descriptor: int, events: int) -> None:
        """Wait for one side only: a sink that is full says so before the source is read again."""
        self._poll.unregister(self._awaited)
        self._poll.register(descriptor, events)
        self._awaited = descriptor

    def finish(self) -> None:
        """Stop, and close what is ours."""
        if not self.open:
            return
        self.open = False
        self._poll.unregister(self._awaited)
        os.close(self._sink if self._owns_sink else self.source)
