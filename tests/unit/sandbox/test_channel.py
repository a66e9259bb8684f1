"""Messages between our own processes."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest

from agent_reach.errors import SetupError
from agent_reach.sandbox.channel import Channel, Steps, failure, pair

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    left, right = pair()
    yield left, right
    left.close()
    right.close()


def test_messages_keep_their_bounds_and_order(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    messages = [{"kind": "note", "text": text} for text in ("one", "", "zwölf\n\udcff")]
    assert all(left.send(message) for message in messages)
    assert [right.receive() for _ in messages] == [(message, ()) for message in messages]


def test_descriptors_travel_beside_and_are_closed_on_exec(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    read, write = os.pipe()
    assert left.send({"kind": "ready"}, (write, write))
    os.close(write)
    message = right.receive()
    assert message is not None
    assert len(message[1]) == 2
    for descriptor in message[1]:
        assert fcntl.fcntl(descriptor, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        os.write(descriptor, b"x")
        os.close(descriptor)
    assert os.read(read, 10) == b"xx"
    os.close(read)


def test_both_ends_are_closed_on_exec(ends: tuple[Channel, Channel]) -> None:
    for end in ends:
        assert fcntl.fcntl(end.fileno(), fcntl.F_GETFD) & fcntl.FD_CLOEXEC


def test_the_other_end_is_gone(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    assert right.send({"kind": "last"})
    right.close()
    assert left.receive() == ({"kind": "last"}, ())
    assert left.receive() is None
    assert left.send({"kind": "late"}) is False


def told(error: BaseException, name: str, detail: str) -> tuple[dict[str, str], int]:
    """Return what a process says of a step that failed, and how it ends."""
    left, right = pair()
    pid = os.fork()
    if not pid:
        steps = Steps(right)
        steps.at("step before")
        steps.at(name, detail)
        steps.fail(error)
    right.close()
    message = left.receive()
    _, status = os.waitpid(pid, 0)
    left.close()
    assert message is not None
    return message[0], os.waitstatus_to_exitcode(status)


def test_a_step_that_the_kernel_refused_becomes_an_error_with_its_object() -> None:
    fields, status = told(PermissionError(13, "Permission denied"), "mount proc", "/proc")
    assert status == 125
    error = failure(fields)
    assert isinstance(error, SetupError)
    assert (error.step, error.errno, error.detail) == ("mount proc", 13, "/proc")


def test_another_exception_is_told_in_words_that_fit() -> None:
    fields, _ = told(ValueError("x" * 10_000), "mount", "/data")
    error = failure(fields)
    assert error.errno == 0
    assert error.detail.startswith("/data ValueError: xxx")
    assert len(error.detail) <= 512


def test_a_message_without_details_is_an_error_all_the_same() -> None:
    assert (failure({}).step, failure({"errno": ""}).errno) == ("unknown", 0)
