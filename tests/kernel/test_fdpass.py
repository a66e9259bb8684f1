"""Descriptors over a Unix socket."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from agent_reach.linux import fdpass


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, theirs


def open_descriptors():
    return set(os.listdir("/proc/self/fd"))


def test_descriptors_arrive_and_close_on_exec(pair):
    reader, writer = os.pipe()
    assert fdpass.send(pair[0], b"two", (reader, writer)) == 3
    data, descriptors = fdpass.receive(pair[1], 16, 2)
    assert data == b"two"
    assert [os.path.sameopenfile(a, b) for a, b in zip(descriptors, (reader, writer), strict=True)] == [True, True]
    assert not any(os.get_inheritable(descriptor) for descriptor in descriptors)
    for descriptor in (reader, writer, *descriptors):
        os.close(descriptor)


def test_bytes_alone_and_the_end(pair):
    fdpass.send(pair[0], b"only")
    assert fdpass.receive(pair[1], 16, 2) == (b"only", ())
    pair[0].shutdown(socket.SHUT_WR)
    assert fdpass.receive(pair[1], 16, 2) == (b"", ())


@pytest.mark.parametrize(("sent", "expected"), [(1, 0), (3, 2), (40, 2), (253, 2)])
def test_too_many_descriptors_are_refused_and_none_stays_open(pair, sent, expected):
    before = open_descriptors()
    fdpass.send(pair[0], b"x", (0,) * sent)
    with pytest.raises(OSError, match="were expected") as caught:
        fdpass.receive(pair[1], 16, expected)
    assert caught.value.errno == errno.EPROTO
    assert open_descriptors() == before


@pytest.mark.parametrize(("data", "count"), [(b"", 1), (b"x", 254)])
def test_what_cannot_be_sent_is_an_error_before_it_is_tried(pair, data, count):
    with pytest.raises(ValueError, match="cannot be sent"):
        fdpass.send(pair[0], data, (0,) * count)


def test_a_peer_that_has_gone_is_an_error_and_no_signal(pair):
    pair[1].close()
    with pytest.raises(BrokenPipeError):
        fdpass.send(pair[0], b"x")
