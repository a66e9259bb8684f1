"""Read a regular file of the caller, bounded."""

from __future__ import annotations

import errno
import os
import stat

from agent_reach._util.regular import open_regular
from agent_reach._util.visible import visible
from agent_reach.providers.faults import NotFoundError, SourceError

_CHUNK = 1024 * 1024


def read_regular(path: str, limit: int) -> bytes:
    """Return the content of a regular file.

    Args:
        path: absolute path; symbolic links are followed with the caller's rights.
        limit: most bytes to accept.

    Raises:
        NotFoundError: there is nothing at that path.
        SourceError: it cannot be read, is not a regular file or is too long.
    """
    data, _about = read_with_owner(path, limit)
    return data


def read_with_owner(path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """Return the content of a regular file and what the kernel says about the file that was read.

    Args:
        path: absolute path.
        limit: most bytes to accept.

    Raises:
        NotFoundError: there is nothing at that path.
        SourceError: it cannot be read, is not a regular file or is too long.
    """
    try:
        fd, about = open_regular(path)
        try:
            data = _read(fd, limit + 1)
        finally:
            os.close(fd)
    except OSError as error:
        raise _translate(error, path) from None
    if len(data) > limit:
        raise SourceError(f"{visible(path)} is longer than {limit} bytes")
    return data, about


def require_private(about: os.stat_result, path: str) -> None:
    """Refuse a file that somebody other than the caller or root could have written.

    Args:
        about: status of the file or directory.
        path: its name, for the message.

    Raises:
        SourceError: it belongs to somebody else, or others may write it.
    """
    if about.st_uid not in (0, os.geteuid()):
        raise SourceError(f"{visible(path)} belongs to uid {about.st_uid}, not to you; reach does not run it")
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SourceError(f"{visible(path)} can be written by others; chmod go-w {visible(path)}")


def _read(fd: int, most: int) -> bytes:
    """Read up to `most` bytes; a file of /proc has size 0 and is read to its end like any other."""
    parts = []
    while most > 0:
        part = os.read(fd, min(most, _CHUNK))
        if not part:
            break
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _translate(error: OSError, path: str) -> Exception:
    """Tell *there is none* from *it could not be read*."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFoundError(f"no such file: {visible(path)}")
    return SourceError(f"{visible(path)}: {error.strerror}")
