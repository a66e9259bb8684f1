"""The fresh directories of a run in tier ``reduced``: HOME, TMPDIR, delivered files, the guard."""

from __future__ import annotations

import os

from agent_reach._util import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.plan.model import SandboxPlan

_INSIDE = ("home", "tmp", "guard")


def make(plan: SandboxPlan, guard_files: tuple[tuple[str, bytes], ...]) -> int:
    """Make the directories.

    Returns:
        Descriptor of the directory, held for as long as a copy of it is open; staged files are written through it.
    """
    directory = held.make(plan.private)
    for name in _INSIDE:
        os.mkdir(os.path.join(plan.private, name), 0o700)
    for name, content in guard_files:
        path = os.path.join(plan.private, "guard", name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
        os.write(descriptor, content)
        os.close(descriptor)
    return directory


def remove(path: str) -> None:
    """Remove the directories of a run, all of whose processes have ended."""
    try:
        held.remove_tree(path)
    except OSError:
        return


def collect(like: str) -> None:
    """Remove what runs left behind whose launcher and supervisor were both killed: nobody holds the lock.

    Args:
        like: path of such a directory; those beside it that are named alike and belong to us are looked at.
    """
    parent, example = os.path.split(like)
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        # Somebody may keep files of their own in /tmp/reach-something: only what has our shape is ours.
        if not _named_like(name, example) or not _is_ours(path):
            continue
        directory = held.take(path)
        if directory < 0:
            continue
        remove(path)
        os.close(directory)


def _is_ours(path: str) -> bool:
    """Say whether something belongs to us; another run may be removing it this moment."""
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except FileNotFoundError:
        return False


def _named_like(name: str, example: str) -> bool:
    """Say whether two names differ only in the random digits behind the last dash."""
    start, _, digits = name.rpartition("-")
    wanted, _, sample = example.rpartition("-")
    return start == wanted and len(digits) == len(sample) and not set(digits) - set("0123456789abcdef")
