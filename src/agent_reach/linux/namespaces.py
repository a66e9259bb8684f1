"""Namespaces: create them in one clone, map one id, bring the inside up."""

from __future__ import annotations

import os

from agent_reach.linux import _syscalls

CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000
ALL = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET


def fork_into(flags: int = ALL) -> int:
    """Fork the calling process into new namespaces.

    Args:
        flags: CLONE_NEW* flags.

    Returns:
        0 in the child, which is pid 1 of the new pid namespace; the child's pid in the parent.

    Raises:
        SyscallError: ENOSPC where `user.max_user_namespaces` is used up or 0, EPERM where a policy forbids it.
    """
    return _syscalls.clone_fork(flags)


def write_map(pid: int, *, inner_uid: int, outer_uid: int, inner_gid: int, outer_gid: int) -> None:
    """Map one uid and one gid of a process's new user namespace; `setgroups` is denied first, as the kernel asks.

    Args:
        pid: the process, as the caller sees it.
        inner_uid: uid inside.
        outer_uid: uid outside; another than the writer's own needs CAP_SETUID there.
        inner_gid: gid inside.
        outer_gid: gid outside; another than the writer's own needs CAP_SETGID there.

    Raises:
        OSError: refused (user_namespaces(7)).
    """
    write_file(f"/proc/{pid}/setgroups", b"deny")
    write_file(f"/proc/{pid}/uid_map", b"%d %d 1" % (inner_uid, outer_uid))
    write_file(f"/proc/{pid}/gid_map", b"%d %d 1" % (inner_gid, outer_gid))


def write_file(path: str, text: bytes) -> None:
    """Write a kernel file in one call, as its handlers expect."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)


def set_hostname(name: str) -> None:
    """Name the new UTS namespace (sethostname(2)); the file in /proc/sys answers to the host's root only."""
    encoded = name.encode()
    _syscalls.syscall(_syscalls.number("sethostname"), encoded, len(encoded))


def map_for_mounts(uid: int, gid: int, outer_uid: int, outer_gid: int) -> int:
    """Return a descriptor of a throw-away user namespace for an id-mapped mount.

    Args:
        uid: owner of the files on disk.
        gid: group of the files on disk.
        outer_uid: uid under which the mount shows them.
        outer_gid: gid under which the mount shows them.

    Returns:
        Descriptor for `mounts.set_idmap`, close-on-exec. The namespace lives as long as it is open.
    """
    ready_read, ready_write = os.pipe()
    hold_read, hold_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(hold_write)
            _syscalls.unshare(CLONE_NEWUSER)
            os.write(ready_write, b"u")
            os.read(hold_read, 1)
        finally:
            os._exit(0)
    os.close(ready_write)
    os.close(hold_read)
    try:
        if not os.read(ready_read, 1):
            raise OSError(1, "no user namespace for an id-mapped mount")
        write_file(f"/proc/{pid}/uid_map", b"%d %d 1" % (uid, outer_uid))
        write_file(f"/proc/{pid}/gid_map", b"%d %d 1" % (gid, outer_gid))
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(hold_write)
        os.close(ready_read)
        os.waitpid(pid, 0)
