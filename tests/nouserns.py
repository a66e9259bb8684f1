"""Run a command in a process to which user namespaces are refused: python nouserns.py COMMAND ARGUMENTS.

What hardened kernels, AppArmor and container profiles do, done with a filter of our own: clone and unshare
with CLONE_NEWUSER fail with EPERM, clone3 is not there. The filter has no listener, so reach can have one.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

from agent_reach.linux import _syscalls, caps
from agent_reach.linux.abi import table

NUMBERS = table(_syscalls.machine())
NEWUSER = 0x10000000
ALLOW, REFUSE, MISSING = 0x7FFF0000, 0x50000 | 1, 0x50000 | 38
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06


def program():
    """Return the filter as classic BPF."""
    clone, unshare, clone3 = (NUMBERS[name] for name in ("clone", "unshare", "clone3"))
    lines = [
        (LOAD, 0, 0, 0),  # the call's number
        (EQUAL, 6, 0, clone3),
        (EQUAL, 1, 0, clone),
        (EQUAL, 0, 3, unshare),
        (LOAD, 0, 0, 16),  # the low half of its first argument
        (ANY_BIT, 0, 1, NEWUSER),
        (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, MISSING),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def refuse_user_namespaces():
    """Install the filter on this process."""
    caps.no_new_privileges()
    code = program()
    lines = ctypes.create_string_buffer(code, len(code))
    whole = ctypes.create_string_buffer(struct.pack("=H6xQ", len(code) // 8, ctypes.addressof(lines)))
    _syscalls.syscall(NUMBERS["seccomp"], 1, 0, ctypes.addressof(whole))


if __name__ == "__main__":
    refuse_user_namespaces()
    os.execvp(sys.argv[1], sys.argv[1:])
