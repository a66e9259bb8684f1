"""Open a regular file without hanging on, or acting on, what is not one."""

from __future__ import annotations

import errno
import os
import stat


def open_regular(path: str) -> tuple[int, os.stat_result]:
    """Open a regular file for reading and return its descriptor and status.

    Opening a FIFO waits for a writer and opening some devices acts on them, so the kind is looked at before the
    open, and again on the descriptor, because the name can change hands in between.

    Args:
        path: the file; symbolic links are followed with the caller's rights.

    Raises:
        OSError: it cannot be opened; EINVAL with the text ``not a regular file`` when it is something else.
    """
    _require_regular(os.stat(path))
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        about = os.fstat(fd)
        _require_regular(about)
    except OSError:
        os.close(fd)
        raise
    return fd, about


def _require_regular(about: os.stat_result) -> None:
    """Refuse directories, FIFOs, sockets and devices."""
    if not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
