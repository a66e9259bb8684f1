"""User notification on a real connect: another socket in its place, refusal, and callers that go away."""

from __future__ import annotations

import errno
import os
import socket
import struct

import pytest

from agent_reach.linux import _syscalls, memory, pidfd
from agent_reach.linux.abi import table
from agent_reach.linux.seccomp import notify
from agent_reach.linux.seccomp.options import FilterOptions
from filtered import Child, outcome

NUMBERS = table(_syscalls.machine())
NOWHERE = ("127.1.2.3", 7)


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)
        yield listening


def dial():
    """Connect to an address where nobody listens and exchange a word with whoever answers."""
    with socket.socket() as sock:
        sock.connect(NOWHERE)
        sock.sendall(b"hello")
        return 0 if sock.recv(5) == b"world" else 1


def test_another_socket_takes_the_place_of_the_callers(server):
    with Child(dial) as child:
        call = child.next_call()
        assert (call.nr, call.pid) == (NUMBERS["connect"], child.pid)
        family, port, address = struct.unpack("=H2s4s8x", memory.read(call.pid, call.args[1], 16))
        assert (family, port, address) == (socket.AF_INET, struct.pack("!H", NOWHERE[1]), bytes([127, 1, 2, 3]))
        thread = pidfd.open_thread(call.pid)
        copy = socket.socket(fileno=pidfd.get_fd(thread, call.args[0]))
        assert notify.valid(child.listener, call.id)
        assert copy.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_TCP
        copy.close()
        os.close(thread)
        with socket.create_connection(server.getsockname()) as ours:
            assert notify.add_fd(child.listener, call.id, ours.fileno(), call.args[0]) == call.args[0]
        assert notify.respond(child.listener, call.id)
        peer, _address = server.accept()
        with peer:
            assert peer.recv(5) == b"hello"
            peer.sendall(b"world")
        assert child.wait() == 0


def test_a_refused_connect_has_the_error_that_was_chosen():
    with Child(lambda: outcome(dial)) as child:
        call = child.next_call()
        assert notify.respond(child.listener, call.id, error=errno.EACCES)
        assert child.wait() == errno.EACCES


def test_a_descriptor_can_be_the_answer():
    def child_side():
        sock = socket.socket()
        found = _syscalls.syscall(NUMBERS["connect"], sock.fileno(), None, 0)
        return 0 if os.read(found, 3) == b"abc" else 1

    with Child(child_side) as child:
        call = child.next_call()
        reader, writer = os.pipe()
        os.write(writer, b"abc")
        assert notify.add_fd(child.listener, call.id, reader, send=True) > 2
        os.close(reader)
        os.close(writer)
        assert not notify.respond(child.listener, call.id)  # it has its answer
        assert child.wait() == 0


def test_what_is_not_a_number_of_the_caller_is_an_error():
    with Child(lambda: outcome(dial)) as child:
        call = child.next_call()
        with pytest.raises(OSError, match="Bad file descriptor"):
            notify.add_fd(child.listener, call.id, 1, 1 << 30)
        notify.respond(child.listener, call.id, error=errno.EPERM)
        assert child.wait() == errno.EPERM


def test_a_caller_that_died_is_told_apart():
    with Child(lambda: outcome(dial)) as child:
        call = child.next_call()
        assert notify.valid(child.listener, call.id)
        pidfd.send_signal(child.pidfd, 9)
        assert child.wait() == -9
        assert not notify.valid(child.listener, call.id)
        assert not notify.respond(child.listener, call.id)
        assert notify.add_fd(child.listener, call.id, 1) == -1
        assert not pidfd.send_signal(child.pidfd, 9)


def test_a_fork_is_asked_about_and_a_thread_is_not():
    import threading

    def child_side():
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
        try:
            if os.fork() == 0:
                os._exit(0)
        except PermissionError:
            return 41
        os.wait()
        return 42

    for answer, status in ((notify.continue_call, 42), (refuse, 41)):
        with Child(child_side, FilterOptions(notify_forks=True)) as child:
            call = child.next_call()
            assert call.nr == NUMBERS["clone"]
            assert answer(child.listener, call.id)
            assert child.wait() == status


def refuse(listener, cookie):
    return notify.respond(listener, cookie, error=errno.EPERM)


def test_signals_are_asked_about_with_their_target():
    with Child(lambda: outcome(lambda: os.kill(os.getppid(), 0)), FilterOptions(notify_signals=True)) as child:
        call = child.next_call()
        assert (call.nr, call.args[0], call.args[1]) == (NUMBERS["kill"], os.getpid(), 0)
        notify.respond(child.listener, call.id, error=errno.ESRCH)
        assert child.wait() == errno.ESRCH


def test_a_value_can_be_the_answer():
    with Child(lambda: _syscalls.syscall(NUMBERS["listen"], 0, 0)) as child:
        call = child.next_call()
        notify.respond(child.listener, call.id, value=77)
        assert child.wait() == 77


def test_there_is_one_listener():
    with Child(lambda: outcome(lambda: notify.install(b"\x06\0\0\0\0\0\xff\x7f"))) as child:
        assert child.wait() == errno.EBUSY


def test_a_descriptor_that_is_no_listener_is_an_error():
    reader, writer = os.pipe()
    try:
        with pytest.raises(OSError, match="ioctl"):
            notify.receive(reader)
        assert not notify.set_flags(reader)
    finally:
        os.close(reader)
        os.close(writer)


def test_callers_can_be_woken_on_the_same_processor():
    with Child(lambda: outcome(dial)) as child:
        notify.set_flags(child.listener)  # False before Linux 6.6, and nothing else changes
        call = child.next_call()
        notify.respond(child.listener, call.id, error=errno.ECONNREFUSED)
        assert child.wait() == errno.ECONNREFUSED
