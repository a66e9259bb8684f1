"""A terminal of our own for the program: opened inside, where its file system is the sandbox's."""

from __future__ import annotations

import fcntl
import os

from agent_reach._util.record import Record

_TIOCSCTTY = 0x540E
_TIOCSPTLCK = 0x40045431
_TIOCGPTN = 0x80045430
_SIGTTOU = 22


class Terminal(Record):
    """Both sides of a pseudo-terminal, as descriptors; -1 where the program gets pipes only."""

    master: int = -1
    slave: int = -1


def open_terminal() -> Terminal:
    """Open a pseudo-terminal and make it the controlling one of the calling session leader."""
    master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(master, _TIOCSPTLCK, bytes(4))
    number = int.from_bytes(fcntl.ioctl(master, _TIOCGPTN, bytes(4)), "little")
    slave = os.open(f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(slave, _TIOCSCTTY, 0)
    return Terminal(master, slave)


def take_foreground(terminal: Terminal) -> None:
    """Make the calling process the terminal's foreground job, as a shell does with a command.

    Its parent stays in the session, in another group: the kernel ignores Ctrl-Z in an orphaned group.
    """
    import _signal  # type: ignore[import-not-found]  # the C half of `signal`, whose import costs 9 ms

    os.setpgid(0, 0)
    before = _signal.signal(_SIGTTOU, _signal.SIG_IGN)
    os.tcsetpgrp(terminal.slave, os.getpid())
    _signal.signal(_SIGTTOU, before)
