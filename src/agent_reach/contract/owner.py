"""Files that may say what a run is allowed: read once, by descriptor, after a look at who could have written them."""

from __future__ import annotations

import os
import stat

from agent_reach.contract.sink import Refusal, shown

_MAX_BYTES = (1 << 20) + 1


def read_owned(path: str) -> bytes:
    """Return the content of a contract, at most one byte more than a contract may have.

    The checks are made on the open descriptor, so that the file cannot be exchanged between look and read.

    Args:
        path: where it is.

    Raises:
        Refusal: it cannot be read, is no regular file, or somebody else could have written it.
    """
    try:
        # O_NONBLOCK: a FIFO would hold open(2) for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise Refusal("E_FILE", f"{shown(path)} cannot be read: {error.strerror}") from None
    try:
        check_owner(path, os.fstat(descriptor))
        return _read_all(descriptor)
    except OSError as error:
        raise Refusal("E_FILE", f"{shown(path)} cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)


def check_owner(path: str, status: os.stat_result) -> None:
    """Refuse a contract that another ordinary user owns or that everybody can write.

    Args:
        path: for the message.
        status: of the open file.

    Raises:
        Refusal: one of these, or no regular file.
    """
    if not stat.S_ISREG(status.st_mode):
        raise Refusal("E_FILE", f"{shown(path)} is not a regular file")
    if status.st_uid not in (0, os.geteuid()):
        message = f"{shown(path)} belongs to another user (uid {status.st_uid})"
        raise Refusal("E_PERMISSIONS", message, f"look at it, then make it yours: chown {os.geteuid()} {path}")
    if status.st_mode & stat.S_IWOTH:
        message = f"{shown(path)} can be written by everybody (mode {stat.S_IMODE(status.st_mode):04o})"
        raise Refusal("E_PERMISSIONS", message, f"look at it, then: chmod o-w {path}")


def _read_all(descriptor: int) -> bytes:
    parts = []
    left = _MAX_BYTES
    while left > 0:
        part = os.read(descriptor, left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
