"""Bounded reads of another process's memory.

What comes back is the other side's to choose, and may change at any moment: copy once, check the copy, and
act on the copy alone.
Source: process_vm_readv(2), proc(5); both ask for the right to trace the process.
"""

from __future__ import annotations

import os
from errno import EFAULT, ENAMETOOLONG, ENOSYS, EPERM
from struct import pack

from agent_reach.linux._syscalls import SyscallError, address_of, number, syscall

LONGEST_READ = 1 << 16
PAGE_BYTES = 4096
HIGHEST_ADDRESS = (1 << 63) - 1


def read(pid: int, address: int, length: int) -> bytes:
    """Return memory of a process.

    Args:
        pid: process or thread id.
        address: where in its memory.
        length: bytes, at most 65,536.

    Returns:
        Exactly `length` bytes.

    Raises:
        ValueError: the length is out of bounds.
        OSError: the memory cannot be read whole (EFAULT or EIO), or not by us (EPERM), or the process has
            gone (ESRCH, ENOENT).
    """
    data = read_some(pid, address, length)
    if len(data) != length:
        raise SyscallError(EFAULT, "process_vm_readv", (pid, address, length))
    return data


def read_some(pid: int, address: int, length: int) -> bytes:
    """Return what can be read of some memory: less than asked where a page is missing.

    Args and errors are those of `read`.
    """
    if not 0 <= length <= LONGEST_READ:
        raise ValueError(f"a read of {length} bytes is out of bounds: 0 to {LONGEST_READ}")
    if not 0 <= address <= HIGHEST_ADDRESS - length:
        raise SyscallError(EFAULT, "process_vm_readv", (pid, address, length))
    buffer = bytearray(length)
    local = pack("@QQ", address_of(buffer), length)
    remote = pack("@QQ", address, length)
    try:
        count = syscall(number("process_vm_readv"), pid, local, 1, remote, 1, 0)
    except SyscallError as error:
        # Docker's filter refuses the call where the kernel is older than 4.8 or a profile says so.
        if error.errno not in {EPERM, ENOSYS}:
            raise
        return _read_proc(pid, address, length)
    return bytes(buffer[:count])


def read_string(pid: int, address: int, limit: int = PAGE_BYTES) -> bytes:
    """Return a string that ends in a null byte, without it.

    Args:
        pid: process or thread id.
        address: where it starts.
        limit: most bytes, null byte included; PATH_MAX is 4,096.

    Raises:
        OSError: as `read`; ENAMETOOLONG when no null byte comes within the limit.
    """
    found = bytearray()
    while len(found) < limit:
        # Never across a page border in one step: the string may end before a page that does not exist.
        step = min(PAGE_BYTES - (address + len(found)) % PAGE_BYTES, limit - len(found))
        piece = read(pid, address + len(found), step)
        end = piece.find(b"\0")
        if end >= 0:
            return bytes(found) + piece[:end]
        found += piece
    raise SyscallError(ENAMETOOLONG, "process_vm_readv", (pid, address, limit))


def _read_proc(pid: int, address: int, length: int) -> bytes:
    """Read through /proc/PID/mem."""
    descriptor = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, length, address)
    finally:
        os.close(descriptor)
