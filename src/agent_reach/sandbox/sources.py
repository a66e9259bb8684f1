"""Open everything that the plan mounts, before the host's file system goes out of sight.

This is the one step that needs the caller's rights over files; when root starts the run it is also the only
one that runs as root.
"""

from __future__ import annotations

import errno
import os

from agent_reach.errors import SetupError, Unavailable
from agent_reach.linux import mounts, namespaces
from agent_reach.plan.model import Bind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.plan.model import SandboxPlan

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LARGEST_COPY = 64 << 20


class Sources:
    """Detached trees by target, and contents where a tree could not be had.

    Args:
        trees: descriptor of the tree for each bind's target; ``/dev/NAME`` for devices.
        copies: content of read-only files that no mount could show to the run's uid.
    """

    def __init__(self) -> None:
        self.trees: dict[str, int] = {}
        self.copies: dict[str, bytes] = {}


def open_sources(plan: SandboxPlan, run_uid: int | None, run_gid: int | None) -> Sources:
    """Open every source once, by path, and refuse one that moved since the plan was made.

    Args:
        plan: what is to be mounted.
        run_uid: uid of the sandbox on the host when root starts it, else None.
        run_gid: gid of the sandbox on the host when root starts it, else None.

    Raises:
        SetupError: a source is gone, or is not what it was.
        Unavailable: root cannot show a source to the sandbox's uid.
    """
    sources = Sources()
    maps: dict[tuple[int, int], int] = {}
    for mount in plan.mounts:
        if isinstance(mount, Bind):
            _open_bind(mount, sources, maps, run_uid, run_gid)
    for name in _DEVICES:
        sources.trees[f"/dev/{name}"] = mounts.clone_tree(f"/dev/{name}", recursive=False)
    for descriptor in maps.values():
        os.close(descriptor)
    return sources


def _open_bind(
    bind: Bind, sources: Sources, maps: dict[tuple[int, int], int], run_uid: int | None, run_gid: int | None
) -> None:
    """Open one bind's tree and set its attributes."""
    try:
        tree = mounts.clone_tree(bind.source)
    except OSError as error:
        raise SetupError("open source", error.errno or 0, bind.source) from error
    about = os.fstat(tree)
    if bind.inode and (about.st_dev, about.st_ino) != (bind.device, bind.inode):
        # Between plan and mount somebody exchanged the path, by a rename or a symlink: what would be shown
        # is not what was checked.
        os.close(tree)
        raise SetupError("open source", errno.ESTALE, f"{bind.source} changed while the run was set up")
    if run_uid is not None and run_gid is not None:
        tree = _as_run_uid(bind, tree, about, sources, maps, (run_uid, run_gid))
        if tree < 0:
            return
    attributes = mounts.MOUNT_ATTR_NOSUID | mounts.MOUNT_ATTR_NODEV
    if not bind.writable:
        attributes |= mounts.MOUNT_ATTR_RDONLY
    mounts.set_attributes(tree, attributes)
    sources.trees[bind.target] = tree


def _as_run_uid(  # noqa: PLR0917 - one decision, all of whose grounds are needed
    bind: Bind,
    tree: int,
    about: os.stat_result,
    sources: Sources,
    maps: dict[tuple[int, int], int],
    run: tuple[int, int],
) -> int:
    """Make a tree usable for the run's uid (DESIGN section 3, rule 4): plain, id-mapped, or copied.

    Returns:
        The tree, or -1 when the content was copied instead.
    """
    if bind.why == "system" or (about.st_uid, about.st_gid) == run:
        return tree
    owner = (about.st_uid, about.st_gid)
    if owner not in maps:
        maps[owner] = namespaces.map_for_mounts(*owner, *run)
    try:
        mounts.set_idmap(tree, maps[owner])
    except OSError:
        if _others_may(about, bind):
            return tree
        os.close(tree)
        if bind.writable or bind.directory or about.st_size > _LARGEST_COPY:
            raise Unavailable(
                "an id-mapped mount",
                needed=f"to show {bind.source} (owner {owner[0]}:{owner[1]}) to the unprivileged uid of the sandbox",
                found=f"file system {_file_system(bind.source)} refuses it",
                fix="start reach as the owner instead of root, or keep the files on ext4, xfs, btrfs or tmpfs",
            ) from None
        with open(bind.source, "rb") as stream:
            sources.copies[bind.target] = stream.read(_LARGEST_COPY)
        return -1
    return tree


def _others_may(about: os.stat_result, bind: Bind) -> bool:
    """Say whether the mode lets any uid do what the grant allows."""
    needed = 0o4 | (0o2 if bind.writable else 0) | (0o1 if bind.directory else 0)
    return about.st_mode & needed == needed


def _file_system(path: str) -> str:
    """Name the file system of a path, for a message."""
    best = ("", "unknown")
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            _, place, kind, *_ = line.split()
            if path.startswith(place) and len(place) >= len(best[0]):
                best = (place, kind)
    return best[1]
