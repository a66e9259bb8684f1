"""The fresh directories of a run in tier ``reduced``: HOME, TMPDIR, delivered files, the guard."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.plan.model import SandboxPlan

PREFIX = "reach-"


def make(plan: SandboxPlan, guard_files: tuple[tuple[str, bytes], ...]) -> int:
    """Make the directories.

    Returns:
        Descriptor of the directory, locked for as long as a copy of it is open; staged files are written through it.
    """
    import fcntl

    os.mkdir(plan.private, 0o700)
    for name in ("home", "tmp", "secrets", "guard"):
        os.mkdir(os.path.join(plan.private, name), 0o700)
    for name, content in guard_files:
        path = os.path.join(plan.private, "guard", name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
        os.write(descriptor, content)
        os.close(descriptor)
    directory = os.open(plan.private, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(directory, fcntl.LOCK_EX)
    return directory


def remove(path: str) -> None:
    """Remove the directories, through descriptors, so that no symlink leads elsewhere."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def collect(parent: str = "/tmp") -> None:  # noqa: S108 - where `prepare` puts them
    """Remove what runs left behind whose launcher and supervisor were both killed: nobody holds the lock."""
    import fcntl

    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        if not name.startswith(PREFIX) or os.path.islink(path) or os.lstat(path).st_uid != os.geteuid():
            continue
        try:
            directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(path)
        except OSError:
            continue
        finally:
            os.close(directory)
