"""Look at paths: resolve once, remember the identity."""

from __future__ import annotations

import errno
import os
import stat

from agent_reach.host.model import PathFact

_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFSOCK: "socket",
    stat.S_IFIFO: "fifo",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFLNK: "symlink",
}


def look(path: str) -> PathFact:
    """Resolve `path` and say what lies there.

    Args:
        path: absolute path.

    Returns:
        The fact; a path that does not exist, or that the caller may not reach, is ``missing``.
    """
    try:
        real = os.path.realpath(path, strict=True)
        about = os.lstat(real)
    except FileNotFoundError:
        kind = "symlink" if os.path.islink(path) else "missing"
        return PathFact(path=path, real=os.path.realpath(path), kind=kind)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL):
            return PathFact(path=path, real=path)
        raise
    return PathFact(
        path=path,
        real=real,
        kind=_KINDS.get(stat.S_IFMT(about.st_mode), "device"),
        device=about.st_dev,
        inode=about.st_ino,
        uid=about.st_uid,
        gid=about.st_gid,
        mode=stat.S_IMODE(about.st_mode),
    )


def beneath(path: str, root: str) -> bool:
    """Say whether `path` is `root` or lies below it (both absolute and normal)."""
    return path == root or path.startswith(root if root.endswith("/") else root + "/")
