"""Run a command in a process to which system calls are refused.

    python nouserns.py [--only] [--refuse CALL=ERRNO]... COMMAND ARGUMENTS

What hardened kernels, AppArmor and container profiles do, done with a filter of our own: clone and unshare
with CLONE_NEWUSER fail with EPERM, clone3 is not there; with --only those of --refuse alone. The filter has
no listener, so reach can have one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from agent_reach.linux import _syscalls, caps
from agent_reach.linux.abi import table

NUMBERS = table(_syscalls.machine())
NEWUSER = 0x10000000
ALLOW, REFUSE, MISSING = 0x7FFF0000, 0x50000 | 1, 0x50000 | 38
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06


def program(user_namespaces, refused):
    """Return the filter as classic BPF.

    Args:
        user_namespaces: whether they are refused.
        refused: further calls by name, with the error number.
    """
    lines = [(LOAD, 0, 0, 0)]  # the call's number
    for name, number in refused.items():
        lines += [(EQUAL, 0, 1, NUMBERS[name]), (RETURN, 0, 0, 0x50000 | number)]
    if user_namespaces:
        lines += [
            (EQUAL, 6, 0, NUMBERS["clone3"]),
            (EQUAL, 1, 0, NUMBERS["clone"]),
            (EQUAL, 0, 3, NUMBERS["unshare"]),
            (LOAD, 0, 0, 16),  # the low half of its first argument
            (ANY_BIT, 0, 1, NEWUSER),
            (RETURN, 0, 0, REFUSE),
            (RETURN, 0, 0, ALLOW),
            (RETURN, 0, 0, MISSING),
        ]
    return b"".join(struct.pack("=HBBI", *line) for line in [*lines, (RETURN, 0, 0, ALLOW)])


def install(code):
    """Put this process under a filter."""
    caps.no_new_privileges()
    lines = ctypes.create_string_buffer(code, len(code))
    whole = ctypes.create_string_buffer(struct.pack("=H6xQ", len(code) // 8, ctypes.addressof(lines)))
    _syscalls.syscall(NUMBERS["seccomp"], 1, 0, ctypes.addressof(whole))


def main():
    """Read the command line, install the filter, become the command."""
    words, user_namespaces, refused = sys.argv[1:], True, {}
    if words[0] == "--only":
        words.pop(0)
        user_namespaces = False
    while words[0] == "--refuse":
        name, _, number = words[1].partition("=")
        refused[name] = getattr(errno, number)
        del words[:2]
    install(program(user_namespaces, refused))
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
