"""The broker's event loop: one epoll, one callback for each descriptor."""

from __future__ import annotations

import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READ = select.EPOLLIN
WRITE = select.EPOLLOUT

_AT_ONCE = 64


class Loop:
    """Calls back when a descriptor is ready. Level-triggered: what a callback leaves over comes again.

    Args:
        fault: told an exception that escaped from a callback, which is a fault in reach: the descriptor is not
            watched any more, and the run goes on without it.
    """

    def __init__(self, fault: Callable[[Exception], None]) -> None:
        self._fault = fault
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self._fresh: set[int] = set()

    def fileno(self) -> int:
        """Return a descriptor that is readable when `run` has something to do."""
        return self._epoll.fileno()

    def watch(self, fd: int, mask: int, callback: Callable[[int], None]) -> None:
        """Call `callback` with the events of a descriptor; errors and hang-ups always count."""
        self._epoll.register(fd, mask)
        self._callbacks[fd] = callback
        self._fresh.add(fd)

    def forget(self, fd: int) -> None:
        """Stop watching a descriptor; to be called before it is closed."""
        if self._callbacks.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def run(self, timeout: int) -> None:
        """Wait for events and call back.

        Args:
            timeout: milliseconds; 0 returns at once, -1 waits without end.
        """
        self._fresh.clear()
        for fd, mask in self._epoll.poll(None if timeout < 0 else timeout / 1000, _AT_ONCE):
            # A descriptor that was closed and opened again by a callback before this one is another file.
            if fd in self._fresh or fd not in self._callbacks:
                continue
            try:
                self._callbacks[fd](mask)
            except Exception as error:  # noqa: BLE001 - hostile input must not be able to end the supervisor
                self.forget(fd)
                self._fault(error)

    def close(self) -> None:
        """Close the epoll."""
        self._epoll.close()
