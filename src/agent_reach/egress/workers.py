"""A few threads for calls that may block, so that the broker's loop never does.

Jobs go in from the loop and their results come back into it: nothing but the two queues is shared. The
threads come from `_thread`: `threading` costs an import and waits for them at exit.
"""

from __future__ import annotations

import errno
import os
from _queue import Empty, SimpleQueue
from _thread import start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Workers:
    """Runs jobs in threads and their completions in the loop.

    Args:
        most: most threads; each is started when the ones there are busy.
        fault: told an exception that escaped from a completion, which is a fault in reach.
        waiting: most jobs under way or waiting.
    """

    def __init__(
        self, most: int, fault: Callable[[Exception], None] = lambda _error: None, waiting: int = 1024
    ) -> None:
        self._fault = fault
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._most, self._waiting = most, waiting
        self._started = self._under_way = 0
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]] | None] = SimpleQueue()
        self._results: SimpleQueue[tuple[Callable[[Any], None], Any]] = SimpleQueue()
        self._closed = False

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run a job in a thread; later `collect` calls `done` with what it returned or the exception it raised.

        Raises:
            OSError: EAGAIN, too many jobs are waiting.
        """
        if self._under_way >= self._waiting:
            raise OSError(errno.EAGAIN, "too many calls are waiting")
        self._under_way += 1
        if self._under_way > self._started < self._most:
            self._started += 1
            start_new_thread(self._work, ())
        self._jobs.put((job, done))

    def collect(self) -> None:
        """Call the completions of the jobs that have ended; to be called when `fd` is readable."""
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            return
        while True:
            try:
                done, result = self._results.get_nowait()
            except Empty:
                return
            self._under_way -= 1
            try:
                done(result)
            except Exception as error:  # noqa: BLE001 - the other completions are still to be called
                self._fault(error)

    def close(self) -> None:
        """Let the threads do what is queued and end; completions are not called any more."""
        if self._closed:
            return
        self._closed = True
        for _ in range(self._started):
            self._jobs.put(None)
        os.close(self.fd)

    def _ended(self) -> bool:
        """Tell whether `close` was called, by another thread."""
        return self._closed

    def _work(self) -> None:
        """Run jobs until told to end."""
        while True:
            job = self._jobs.get()
            if job is None:
                return
            call, done = job
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001 - a thread has nobody above it; the loop gets it
                result = error
            if self._ended():  # the eventfd's number may belong to another file by now
                return
            self._results.put((done, result))
            os.eventfd_write(self.fd, 1)
