"""Bytes of the program on their way to the caller."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.sandbox.relay import Relay

if TYPE_CHECKING:
    from collections.abc import Iterator


class World:
    """A program's pipe, a caller's pipe and the loop between them."""

    def __init__(self, *, owns_sink: bool = False, bound: int | None = None) -> None:
        self.source, self.inlet = os.pipe()
        self.outlet, self.sink = os.pipe()
        os.set_blocking(self.sink, False)
        os.set_blocking(self.outlet, False)
        self.poll = select.poll()
        self.relay = Relay(self.source, self.sink, self.poll, owns_sink=owns_sink, bound=bound)

    def turn(self) -> list[int]:
        """Handle what is ready now; return what was."""
        ready = [descriptor for descriptor, _ in self.poll.poll(0)]
        for descriptor in ready:
            self.relay.handle(descriptor)
        return ready

    def read(self) -> bytes:
        """Return what the caller can read now."""
        try:
            return os.read(self.outlet, 1 << 20)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        for descriptor in (self.source, self.inlet, self.outlet, self.sink):
            try:
                os.close(descriptor)
            except OSError:
                continue


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def through(world: World, data: bytes) -> bytes:
    """Send everything through, the caller reading in between, and return what arrived."""
    arrived, view = b"", memoryview(data)
    os.set_blocking(world.inlet, False)
    for _ in range(10_000):
        if view:
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(world.inlet, view) :]
        elif world.inlet >= 0:
            os.close(world.inlet)
            world.inlet = -1
        world.turn()
        arrived += world.read()
        if not world.relay.open:
            return arrived
    raise AssertionError("the relay does not end")


@given(data=st.binary(max_size=300), bound=st.none() | st.integers(0, 300))
def test_exactly_what_is_within_the_bound_passes(data: bytes, bound: int | None) -> None:
    world = World(bound=bound)
    try:
        assert through(world, data) == data[:bound]
        assert world.relay.count == len(data)
        assert world.relay.over == (bound is not None and len(data) > bound)
    finally:
        world.close()


@pytest.mark.parametrize("bound", [None, 100_000, 400_000])
def test_more_than_a_pipe_holds_passes_in_order(bound: int | None) -> None:
    world = World(bound=bound)
    data = os.urandom(400_000)
    try:
        assert through(world, data) == data[:bound]
        assert world.relay.over == (bound == 100_000)
    finally:
        world.close()


def test_a_caller_who_does_not_read_makes_the_source_rest(world: World) -> None:
    os.set_blocking(world.inlet, False)
    for _ in range(50):
        with contextlib.suppress(BlockingIOError):
            os.write(world.inlet, bytes(65_536))
        world.turn()
    assert world.turn() == [], "nothing to do: a busy loop would cost a processor"
    held = world.relay.count
    assert world.read()
    assert world.turn() == [world.sink]
    assert world.relay.count == held
    while world.read():
        world.turn()
    assert world.relay.count > held


def test_the_end_of_the_source_closes_it_and_leaves_the_callers_descriptor_open(world: World) -> None:
    os.close(world.inlet)
    world.turn()
    assert not world.relay.open
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(world.source)
    os.fstat(world.sink)
    assert world.poll.poll(0) == []


def test_the_end_of_the_callers_input_closes_the_programs(world: World) -> None:
    world.close()
    inward = World(owns_sink=True)
    os.write(inward.inlet, b"in")
    inward.turn()
    assert inward.read() == b"in"
    os.close(inward.inlet)
    inward.turn()
    os.fstat(inward.source)
    assert os.read(inward.outlet, 1) == b"", "end of file inside"
    inward.close()


def test_a_reader_that_has_gone_ends_the_relay(world: World) -> None:
    os.close(world.outlet)
    os.write(world.inlet, b"x")
    world.turn()
    assert not world.relay.open
    world.relay.handle(world.source)
    world.relay.finish()


def test_a_socket_that_was_reset_ends_the_relay(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        caller = socket.create_connection(server.getsockname())
        there, _ = server.accept()
    there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    there.close()
    relay = Relay(world.source, caller.fileno(), world.poll)
    os.write(world.inlet, b"x")
    relay.handle(world.source)
    assert not relay.open
    caller.close()


@pytest.mark.parametrize("owns_sink", [False, True])
def test_a_reader_that_takes_a_little_at_a_time_gets_everything(owns_sink: bool) -> None:
    world = World(owns_sink=owns_sink)
    data = os.urandom(1 << 18)
    arrived, view = b"", memoryview(data)
    os.set_blocking(world.inlet, False)
    for _ in range(1_000):
        if view:
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(world.inlet, view) :]
        elif world.inlet >= 0:
            os.close(world.inlet)
            world.inlet = -1
        world.turn()
        with contextlib.suppress(BlockingIOError):
            arrived += os.read(world.outlet, 8 << 10)
        if not world.relay.open and len(arrived) == len(data):
            break
    assert arrived == data
    assert not world.relay.open
    world.close()
