"""Names that other programs of the host run or obey later: none may appear in a writable grant by a run's doing.

What exists when a run starts is mounted read-only. What does not exist cannot be mounted over without leaving
a ghost on the host that others could remove, and with it the protection. So the guard refuses to create it, and
what native code created all the same is moved aside when the run ends, and reported.
"""

from __future__ import annotations

import os
import stat

from agent_reach.outcome import Denial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NAMES = (
    ".envrc",
    ".git",
    ".git/config",
    ".git/hooks",
    ".idea",
    ".pre-commit-config.yaml",
    ".reach",
    ".vscode",
    "reach.lock",
    "reach.yaml",
)
_MOST_ENTRIES = 200_000


def absent(directories: Iterable[str]) -> tuple[str, ...]:
    """List the protected paths that do not exist now.

    Args:
        directories: real paths of the writable grants.
    """
    paths = (os.path.join(directory, name) for directory in directories for name in NAMES)
    return tuple(path for path in paths if not os.path.lexists(path) and _stands_alone(path))


def _stands_alone(path: str) -> bool:
    """Say whether nothing above the path is in the list: a `.git` that appears is moved as a whole."""
    return not path.endswith((".git/config", ".git/hooks")) or os.path.isdir(os.path.dirname(path))


def move_aside(paths: Sequence[str], run_id: str) -> tuple[Denial, ...]:
    """Move away what has appeared at the paths, and say so.

    Args:
        paths: what `absent` returned when the run started.
        run_id: becomes part of the new name.
    """
    found = []
    for path in paths:
        if not os.path.lexists(path):
            continue
        away = f"{path}.reach-{run_id}"
        os.rename(path, away)
        clause = f"a protected name in a writable grant; moved to {away}"
        found.append(Denial("write", path, clause, f"- {{path: {path}, mode: w}}", layer="launcher"))
    return tuple(found)


def clear_set_id(directories: Iterable[str]) -> tuple[str, ...]:
    """Take set-id bits off every file below the writable grants: seccomp refuses them, this is the second wall.

    Returns:
        What had one, and a remark for each directory that is too large to be looked through.
    """
    cleared: list[str] = []
    for directory in directories:
        pending, seen = [directory], 0
        while pending:
            try:
                entries = list(os.scandir(pending.pop()))
            except OSError:
                continue
            seen += len(entries)
            if seen > _MOST_ENTRIES:
                cleared.append(f"{directory}: more than {_MOST_ENTRIES} entries, not looked through for set-id bits")
                break
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    cleared += _clear(entry)
    return tuple(cleared)


def _clear(entry: os.DirEntry[str]) -> list[str]:
    """Take the bits off one file, through a descriptor, so that an exchanged name hits nothing else."""
    if not entry.stat(follow_symlinks=False).st_mode & (stat.S_ISUID | stat.S_ISGID):
        return []
    descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o1777)
    finally:
        os.close(descriptor)
    return [entry.path]
