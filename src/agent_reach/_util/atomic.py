"""Files that are there whole or not at all."""

from __future__ import annotations

import os


def put(path: str, data: bytes) -> None:
    """Write a file of mode 0600 in one step, in the place of one that is there.

    Args:
        path: where it goes; the directory is the caller's alone.
        data: the content.

    Raises:
        OSError: the disk is full or read-only, or another process of that pid is writing; nothing is left behind.
    """
    scratch = f"{path}.{os.getpid()}"
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb", buffering=0) as stream:
            view = memoryview(data)
            while view:
                view = view[stream.write(view) :]
        os.rename(scratch, path)
    except OSError:
        os.unlink(scratch)
        raise
