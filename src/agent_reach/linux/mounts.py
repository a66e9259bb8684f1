"""Mounts by descriptor: clone a tree, set its attributes while detached, attach it.

Source: open_tree(2), move_mount(2), mount_setattr(2); Linux 5.12.
"""

from __future__ import annotations

import os

from agent_reach.linux import _syscalls

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REC = 0x4000
MS_SLAVE = 1 << 19
MNT_DETACH = 2

MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4
MOUNT_ATTR_NOEXEC = 0x8
MOUNT_ATTR_IDMAP = 0x0010_0000

_OPEN_TREE_CLONE = 1
_AT_RECURSIVE = 0x8000
_AT_EMPTY_PATH = 0x1000
_AT_SYMLINK_NOFOLLOW = 0x100
_MOVE_MOUNT_F_EMPTY_PATH = 4


def stop_propagation() -> None:
    """Receive mounts from outside no longer back out: make every mount of this namespace a slave."""
    _syscalls.mount(None, "/", None, MS_REC | MS_SLAVE)


def clone_tree(path: str, *, recursive: bool = True) -> int:
    """Return a detached copy of the tree at `path`; a final symlink is not followed.

    Raises:
        SyscallError: EPERM without CAP_SYS_ADMIN over the mount namespace.
    """
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_SYMLINK_NOFOLLOW | (_AT_RECURSIVE if recursive else 0)
    return _syscalls.open_tree(_syscalls.AT_FDCWD, path, flags)


def set_attributes(tree: int, attributes: int, *, recursive: bool = True) -> None:
    """Add MOUNT_ATTR_* bits to a detached tree."""
    flags = _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    _syscalls.mount_setattr(tree, "", flags, attributes)


def set_idmap(tree: int, user_namespace: int) -> None:
    """Show a detached tree's files under mapped ids; only before it is attached.

    Raises:
        SyscallError: EINVAL where the filesystem has no id-mapped mounts (overlayfs, NFS, proc, sysfs ...), Linux 5.12.
    """
    _syscalls.mount_setattr(tree, "", _AT_EMPTY_PATH, MOUNT_ATTR_IDMAP, 0, 0, user_namespace)


def attach(tree: int, path: str) -> None:
    """Attach a detached tree at `path`."""
    _syscalls.move_mount(tree, "", _syscalls.AT_FDCWD, path, _MOVE_MOUNT_F_EMPTY_PATH)


def mount_tmpfs(path: str, *, size: int, inodes: int, mode: int, flags: int = MS_NOSUID | MS_NODEV) -> None:
    """Mount a tmpfs bounded in bytes and inodes; each alone would leave the other to fill the memory."""
    _syscalls.mount("tmpfs", path, "tmpfs", flags, f"size={size},nr_inodes={inodes},mode={mode:o}")


def mount_proc(path: str) -> None:
    """Mount the procfs of the pid namespace, showing a process only those that it could trace.

    Raises:
        SyscallError: EPERM where the visible /proc has masked paths, as in an unprivileged container.
    """
    _syscalls.mount("proc", path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=invisible")


def mount_devpts(path: str) -> None:
    """Mount a pseudo-terminal filesystem of our own."""
    _syscalls.mount("devpts", path, "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")


def pivot_here() -> None:
    """Make the working directory, a mount point, the root; the old root is stacked on it until it is detached."""
    # Both arguments may be the same directory (pivot_root(2), "pivot_root(".", ".")").
    _syscalls.pivot_root(".", ".")


def detach_old_root() -> None:
    """Let go of the root that `pivot_here` stacked on the new one."""
    _syscalls.umount2(".", MNT_DETACH)
    os.chdir("/")


def unmount(path: str) -> None:
    """Take a mount out of the tree; it lives on while descriptors and other mounts of it do."""
    _syscalls.umount2(path, MNT_DETACH)


def set_read_only(path: str) -> None:
    """Make one attached mount read-only, not those below it."""
    _syscalls.mount_setattr(_syscalls.AT_FDCWD, path, 0, MOUNT_ATTR_RDONLY)
