"""The filter in force: each class of refusal with an allowed twin, tried for real."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import socket
import tempfile
import threading

import pytest

from agent_reach.linux import _syscalls
from agent_reach.linux.abi import ioctls, prctl, sched, table
from agent_reach.linux.abi.seccomp import SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_FILTER_FLAG_TSYNC
from agent_reach.linux.seccomp import bpf
from agent_reach.linux.seccomp.options import FilterOptions
from filtered import in_child, lock, outcome

HIGH_BIT = 1 << 32
REDUCED = FilterOptions(tier="reduced", metadata="refuse", refuse_truncate=True, no_memfd=True)
X86_64 = os.uname().machine == "x86_64"


def raw(call, *args):
    return _syscalls.syscall(table(_syscalls.machine())[call], *args)


def new_socket(*args):
    socket.socket(*args).close()


def option(level, name, value=1, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setsockopt(level, name, value)


def on_terminal(request, argument=0):
    """Make a request on the slave of a new pseudo terminal."""
    master, slave = os.openpty()
    try:
        raw("ioctl", slave, request, argument)
    finally:
        os.close(master)
        os.close(slave)


def on_file(action):
    """Do something to a new file."""
    with tempfile.NamedTemporaryFile() as file:
        action(file.name)


def clone_into(flags):
    pid = _syscalls.clone_fork(flags)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def send_fast(flags):
    with socket.socket() as listener, socket.socket() as sender:
        listener.bind(("127.0.0.1", 0))
        sender.sendto(b"x", flags, listener.getsockname())


# name of the class: (refused, its error, allowed twin, the twin's error)
CLASSES = {
    "set-id mode": (
        lambda: on_file(lambda path: os.chmod(path, 0o4755)),
        errno.EPERM,
        lambda: on_file(lambda path: os.chmod(path, 0o755)),
        0,
    ),
    "set-id mode, high bits": (
        lambda: on_file(lambda path: raw("fchmodat", -100, path, HIGH_BIT | 0o4755)),
        errno.EPERM,
        lambda: on_file(lambda path: raw("fchmodat", -100, path, HIGH_BIT | 0o755)),
        0,
    ),
    "set-id creation": (
        lambda: os.open("/tmp/never", os.O_CREAT | os.O_WRONLY, 0o4755),
        errno.EPERM,
        lambda: os.close(os.open("/dev/null", os.O_WRONLY, 0o4755)),
        0,
    ),
    "set-id unnamed file": (
        lambda: os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o2700),
        errno.EPERM,
        lambda: os.close(os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o600)),
        0,
    ),
    "set-id directory": (
        lambda: os.mkdir("/tmp/never", 0o2755),
        errno.EPERM,
        lambda: tempfile.TemporaryDirectory().cleanup(),
        0,
    ),
    "device node": (
        lambda: os.mknod("/tmp/never", 0o020666, os.makedev(1, 3)),
        errno.EPERM,
        lambda: on_file(lambda path: os.mkfifo(path + ".fifo") or os.unlink(path + ".fifo")),
        0,
    ),
    "namespace by clone": (lambda: clone_into(sched.CLONE_NEWUSER), errno.EPERM, lambda: clone_into(0), 0),
    "namespace by unshare": (lambda: _syscalls.unshare(sched.CLONE_NEWUSER), errno.EPERM, os.getpid, 0),
    "clone3": (lambda: raw("clone3", bytes(64), 64), errno.ENOSYS, lambda: clone_into(0), 0),
    "openat2": (
        lambda: _syscalls.openat2(-100, "/", os.O_RDONLY),
        errno.ENOSYS,
        lambda: os.close(os.open("/", os.O_RDONLY)),
        0,
    ),
    "mount": (lambda: _syscalls.mount("none", "/tmp", "tmpfs", 0), errno.EPERM, lambda: os.statvfs("/tmp"), 0),
    "ptrace": (lambda: raw("ptrace", 0, 0, 0, 0), errno.EPERM, os.getppid, 0),
    "memory of another": (
        lambda: raw("process_vm_readv", os.getpid(), None, 0, None, 0, 0),
        errno.EPERM,
        lambda: os.close(os.open("/proc/self/mem", os.O_RDONLY)),
        0,
    ),
    "io_uring": (lambda: raw("io_uring_setup", 1, bytearray(120)), errno.ENOSYS, lambda: os.close(os.eventfd(0)), 0),
    "keyring": (lambda: raw("keyctl", 0, -3, 0), errno.ENOSYS, os.getuid, 0),
    "unknown number": (lambda: _syscalls.syscall(5000), errno.ENOSYS, os.getpid, 0),
    "typing into a terminal": (
        lambda: on_terminal(ioctls.TIOCSTI, b"x"),
        errno.EPERM,
        lambda: on_terminal(ioctls.TIOCGWINSZ, bytearray(8)),
        0,
    ),
    "typing, high bits": (
        lambda: on_terminal(HIGH_BIT | ioctls.TIOCSTI, b"x"),
        errno.EPERM,
        lambda: on_terminal(HIGH_BIT | ioctls.TIOCGWINSZ, bytearray(8)),
        0,
    ),
    "line discipline": (
        lambda: on_terminal(ioctls.TIOCSETD, bytes(4)),
        errno.EPERM,
        lambda: on_terminal(ioctls.FIONREAD, bytearray(4)),
        0,
    ),
    "copy on write": (lambda: raw("ioctl", 1, ioctls.FICLONE, 0), errno.EOPNOTSUPP, lambda: os.close(os.dup(1)), 0),
    "lease": (
        lambda: on_file(lambda path: fcntl.fcntl(os.open(path, os.O_RDONLY), 1024, 0)),
        errno.EPERM,
        lambda: fcntl.fcntl(1, fcntl.F_GETFL),
        0,
    ),
    "listener of its own": (
        lambda: _syscalls.seccomp_install(
            bpf.encode((bpf.Instruction(6, 0, 0, 0x7FFF0000),)), SECCOMP_FILTER_FLAG_NEW_LISTENER
        ),
        errno.EBUSY,
        lambda: _syscalls.seccomp_install(bpf.encode((bpf.Instruction(6, 0, 0, 0x7FFF0000),))),
        0,
    ),
    "ptracer": (
        lambda: _syscalls.prctl(prctl.PR_SET_PTRACER, 1),
        errno.EPERM,
        lambda: _syscalls.prctl(prctl.PR_SET_PDEATHSIG, 0),
        0,
    ),
    "personality": (lambda: raw("personality", 0x0040000), errno.EPERM, lambda: raw("personality", 0xFFFFFFFF), 0),
    "priority inheritance": (
        lambda: raw("futex", bytearray(4), 6, 0, 0, 0, 0),
        errno.ENOSYS,
        lambda: raw("futex", bytearray(4), 1, 1, 0, 0, 0),
        0,
    ),
    "real time": (
        lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
        errno.EPERM,
        lambda: os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0)),
        0,
    ),
    "packet socket": (
        lambda: new_socket(socket.AF_PACKET, socket.SOCK_RAW, 0),
        errno.EAFNOSUPPORT,
        lambda: new_socket(socket.AF_INET6),
        0,
    ),
    "raw socket": (
        lambda: new_socket(socket.AF_INET, socket.SOCK_RAW, 1),
        errno.EPERM,
        lambda: new_socket(socket.AF_INET, socket.SOCK_DGRAM),
        0,
    ),
    "multipath": (
        lambda: new_socket(socket.AF_INET, socket.SOCK_STREAM, 262),
        errno.EPROTONOSUPPORT,
        lambda: new_socket(socket.AF_INET, socket.SOCK_STREAM, 6),
        0,
    ),
    "vsock": (
        lambda: new_socket(socket.AF_VSOCK, socket.SOCK_STREAM),
        errno.EAFNOSUPPORT,
        lambda: new_socket(socket.AF_UNIX, socket.SOCK_STREAM),
        0,
    ),
    "crypto": (
        lambda: new_socket(socket.AF_ALG, socket.SOCK_SEQPACKET),
        errno.EAFNOSUPPORT,
        lambda: new_socket(socket.AF_UNIX, socket.SOCK_SEQPACKET),
        0,
    ),
    "local datagrams": (
        lambda: new_socket(socket.AF_UNIX, socket.SOCK_DGRAM),
        errno.EPERM,
        lambda: [one.close() for one in socket.socketpair()],
        0,
    ),
    "local datagram pair": (
        lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
        errno.EPERM,
        lambda: [one.close() for one in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)],
        0,
    ),
    "netfilter": (
        lambda: new_socket(socket.AF_NETLINK, socket.SOCK_RAW, 12),
        errno.EAFNOSUPPORT,
        lambda: new_socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),
        0,
    ),
    "fast open": (lambda: send_fast(socket.MSG_FASTOPEN), errno.EOPNOTSUPP, lambda: send_fast(0), errno.EPIPE),
    "kernel TLS": (lambda: option(6, 31, b"tls"), errno.EPERM, lambda: option(6, socket.TCP_NODELAY), 0),
    "source route": (
        lambda: option(0, 4, b"\x83\x07\x04\x7f\x00\x00\x01\x00"),
        errno.EPERM,
        lambda: option(0, socket.IP_TOS, 8),
        0,
    ),
    "source route of IPv6": (
        lambda: option(41, 57, bytes(24), socket.AF_INET6),
        errno.EPERM,
        lambda: option(41, 67, 0, socket.AF_INET6),
        0,
    ),
    "connect without an answer": (
        lambda: socket.socket().connect(("127.0.0.1", 9)),
        errno.ENOSYS,
        lambda: socket.socket().bind(("127.0.0.1", 0)),
        0,
    ),
    "listen without an answer": (
        lambda: socket.socket().listen(),
        errno.ENOSYS,
        lambda: socket.socket().shutdown(2),
        errno.ENOTCONN,
    ),
    "splice": (
        lambda: raw("splice", 0, None, 1, None, 1, 0),
        errno.ENOSYS,
        lambda: on_file(lambda path: os.copy_file_range(os.open(path, 0), os.open(path, 1), 1)),
        0,
    ),
}


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_refused_and_its_allowed_twin(name):
    refused, error, allowed, twin_error = CLASSES[name]

    def child():
        lock()
        return outcome(refused), outcome(allowed)

    assert in_child(child) == (error, twin_error)


REDUCED_CLASSES = {
    "mode": (lambda: on_file(lambda path: os.chmod(path, 0o600)), errno.EPERM, lambda: on_file(os.stat)),
    "mode by descriptor": (
        lambda: on_file(lambda path: os.fchmod(os.open(path, 0), 0o600)),
        errno.EPERM,
        lambda: os.fstat(1),
    ),
    "owner": (lambda: on_file(lambda path: os.chown(path, -1, -1)), errno.EPERM, lambda: on_file(os.stat)),
    "times": (lambda: on_file(os.utime), errno.EPERM, lambda: on_file(os.stat)),
    "attribute": (
        lambda: on_file(lambda path: os.setxattr(path, "user.a", b"b")),
        errno.EPERM,
        lambda: on_file(os.listxattr),
    ),
    "truncate": (
        lambda: on_file(lambda path: os.truncate(path, 0)),
        errno.EPERM,
        lambda: on_file(lambda path: os.ftruncate(os.open(path, 1), 0)),
    ),
    "limits of another": (
        lambda: raw("prlimit64", os.getppid(), 7, None, bytearray(16)),
        errno.EPERM,
        lambda: raw("prlimit64", 0, 7, None, bytearray(16)),
    ),
    "priority of another": (lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19), errno.EPERM, lambda: os.nice(1)),
    "affinity of another": (
        lambda: os.sched_setaffinity(os.getppid(), {0}),
        errno.EPERM,
        lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
    ),
    "signal by descriptor": (lambda: fcntl.fcntl(1, 10, 9), errno.EPERM, lambda: fcntl.fcntl(1, fcntl.F_GETFD)),
    "UDP": (
        lambda: new_socket(socket.AF_INET, socket.SOCK_DGRAM),
        errno.EPERM,
        lambda: new_socket(socket.AF_INET, socket.SOCK_STREAM),
    ),
    "interfaces": (
        lambda: new_socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),
        errno.EAFNOSUPPORT,
        lambda: new_socket(socket.AF_UNIX, socket.SOCK_STREAM),
    ),
    "memory file": (lambda: os.memfd_create("x"), errno.ENOSYS, lambda: mmap.mmap(-1, 4096).close()),
}


@pytest.mark.parametrize("name", REDUCED_CLASSES)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_refused_in_the_reduced_tier_and_its_allowed_twin(name):
    refused, error, allowed = REDUCED_CLASSES[name]

    def child():
        lock(REDUCED)
        return outcome(refused), outcome(allowed)

    assert in_child(child) == (error, 0)


def test_dumpable_cannot_be_changed_and_the_caller_is_told_it_was():
    def child():
        before = _syscalls.prctl(prctl.PR_GET_DUMPABLE)
        lock()
        answers = _syscalls.prctl(prctl.PR_SET_DUMPABLE, 0), _syscalls.prctl(prctl.PR_SET_DUMPABLE, 1)
        return before, answers, _syscalls.prctl(prctl.PR_GET_DUMPABLE)

    assert in_child(child) == (1, (0, 0), 1)


def run_machine_code(code):
    """Call machine code; the page stays mapped."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    return ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


