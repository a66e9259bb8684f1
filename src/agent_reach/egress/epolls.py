"""Epoll entries of a socket whose file is replaced: they die with the old file and are made again on the new.

Some programs register a socket in an epoll, then connect it, then wait. Without this they wait for ever.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread

from agent_reach._util.record import Record
from agent_reach.linux import pidfd, sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.egress.call import Call

_EPOLL_LINK = "anon_inode:[eventpoll]"
_MOST_DESCRIPTORS = 1024
_MOST_ENTRIES = 8
_EPOLLWAKEUP = 1 << 29  # keeps the whole machine awake; needs a capability that the program does not have
_INFO_BYTES = 1 << 16


class Entry(Record):
    """One registration: the epoll's descriptor in the caller, event bits, and what the caller gets back."""

    epoll: int
    events: int
    data: int


def entries(tid: int, number: int) -> list[Entry]:
    """Return the epoll entries of a descriptor of a thread, as far as its own table of files shows them."""
    found: list[Entry] = []
    try:
        names = os.listdir(f"/proc/{tid}/fd")[:_MOST_DESCRIPTORS]
    except OSError:
        return found
    for name in names:
        try:
            if os.readlink(f"/proc/{tid}/fd/{name}") == _EPOLL_LINK:
                found += _of_epoll(tid, int(name), number)
        except (OSError, ValueError):  # closed meanwhile
            continue
        if len(found) >= _MOST_ENTRIES:
            break
    return found[:_MOST_ENTRIES]


def register(call: Call, source: int, number: int, wanted: list[Entry]) -> None:
    """Make the entries again for a file of ours that now sits on the caller's descriptor.

    Each in a thread of its own, which ends with the private table of files that it needs. What fails is left
    out: the program then waits for its own time limit.
    """
    for entry in wanted:
        done = allocate_lock()
        done.acquire()
        start_new_thread(_register, (call.thread(), source, number, entry, done.release))
        done.acquire()


def _register(thread: int, source: int, number: int, entry: Entry, done: object) -> None:
    """Make one entry; runs in a thread that ends behind it."""
    try:
        epoll_fd = pidfd.get_fd(thread, entry.epoll)
        sockets.add_to_epoll(epoll_fd, source, number, entry.events & ~_EPOLLWAKEUP, entry.data)
    except OSError:
        return
    finally:
        done()  # type: ignore[operator]  # the bound method of a lock


def _of_epoll(tid: int, epoll: int, number: int) -> list[Entry]:
    """Return the entries of one epoll for a descriptor, from lines ``tfd: N events: HEX data: HEX`` (proc(5))."""
    fd = os.open(f"/proc/{tid}/fdinfo/{epoll}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(fd, _INFO_BYTES)
    finally:
        os.close(fd)
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 6 and words[0] == b"tfd:" and int(words[1]) == number:
            found.append(Entry(epoll, int(words[3], 16), int(words[5], 16)))
    return found
