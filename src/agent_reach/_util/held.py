"""Directories that belong to somebody for as long as a lock on them is held, and are rubbish afterwards.

The lock is flock(2) on the directory itself: the kernel lets go of it when the last process that has the
descriptor is gone, however it ended. It works on every file system, control groups among them.
"""

from __future__ import annotations

import errno
import fcntl
import os

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make(path: str, mode: int = 0o700) -> int:
    """Make a directory and hold it.

    Args:
        path: absolute path, which must not exist.
        mode: permission bits, less the umask.

    Returns:
        Descriptor; the directory is ours while a copy of it is open.

    Raises:
        OSError: FileExistsError, or what mkdir(2) says.
    """
    while True:
        os.mkdir(path, mode)
        try:
            descriptor = os.open(path, _OPEN)
        except FileNotFoundError:
            continue
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Between mkdir and flock it belonged to nobody: somebody who clears up may have removed it.
        if _still_there(descriptor, path):
            return descriptor
        os.close(descriptor)


def take(path: str) -> int:
    """Return a descriptor that holds a directory which nobody held, -1 when somebody does or it is gone."""
    try:
        descriptor = os.open(path, _OPEN)
    except OSError:
        return -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return -1
    if _still_there(descriptor, path):
        return descriptor
    os.close(descriptor)
    return -1


def _still_there(descriptor: int, path: str) -> bool:
    """Say whether a path still leads to what is open."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False


def remove_tree(path: str) -> None:
    """Remove a directory and everything in it; what the kernel does not let us remove stays.

    Whoever filled it may have done so to defeat this: no name is looked up twice or followed, and neither depth
    nor a mode without rights stops the walk, which holds one descriptor. Nobody else may be at work in it.
    """
    parent, name = os.path.split(path)
    here = os.open(parent, _OPEN)
    try:
        levels = [("", [name])]
        while levels:
            inside, pending = levels[-1]
            if pending:
                here, below = _remove_one(here, pending.pop())
                if below:
                    levels.append(below)
                continue
            levels.pop()
            if inside:
                here = _into("..", here)
                _ignoring(os.rmdir, inside, here)
    finally:
        os.close(here)


def _remove_one(here: int, name: str) -> tuple[int, tuple[str, list[str]] | None]:
    """Remove a file or an empty directory; of another directory return the descriptor, its name and its content."""
    if _ignoring(os.unlink, name, here) or _ignoring(os.rmdir, name, here):
        return here, None
    _ignoring(lambda inner, dir_fd: os.chmod(inner, 0o700, dir_fd=dir_fd), name, here)
    try:
        there = _into(name, here)
    except OSError:
        return here, None
    return there, (name, os.listdir(there))


def _into(name: str, here: int) -> int:
    """Open a directory in the place of another one."""
    there = os.open(name, _OPEN, dir_fd=here)
    os.close(here)
    return there


def _ignoring(call: object, name: str, here: int) -> bool:
    """Say whether a call on a name in a directory succeeded."""
    try:
        call(name, dir_fd=here)  # type: ignore[operator]  # a function of a name and dir_fd
    except OSError as error:
        return error.errno == errno.ENOENT
    return True
