"""Landlock: rights over files and TCP ports that a process gives up for itself and its children.

Source: landlock(7); ABI 1 is Linux 5.13, 2 (REFER) 5.19, 3 (TRUNCATE) 6.2, 4 (TCP) 6.7, 5 (IOCTL_DEV) 6.10,
6 (scopes) 6.12, 7 (audit) 6.15.
"""

from __future__ import annotations

import os
from struct import pack

from agent_reach.linux import _syscalls

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
REMOVE_DIR = 1 << 4
REMOVE_FILE = 1 << 5
MAKE_CHAR = 1 << 6
MAKE_DIR = 1 << 7
MAKE_REG = 1 << 8
MAKE_SOCK = 1 << 9
MAKE_FIFO = 1 << 10
MAKE_BLOCK = 1 << 11
MAKE_SYM = 1 << 12
REFER = 1 << 13
TRUNCATE = 1 << 14

READ = READ_FILE | READ_DIR
WRITE = (
    WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE
)
# The rights that a rule on a file, not a directory, may hold.
ON_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE

_ALL_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1}
_ALL = (1 << 15) - 1
_NET_BIND_TCP = 1
_NET_CONNECT_TCP = 2
_SCOPE_ABSTRACT_UNIX = 1
_SCOPE_SIGNAL = 2
_RULE_PATH_BENEATH = 1
_CREATE_VERSION = 1
ABI_TRUNCATE = 3
ABI_NET = 4
ABI_SCOPE = 6


def abi() -> int:
    """Return the kernel's ABI version, 0 when Landlock is not built in or not switched on."""
    try:
        return _syscalls.landlock_create_ruleset(None, 0, _CREATE_VERSION)
    except OSError:
        return 0


def restrict(rules: tuple[tuple[str, int], ...], *, version: int, refuse_bind: bool, scopes: bool) -> None:
    """Give up every right over files that no rule grants, TCP connects, and the scopes.

    Args:
        rules: path and rights below it; a path that is missing is passed over, it grants nothing.
        version: ABI to use, at most the kernel's.
        refuse_bind: handle TCP bind too, granting no port.
        scopes: signals and abstract sockets only within the domain (ABI 6).

    Raises:
        SyscallError: refused.
    """
    handled = _ALL_BY_ABI.get(version, _ALL)
    attribute = pack("=Q", handled)
    if version >= ABI_NET:
        attribute += pack("=Q", _NET_CONNECT_TCP | (_NET_BIND_TCP if refuse_bind else 0))
    if version >= ABI_SCOPE:
        attribute += pack("=Q", (_SCOPE_ABSTRACT_UNIX | _SCOPE_SIGNAL) if scopes else 0)
    ruleset = _syscalls.landlock_create_ruleset(attribute, len(attribute))
    try:
        for path, rights in rules:
            _add_rule(ruleset, path, rights & handled)
        _syscalls.landlock_restrict_self(ruleset)
    finally:
        os.close(ruleset)


def _add_rule(ruleset: int, path: str, rights: int) -> None:
    """Add one rule; a file takes only the rights that a file can have."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if os.fstat(descriptor).st_mode & 0o170000 != 0o040000:
            rights &= ON_FILE
        if rights:
            _syscalls.landlock_add_rule(ruleset, _RULE_PATH_BENEATH, pack("=Qi", rights, descriptor))
    finally:
        os.close(descriptor)
