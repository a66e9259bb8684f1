"""User notification: the broker's side of a filter that asks before a call is made.

Source: seccomp_unotify(2); Linux 5.14 for everything here but WAIT_KILLABLE_RECV (5.19) and the wake-up
flag (6.6). What a notification says about registers can be relied on; memory that a register points to can
change at any moment, so a decision on memory is never followed by `continue_call`.
"""

from __future__ import annotations

from errno import EINPROGRESS, EINTR, EINVAL, ENOENT, ENOTTY
from fcntl import ioctl
from struct import pack, unpack

from agent_reach._util.record import Record
from agent_reach.linux._syscalls import SyscallError, seccomp_install

NEW_LISTENER = 0x8
TSYNC = 0x1
TSYNC_ESRCH = 0x10  # the kernel wants it where TSYNC and a listener both want the return value
WAIT_KILLABLE_RECV = 0x20
RECV = 0xC050_2100
SEND = 0xC018_2101
ID_VALID = 0x4008_2102
ADD_FD = 0x4018_2103
SET_FLAGS = 0x4008_2104
SYNC_WAKE_UP = 0x1
FLAG_CONTINUE = 0x1
ADD_FD_SETFD = 0x1
ADD_FD_SEND = 0x2
O_CLOEXEC = 0o2000000
NOTIFICATION = "=QIIiIQ6Q"
NOTIFICATION_BYTES = 80
# As the error of an answer: the kernel restarts the call, or makes it EINTR if a signal handler is to run.
ERESTARTSYS = 512


class Notification(Record):
    """A call that waits for an answer.

    Args:
        id: cookie of the call, to answer it by.
        pid: id of the calling thread in the receiver's pid namespace; 0 when it has none there.
        nr: call number.
        args: six arguments of 64 bits.
        arch: AUDIT_ARCH_* value.
        ip: address of the instruction behind the call.
    """

    id: int
    pid: int
    nr: int
    args: tuple[int, ...]
    arch: int = 0
    ip: int = 0


def install(program: bytes) -> int:
    """Install a filter on every thread of this process and return its listener, close-on-exec.

    The wait is killable, where the kernel can: an ordinary signal would make a notified connect fail with
    EINTR after the broker has already put another socket in its place.

    Raises:
        SyscallError: refused; EBUSY when another listener is above us, such as that of a container.
    """
    flags = NEW_LISTENER | TSYNC | TSYNC_ESRCH
    try:
        return seccomp_install(program, flags | WAIT_KILLABLE_RECV)
    except SyscallError as error:
        if error.errno != EINVAL:
            raise
    return seccomp_install(program, flags)  # Linux before 5.19


def receive(listener: int) -> Notification | None:
    """Return the next call; None when its caller has gone, or a signal came first.

    Blocks until there is one: poll for readability before. Read end-of-file from POLLHUP, which the kernel
    gives when no process is left under the filter.

    Raises:
        OSError: the listener is no listener.
    """
    buffer = bytearray(NOTIFICATION_BYTES)  # must be zero, or the kernel says EINVAL
    try:
        ioctl(listener, RECV, buffer)
    except OSError as error:
        if error.errno in {ENOENT, EINTR}:
            return None
        raise
    cookie, pid, _flags, number, arch, ip, *args = unpack(NOTIFICATION, buffer)
    return Notification(cookie, pid, number, tuple(args), arch, ip)


def respond(listener: int, cookie: int, *, value: int = 0, error: int = 0) -> bool:
    """Answer a call.

    Args:
        listener: the filter's descriptor.
        cookie: the notification's id.
        value: what the call returns when there is no error.
        error: positive error number, 0 for none.

    Returns:
        False when the caller is no longer waiting.
    """
    return _accepted(listener, SEND, pack("=QqiI", cookie, value, -error, 0))


def continue_call(listener: int, cookie: int) -> bool:
    """Let the kernel carry the call out as it was made; for decisions on registers alone.

    Returns:
        False when the caller is no longer waiting.
    """
    return _accepted(listener, SEND, pack("=QqiI", cookie, 0, 0, FLAG_CONTINUE))


def valid(listener: int, cookie: int) -> bool:
    """Return whether the caller is still waiting.

    Until it is asked, the notification's pid may be that of another process by now: ask after a pidfd or
    a file of /proc was opened, and use only what was opened.
    """
    return _accepted(listener, ID_VALID, pack("=Q", cookie))


def add_fd(
    listener: int, cookie: int, source: int, target: int | None = None, *, cloexec: bool = True, send: bool = False
) -> int:
    """Put a copy of a descriptor of ours into the caller's table.

    Args:
        listener: the filter's descriptor.
        cookie: the notification's id.
        source: descriptor of ours.
        target: number that it replaces in the caller; None takes the lowest free one.
        cloexec: whether it closes on exec there.
        send: answer the call with the number at the same time.

    Returns:
        The number in the caller; -1 when the caller is no longer waiting.

    Raises:
        OSError: the caller's table is full (EMFILE), or the target is no number of it (EBADF).
    """
    flags = (ADD_FD_SETFD if target is not None else 0) | (ADD_FD_SEND if send else 0)
    request = bytearray(pack("=QIIII", cookie, flags, source, target or 0, O_CLOEXEC if cloexec else 0))
    while True:
        try:
            number: int = ioctl(listener, ADD_FD, request)
        except InterruptedError:
            continue
        except OSError as error:
            if error.errno in {ENOENT, EINPROGRESS}:
                return -1
            raise
        return number


def _accepted(listener: int, request: int, data: bytes) -> bool:
    """Make a request about a waiting call; False when it waits no longer.

    The kernel takes a lock that a signal interrupts, without having done anything: try again.
    """
    while True:
        try:
            ioctl(listener, request, data)
        except InterruptedError:
            continue
        except OSError as error:
            if error.errno == ENOENT:
                return False
            raise
        return True


def set_flags(listener: int, flags: int = SYNC_WAKE_UP) -> bool:
    """Ask that caller and broker wake each other on the same processor, Linux 6.6.

    Returns:
        False when the kernel does not know how.
    """
    try:
        ioctl(listener, SET_FLAGS, flags)
    except OSError as error:
        if error.errno in {EINVAL, ENOTTY}:
            return False
        raise
    return True