@pytest.mark.skipif(not X86_64, reason="other architecture: int 0x80 is x86")
def test_the_32_bit_entry_kills_and_the_64_bit_entry_does_not():
    def child(code):
        def inner():
            lock()
            return run_machine_code(code)

        return inner

    assert in_child(child(b"\xb8\x27\x00\x00\x00\x0f\x05\xc3")) > 0  # mov eax, 39 (getpid); syscall; ret
    with pytest.raises(ChildProcessError, match="ended with -31"):  # SIGSYS
        in_child(child(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"))  # mov eax, 20 (getpid of i386); int 0x80; ret


@pytest.mark.skipif(not X86_64, reason="other architecture: x32 is x86")
def test_x32_numbers_are_unknown():
    def child():
        lock()
        return outcome(lambda: _syscalls.syscall(0x4000_0000 | 39)), outcome(lambda: _syscalls.syscall(39))

    assert in_child(child) == (errno.ENOSYS, 0)


@pytest.mark.parametrize(("flags", "wanted"), [(SECCOMP_FILTER_FLAG_TSYNC, errno.ENOSYS), (0, 0)])
def test_a_thread_that_started_before_is_under_the_filter_with_tsync_alone(flags, wanted):
    def child():
        go, seen = threading.Event(), []

        def late():
            go.wait(20)
            seen.append(outcome(lambda: raw("keyctl", 0, -3, 0)))

        thread = threading.Thread(target=late)
        thread.start()
        lock(flags=flags)
        go.set()
        thread.join(20)
        return seen

    assert in_child(child) == [wanted]


def test_a_thread_with_a_filter_of_its_own_is_an_error_and_nothing_is_installed():
    def child():
        ready, leave = threading.Event(), threading.Event()
        own = bpf.encode((bpf.Instruction(6, 0, 0, 0x7FFF_0000),))

        def other():
            _syscalls.prctl(prctl.PR_SET_NO_NEW_PRIVS, 1)
            _syscalls.seccomp_install(own)
            ready.set()
            leave.wait(20)

        thread = threading.Thread(target=other)
        thread.start()
        ready.wait(20)
        refused = outcome(lambda: lock(flags=SECCOMP_FILTER_FLAG_TSYNC))
        still_free = outcome(lambda: raw("keyctl", 0, -3, 0))
        leave.set()
        thread.join(20)
        return refused, still_free

    assert in_child(child) == (errno.EBUSY, 0)
