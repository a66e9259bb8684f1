"""One refused call of each class, made for real before user code runs: a lock that does not hold runs nothing."""

from __future__ import annotations

import errno
import os

from agent_reach.linux import _syscalls, landlock, namespaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The errno with which the supervisor answers a connect on descriptor -1: no kernel gives it for that.
ANSWER = errno.EUCLEAN
_UNKNOWN_CALL = 9_999


def prove(landlock_version: int, *, full: bool) -> None:
    """Make the calls.

    Args:
        landlock_version: ABI in force, 0 for none.
        full: tier ``full``, where init is a process outside the Landlock domain.

    Raises:
        OSError: EUCLEAN, a call was let through.
    """
    _expect("seccomp, refused call", errno.EPERM, lambda: _syscalls.unshare(namespaces.CLONE_NEWUSER))
    _expect("seccomp, unknown call", errno.ENOSYS, lambda: _syscalls.syscall(_UNKNOWN_CALL))
    _expect("seccomp, filtered argument", errno.EPERM, lambda: os.chmod("/dev/null", 0o4755))  # noqa: S103 - refused
    _expect("notification", ANSWER, _connect_nothing)
    if landlock_version >= landlock.ABI_SCOPE and full:
        _expect("Landlock, signal scope", errno.EPERM, lambda: os.kill(1, 0))
    if landlock_version and not full:
        _expect("Landlock, files", errno.EACCES, lambda: os.listdir("/"))


def _connect_nothing() -> None:
    """Ask the supervisor's own answer: a connect that could reach nothing."""
    _syscalls.syscall(_syscalls.number("connect"), -1, None, 0)


def _expect(what: str, number: int, call: Callable[[], object]) -> None:
    """Check that a call fails with exactly that errno."""
    try:
        call()
    except OSError as error:
        if error.errno == number:
            return
        raise OSError(error.errno, f"{what}: {os.strerror(error.errno or 0)}") from error
    raise OSError(errno.EUCLEAN, f"{what}: the call was let through")
