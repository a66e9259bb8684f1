"""The broker's loop and what it waits for, without a sandbox."""

from __future__ import annotations

import os
import select
import socket
import struct

from agent_reach.egress import tcp
from agent_reach.egress.closing import Closer
from agent_reach.egress.loop import READ, Loop
from agent_reach.egress.pending import TICK_MS, Waiting, Waitlist
from agent_reach.egress.workers import Workers


def calls_no_fault(error: Exception) -> None:
    raise error


class Call:
    """Stands for a notified call: the kernel's side of one."""

    def __init__(self, number: int) -> None:
        self.id = number
        self.alive, self.signal, self.abandoned = True, False, False

    def valid(self) -> bool:
        return self.alive

    def interrupted(self) -> bool:
        return self.signal

    def abandon(self) -> None:
        self.abandoned = True


class Recorded(Waiting):
    def __init__(self, call: Call, deadline: float = 0.0) -> None:
        super().__init__(call, deadline)  # type: ignore[arg-type]  # the two methods that a wait looks at
        self.happened: list[str] = []

    def interrupt(self) -> None:
        self.happened.append("interrupt")

    def expire(self) -> None:
        self.happened.append("expire")


def test_a_descriptor_that_is_closed_and_opened_again_in_one_round_gets_no_stale_event() -> None:
    loop, calls = Loop(calls_no_fault), []
    first, second = os.pipe(), os.pipe()
    for _reader, writer in (first, second):
        os.write(writer, b"x")

    def swap(fd: int) -> None:
        other = second if fd == first[0] else first
        loop.forget(other[0])
        os.close(other[0])
        fresh, _writer = os.pipe()  # takes the number just freed
        assert fresh == other[0]
        loop.watch(fresh, READ, lambda _mask: calls.append("stale"))
        loop.forget(fd)

    for reader, _writer in (first, second):
        loop.watch(reader, READ, lambda _mask, fd=reader: swap(fd))
    loop.run(1000)
    loop.run(0)
    assert calls == []
    loop.close()


def test_waits_end_by_death_deadline_and_signal() -> None:
    now = [100.0]
    waitlist = Waitlist(calls_no_fault, lambda: now[0])
    assert waitlist.timeout() == -1
    dead, late, signalled, quiet = (Recorded(Call(number)) for number in range(4))
    late.deadline = 101.0
    for one in (dead, late, signalled, quiet):
        waitlist.add(one)
    assert waitlist.timeout() == TICK_MS
    dead.call.alive = False  # type: ignore[attr-defined]
    signalled.call.signal = True  # type: ignore[attr-defined]
    now[0] = 102.0
    waitlist.tick()
    assert dead.call.abandoned  # type: ignore[attr-defined]
    assert (late.happened, signalled.happened, quiet.happened) == (["expire"], ["interrupt"], [])
    assert len(waitlist) == 2
    assert waitlist.remove(quiet)
    assert not waitlist.remove(quiet)
    waitlist.close()
    assert signalled.call.abandoned  # type: ignore[attr-defined]


def test_every_wait_is_looked_at_in_turn() -> None:
    now = [100.0]
    waitlist = Waitlist(calls_no_fault, lambda: now[0])
    waits = [Recorded(Call(number)) for number in range(200)]
    for one in waits:
        one.call.signal = True  # type: ignore[attr-defined]
        waitlist.add(one)
    for _ in range(4):
        now[0] += 1
        waitlist.tick()
    assert all(one.happened for one in waits)


def test_closing_a_socket_with_unsent_data_and_a_long_linger_does_not_wait() -> None:
    """The program sets SO_LINGER and lets our descriptor be the last one: close(2) would wait for 30 s."""
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    peer, _ = server.accept()
    client.setblocking(False)
    try:
        while True:
            client.send(bytes(1 << 16))
    except BlockingIOError:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 30))
    workers = Workers(2)
    Closer(workers).release(client)
    assert client.fileno() == -1
    assert not select.select([workers.fd], [], [], 0.3)[0]  # a thread waits in our place
    peer.close()
    assert select.select([workers.fd], [], [], 10)[0]
    server.close()
    workers.close()


def test_an_unconnected_socket_is_closed_at_once() -> None:
    workers, sock = Workers(1), socket.socket()
    assert tcp.state(sock) == tcp.CLOSED
    fd = sock.fileno()
    Closer(workers).release(sock)
    Closer(workers).release(sock)
    assert not os.path.exists(f"/proc/self/fd/{fd}")
    workers.close()


def test_a_fault_in_one_callback_leaves_the_others_working() -> None:
    faults: list[Exception] = []
    seen: list[int] = []
    loop = Loop(faults.append)
    pipes = [os.pipe() for _ in range(2)]

    def broken(_mask: int) -> None:
        raise RuntimeError("broken")

    loop.watch(pipes[0][0], READ, broken)
    loop.watch(pipes[1][0], READ, seen.append)
    for _reader, writer in pipes:
        os.write(writer, b"x")
    for _ in range(3):
        loop.run(1000)
    assert [str(error) for error in faults] == ["broken"]
    assert len(seen) == 3
    loop.close()
    for pipe in pipes:
        for fd in pipe:
            os.close(fd)
