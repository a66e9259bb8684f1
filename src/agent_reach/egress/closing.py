"""Closing our descriptors of files that belong to the program, without ever waiting for it."""

from __future__ import annotations

import _socket as socket
import os

from agent_reach.egress import tcp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.egress.workers import Workers


class Closer:
    """Closes descriptors.

    Ours may be the last one of a file by now. Closing the last one of a connected socket waits for as long as the
    program set SO_LINGER to, and other kinds of files may wait as well: that is done in a worker thread.

    Args:
        workers: the threads.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def release(self, sock: socket.socket) -> None:
        """Close a socket, if it is open; an unconnected one has nothing to wait for."""
        if sock.fileno() < 0:
            return
        internet = sock.family in {socket.AF_INET, socket.AF_INET6}
        if internet and sock.type == socket.SOCK_STREAM and tcp.state(sock) != tcp.CLOSED:
            self.release_fd(sock.detach())
        else:
            sock.close()

    def release_fd(self, fd: int) -> None:
        """Close a descriptor of any kind."""
        try:
            self._workers.submit(lambda: os.close(fd), lambda _result: None)
        except OSError:  # the queue is full: rather one descriptor less than a wait without end
            return
