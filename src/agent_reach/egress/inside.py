"""Connections that stay inside the sandbox: its own loopback, its own Unix sockets.

They are made on a descriptor of ours for the caller's own socket, whose network namespace decides where they go.
Such a connect can block as long as the program likes (a listener that never accepts), and the program can
change the file's flags meanwhile, so it is made in a worker thread, never in the loop.
"""

from __future__ import annotations

import _socket as socket
import errno
import os
import stat
import sys

from agent_reach._util.record import Record
from agent_reach.egress import tcp
from agent_reach.egress.pending import Waiting
from agent_reach.linux import _syscalls, sockets
from agent_reach.linux.identity import ActingAs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.egress.call import Call
    from agent_reach.egress.pending import Waitlist
    from agent_reach.egress.workers import Workers

_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_RESOLVE_IN_ROOT = 0x10


class Outcome(Record):
    """How a connect inside ended.

    Args:
        error: error number, 0 for none.
        refused: whether nobody listens there, also when a non-blocking caller learns it later.
        foreign: whether the path leads to a socket of the host.
    """

    error: int
    refused: bool = False
    foreign: bool = False


class Connector:
    """Makes connects inside, in worker threads.

    Args:
        workers: the threads.
        waitlist: where calls are watched.
        devices: st_dev of the run's own file systems; sockets elsewhere are the host's.
        file_uid: uid to look paths up as, where ours may not enter the run's private directories.
    """

    def __init__(
        self, workers: Workers, waitlist: Waitlist, devices: frozenset[int], file_uid: int | None = None
    ) -> None:
        self._workers, self._waitlist, self._devices = workers, waitlist, devices
        self._file_uid = file_uid

    def connect(self, call: Call, sock: socket.socket, raw: bytes, ended: Callable[[Outcome], None]) -> None:
        """Connect the caller's own socket to an address of its own network namespace.

        Args:
            call: the connect; it is answered behind `ended`.
            sock: descriptor of ours for the caller's socket; it is closed here, unless an error is raised.
            raw: copy of the address.
            ended: told how it ended, in the loop.

        Raises:
            OSError: EAGAIN, too many connects are under way.
        """
        self._submit(_Inside(call, tcp.is_tcp(sock)), lambda: _connect(sock, raw), ended)

    def connect_path(self, call: Call, sock: socket.socket, path: bytes, ended: Callable[[Outcome], None]) -> None:
        """Connect the caller's own Unix socket to a path, as the caller sees it.

        The path is never given to connect: it would be looked up under our root, where the host's sockets are. It
        is opened under the caller's root, the file behind it is checked, and that very file is connected to.

        Args:
            call: the connect; it is answered behind `ended`.
            sock: descriptor of ours for the caller's socket; it is closed here, unless an error is raised.
            path: copy of the path.
            ended: told how it ended, in the loop.

        Raises:
            OSError: the caller's directories cannot be opened, or EAGAIN.
        """
        view = _View(call)
        try:
            view.check(call)

            def job() -> Outcome:
                with ActingAs(self._file_uid):
                    return _connect_path(sock, view, os.fsdecode(path), self._devices)

            self._submit(_Inside(call, interruptible=False), job, ended)
        except BaseException:
            view.close()
            raise

    def _submit(self, waiting: _Inside, job: Callable[[], Outcome], ended: Callable[[Outcome], None]) -> None:
        """Run a job, and answer the call when it ends."""

        def arrived(result: Outcome | BaseException) -> None:
            outcome = result if isinstance(result, Outcome) else Outcome(errno.EACCES)
            if self._waitlist.remove(waiting):
                try:
                    ended(outcome)
                finally:
                    waiting.call.answer(outcome.error)

        self._waitlist.add(waiting)
        try:
            self._workers.submit(job, arrived)
        except BaseException:
            self._waitlist.remove(waiting)
            raise
        waiting.dismiss = self._waitlist.remove


class _Inside(Waiting):
    """A connect that a worker thread makes.

    Args:
        call: the connect.
        interruptible: whether the connect goes on by itself when a signal interrupts it, as TCP's does.
    """

    def __init__(self, call: Call, interruptible: bool) -> None:
        super().__init__(call)
        self._interruptible = interruptible
        self.dismiss: Callable[[Waiting], bool] = lambda _waiting: False

    def interrupt(self) -> None:
        """Let the signal through; the thread's outcome is for nobody then."""
        if self._interruptible and self.dismiss(self):
            self.call.restart()


class _View:
    """The directories that a caller's path starts in, opened.

    Raises:
        OSError: the caller has gone, or may not be looked at.
    """

    def __init__(self, call: Call) -> None:
        self.root = call.directory("root")
        try:
            # Read here and now: whoever acts as the run's uid has no right to look at its processes.
            self._cwd_path = os.readlink(f"/proc/{call.tid}/cwd")
            self.cwd = call.directory("cwd")
        except BaseException:
            os.close(self.root)
            raise

    def check(self, call: Call) -> None:
        """Refuse directories that may belong to another process, to which the caller's id has passed on.

        Raises:
            OSError: ESRCH, the caller has gone.
        """
        if not call.valid():
            raise OSError(errno.ESRCH, "the caller has gone")

    def open(self, path: str) -> int:
        """Return an O_PATH descriptor of what a path leads to, links followed, but those of /proc.

        Raises:
            OSError: as the caller's own lookup would give.
        """
        flags = os.O_PATH | os.O_CLOEXEC
        if not path.startswith("/"):
            try:
                return _syscalls.openat2(self.cwd, path, flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
            except OSError as error:
                if error.errno != errno.EXDEV:  # a way up or out: looked up from the root instead
                    raise
            path = f"{self._cwd_path}/{path}"
        return _syscalls.openat2(self.root, path, flags, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)

    def close(self) -> None:
        """Close the directories."""
        os.close(self.root)
        os.close(self.cwd)


def _connect(sock: socket.socket, raw: bytes) -> Outcome:
    """Connect, and see whether nobody was there: on a loopback that is known when the call returns."""
    try:
        error = sockets.connect(sock.fileno(), raw)
        refused = error == errno.ECONNREFUSED
        if error == errno.EINPROGRESS and tcp.is_tcp(sock):
            refused = tcp.state(sock) == tcp.CLOSED  # SO_ERROR stays for the program to read
        return Outcome(error, refused)
    finally:
        sock.close()


def _connect_path(sock: socket.socket, view: _View, path: str, devices: frozenset[int]) -> Outcome:
    """Connect to the file that a path leads to, if it is a socket of the run."""
    found = -1
    try:
        found = view.open(path)
        status = os.fstat(found)
        if not stat.S_ISSOCK(status.st_mode):
            return Outcome(errno.ECONNREFUSED)
        if status.st_dev not in devices:
            return Outcome(errno.EACCES, foreign=True)
        target = socket.AF_UNIX.to_bytes(2, sys.byteorder) + b"/proc/self/fd/%d\0" % found
        return Outcome(sockets.connect(sock.fileno(), target))
    except OSError as error:
        return Outcome(error.errno or errno.EACCES)
    finally:
        if found >= 0:
            os.close(found)
        view.close()
        sock.close()
