"""Calls on sockets that Python's `socket` cannot express: raw addresses, and another process's epoll."""

from __future__ import annotations

import os
from struct import pack

from agent_reach.linux import _syscalls

_CLONE_FILES = 0x400
_EPOLL_CTL_ADD = 1


def connect(fd: int, address: bytes) -> int:
    """Connect a socket to an address given as the bytes of a struct sockaddr.

    Returns:
        0, or the error number.
    """
    try:
        _syscalls.syscall(_call("connect"), fd, address, len(address))
    except OSError as error:
        return error.errno or 0
    return 0


def add_to_epoll(epoll_fd: int, source: int, number: int, events: int, data: int) -> None:
    """Register a file in an epoll under a descriptor number of our choice; ends with a private table of files.

    An epoll keeps its entries by file and number, and the owner changes and removes them by that pair. So the
    file must sit on the owner's number while it is added. Only for a thread that ends afterwards: it leaves
    the table of files that the process's threads share.

    Args:
        epoll_fd: the epoll.
        source: descriptor of the file here.
        number: its number in the process that owns the epoll.
        events: EPOLL* bits.
        data: 64 bits that the owner gets back.

    Raises:
        OSError: the number is beyond our RLIMIT_NOFILE, or the epoll is full.
    """
    _syscalls.unshare(_CLONE_FILES)
    if epoll_fd == number:
        epoll_fd = os.dup(epoll_fd)
    os.dup2(source, number)
    # struct epoll_event is packed on x86-64 only.
    layout = "=IQ" if _syscalls.machine() == "x86_64" else "=IxxxxQ"
    _syscalls.syscall(_call("epoll_ctl"), epoll_fd, _EPOLL_CTL_ADD, number, pack(layout, events, data))


def _call(name: str) -> int:
    """Return a call's number on this machine."""
    from agent_reach.linux.abi import table

    return table(_syscalls.machine())[name]
