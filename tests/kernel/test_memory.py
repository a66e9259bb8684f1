"""Reading another process's memory, and its descriptors, within bounds."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import threading
from functools import partial

import pytest

from agent_reach.linux import _syscalls, memory, pidfd
from filtered import in_child

PAGE = mmap.PAGESIZE


class Pages:
    """Two pages of memory behind which nothing is mapped."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.mmap.restype = ctypes.c_void_p
        self.address = self.libc.mmap(None, ctypes.c_size_t(3 * PAGE), 3, 0x22, -1, ctypes.c_long(0))
        assert self.libc.munmap(ctypes.c_void_p(self.address + 2 * PAGE), ctypes.c_size_t(PAGE)) == 0
        self.put(0, b"x" * 2 * PAGE)

    def put(self, offset, data):
        ctypes.memmove(self.address + offset, data, len(data))


@pytest.fixture
def pages():
    made = Pages()
    yield made
    made.libc.munmap(ctypes.c_void_p(made.address), ctypes.c_size_t(2 * PAGE))


def read_both_ways(action):
    """Return what an action gives by process_vm_readv and by /proc, which stands in where that is refused."""
    direct = in_child(action)
    number = memory.number
    memory.number = lambda _call: 5000  # a call that no kernel knows: ENOSYS
    try:
        return direct, in_child(action)
    finally:
        memory.number = number


def result(action):
    """Return what an action returns, or the number of its error."""
    try:
        return action()
    except OSError as error:
        return error.errno


def test_a_read_is_exact(pages):
    address = pages.address
    pages.put(10, b"hello")
    pid = os.getpid()
    assert read_both_ways(lambda: memory.read(pid, address + 10, 5)) == (b"hello", b"hello")
    assert read_both_ways(lambda: len(memory.read(pid, address, 2 * PAGE))) == (2 * PAGE, 2 * PAGE)
    assert read_both_ways(lambda: memory.read(pid, address, 0)) == (b"", b"")


def test_a_read_across_the_end_is_refused_or_cut(pages):
    address = pages.address
    pid, last = os.getpid(), address + 2 * PAGE - 4
    refused = read_both_ways(lambda: result(lambda: memory.read(pid, last, 8)))
    assert set(refused) <= {errno.EFAULT, errno.EIO}
    assert read_both_ways(lambda: memory.read_some(pid, last, 8)) == (b"xxxx", b"xxxx")
    assert memory.read(pid, last, 4) == b"xxxx"


@pytest.mark.parametrize("address", [0, 8, (1 << 63) - 4, 1 << 63, (1 << 64) - 8, -8])
def test_an_address_out_of_the_callers_space_is_an_error(address):
    pid = os.getpid()
    for number in read_both_ways(lambda: result(lambda: memory.read(pid, address, 8))):
        assert number in {errno.EFAULT, errno.EIO}


@pytest.mark.parametrize("length", [-1, memory.LONGEST_READ + 1, 1 << 40])
def test_a_length_is_bounded(length):
    with pytest.raises(ValueError, match="out of bounds"):
        memory.read(os.getpid(), 4096, length)


def test_a_string_ends_at_its_null_byte(pages):
    address = pages.address
    pid = os.getpid()
    pages.put(PAGE - 3, b"abcdef\0")
    assert read_both_ways(lambda: memory.read_string(pid, address + PAGE - 3)) == (b"abcdef", b"abcdef")
    pages.put(2 * PAGE - 3, b"ab\0")  # nothing behind it is touched
    assert memory.read_string(pid, address + 2 * PAGE - 3) == b"ab"
    assert memory.read_string(pid, address + 2 * PAGE - 1) == b""


def test_a_string_without_end_is_an_error(pages):
    address = pages.address
    pid = os.getpid()
    assert result(lambda: memory.read_string(pid, address, 100)) == errno.ENAMETOOLONG
    assert result(lambda: memory.read_string(pid, address + PAGE + 1, 2 * PAGE)) in {errno.EFAULT, errno.EIO}


def test_a_process_that_has_gone_is_an_error():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert result(lambda: memory.read(child, 4096, 8)) == errno.ESRCH
    assert result(lambda: pidfd.open(child)) == errno.ESRCH
    assert result(lambda: pidfd.process_of(child)) == errno.ENOENT


def test_a_thread_is_reached_by_its_own_descriptor_or_its_processs():
    leave, seen = threading.Event(), []
    thread = threading.Thread(target=lambda: (seen.append(threading.get_native_id()), leave.wait(20)))
    thread.start()
    while not seen:
        pass
    reader, writer = os.pipe()
    os.write(writer, b"x")
    try:
        assert pidfd.process_of(seen[0]) == os.getpid()
        assert result(lambda: pidfd.open(seen[0])) in {errno.EINVAL, errno.ENOENT}
        for flag in (pidfd.PIDFD_THREAD, 0x4000):  # a flag that no kernel knows stands for Linux before 6.9
            target = open_thread_with(flag, seen[0])
            copy = pidfd.get_fd(target, reader)
            assert os.path.sameopenfile(copy, reader)
            assert not os.get_inheritable(copy)
            assert result(partial(pidfd.get_fd, target, 1 << 20)) == errno.EBADF
            os.close(copy)
            os.close(target)
    finally:
        leave.set()
        thread.join()
        os.close(reader)
        os.close(writer)


def open_thread_with(flag, thread):
    """Open a thread as a kernel would that knows the flag, or does not."""
    known = pidfd.PIDFD_THREAD
    pidfd.PIDFD_THREAD = flag
    try:
        return pidfd.open_thread(thread)
    finally:
        pidfd.PIDFD_THREAD = known


def test_a_forged_name_does_not_change_the_process_of_a_thread():
    def child():
        with open("/proc/self/comm", "wb") as comm:
            comm.write(b"a\nTgid:\t1\nb")
        return pidfd.process_of(os.getpid()), os.getpid()

    told, real = in_child(child)
    assert told == real


def test_system_call_errors_name_the_call_and_hide_buffers():
    with pytest.raises(_syscalls.SyscallError) as caught:
        _syscalls.landlock_add_rule(-1, 1, b"secret bytes")
    assert caught.value.call == "landlock_add_rule"
    assert "<12 bytes>" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_path_with_a_null_byte_never_reaches_the_kernel():
    with pytest.raises(ValueError, match="null byte"):
        _syscalls.openat2(-100, "/etc/passwd\0.txt", os.O_RDONLY)
