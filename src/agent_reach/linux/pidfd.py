"""Descriptors of processes: they never come to mean another process, as a pid does.

Source: pidfd_open(2), pidfd_getfd(2), pidfd_send_signal(2).
"""

from __future__ import annotations

from errno import EINVAL, ESRCH

from agent_reach.linux._syscalls import SyscallError, number, pidfd_open, pidfd_send_signal, syscall

PIDFD_THREAD = 0x80  # O_EXCL; Linux 6.9


def open(pid: int) -> int:  # noqa: A001 - pidfd.open() is what it is
    """Return a descriptor of a process, close-on-exec; readable once the process has ended. Linux 5.3.

    Raises:
        SyscallError: ESRCH when there is no such process, EINVAL when the id is a thread's.
    """
    return pidfd_open(pid)


def open_thread(thread: int) -> int:
    """Return a descriptor of a thread or, before Linux 6.9, of its process.

    The two differ only for a thread with a descriptor table of its own (unshare(CLONE_FILES)), which the
    filter does not let a sandboxed program make but clone(2) with CLONE_THREAD alone would.

    Args:
        thread: thread id, such as a notification's pid. Ask `notify.valid` after the call: until then the
            id may have passed on to another thread.

    Raises:
        SyscallError: there is no such thread.
        OSError: its process has gone meanwhile.
    """
    try:
        return pidfd_open(thread, PIDFD_THREAD)
    except SyscallError as error:
        if error.errno != EINVAL:
            raise
    return pidfd_open(process_of(thread))


def process_of(thread: int) -> int:
    """Return the process id of a thread, as this process's /proc shows it.

    Raises:
        OSError: there is no such thread.
    """
    import os

    descriptor = os.open(f"/proc/{thread}/status", os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
    # The first line is the name, in which the kernel escapes line breaks: no program can forge a field.
    _, _, rest = status.partition(b"\nTgid:")
    return int(rest.split(b"\n", 1)[0])


def get_fd(pidfd: int, target: int) -> int:
    """Return a copy of a descriptor of another process, close-on-exec; Linux 5.6.

    Args:
        pidfd: descriptor of the process.
        target: number of the descriptor there.

    Raises:
        SyscallError: EBADF when it has no such descriptor; EPERM when we may not trace the process, which
            Docker's default filter also says.
    """
    return syscall(number("pidfd_getfd"), pidfd, target, 0)


def send_signal(pidfd: int, signal: int) -> bool:
    """Send a signal to the process.

    Returns:
        False when it has ended.

    Raises:
        SyscallError: EPERM when we may not.
    """
    try:
        pidfd_send_signal(pidfd, signal)
    except SyscallError as error:
        if error.errno == ESRCH:
            return False
        raise
    return True
