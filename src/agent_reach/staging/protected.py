"""Names that other programs of the host run or obey later: none may appear in a writable grant by a run's doing.

What exists when a run starts is mounted read-only. What does not exist cannot be mounted over without leaving
a ghost on the host that others could remove, and with it the protection. So the guard refuses to create it, and
what native code created all the same is moved aside when the run ends, and reported.
"""

from __future__ import annotations

import os
import stat

from agent_reach._util.protected import IN_GIT, NAMES
from agent_reach.outcome import Denial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOST_ENTRIES = 200_000


def unmounted(directories: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """List the protected paths that no mount keeps: those that do not exist now, and symbolic links.

    Args:
        directories: real paths of the writable grants.

    Returns:
        Path, and what the link says, empty for nothing.
    """
    paths = (os.path.join(directory, name) for directory in directories for name in (*NAMES, *IN_GIT))
    return tuple((path, _link(path)) for path in paths if not _is_mounted(path) and _stands_alone(path))


def _is_mounted(path: str) -> bool:
    """Say whether something lies there that can be mounted read-only; a mount does not cover a link."""
    return os.path.lexists(path) and not os.path.islink(path)


def _stands_alone(path: str) -> bool:
    """Say whether nothing above the path is in the list: a `.git` that appears is moved as a whole."""
    return not path.endswith(IN_GIT) or _is_mounted(os.path.dirname(path))


def _link(path: str) -> str:
    """Return what a link says, or nothing."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def move_aside(watched: Sequence[tuple[str, str]], run_id: str) -> tuple[Denial, ...]:
    """Move away what has appeared at the paths, and say so.

    Args:
        watched: what `unmounted` returned when the run started.
        run_id: becomes part of the new name.
    """
    found = []
    for path, link in watched:
        # With a link in the place of `.git` a path below it leads out of the grant: it is the link that goes.
        appeared = os.path.dirname(path) if os.path.islink(os.path.dirname(path)) else path
        if not os.path.lexists(appeared) or (appeared == path and link and _link(path) == link):
            continue
        away = f"{appeared}.reach-{run_id}"
        try:
            _rename(appeared, away)
            clause = f"a protected name in a writable grant; moved to {away}"
        except OSError as error:
            clause = f"a protected name in a writable grant; it could not be moved away: {error.strerror}"
        found.append(Denial("write", appeared, clause, f"- {{path: {appeared}, mode: w}}", layer="launcher"))
    return tuple(found)


def _rename(path: str, away: str) -> None:
    """Rename, also in a directory of ours whose permission to write the program has taken away."""
    try:
        os.rename(path, away)
    except PermissionError:
        parent = os.path.dirname(path)
        os.chmod(parent, stat.S_IMODE(os.stat(parent).st_mode) | 0o300)
        os.rename(path, away)


def clear_set_id(directories: Iterable[str], since: float) -> tuple[str, ...]:
    """Take set-id bits off the files below the writable grants that a run has touched.

    Seccomp refuses them, this is the second wall.

    Args:
        directories: real paths of the writable grants.
        since: when the run started; what has not changed since is the host's own.

    Returns:
        What had one, and a remark for each directory that is too large to be looked through.
    """
    # The kernel stamps changes with a clock that is some milliseconds behind.
    earliest = int((since - 1) * 1e9)
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
                elif entry.is_file(follow_symlinks=False) and _clear(entry.path, earliest):
                    cleared.append(entry.path)
    return tuple(cleared)


def _clear(path: str, earliest: int) -> bool:
    """Take the bits off one file that we may change, through a descriptor: an exchanged name hits nothing else."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        about = os.fstat(descriptor)
        if not about.st_mode & (stat.S_ISUID | stat.S_ISGID) or about.st_ctime_ns < earliest:
            return False
        # O_PATH needs no right to read, which the program may have taken away; fchmod(2) does not take it.
        os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IMODE(about.st_mode) & 0o1777)
    except OSError:
        return False  # somebody else's: no program of ours can have made it
    finally:
        os.close(descriptor)
    return True
