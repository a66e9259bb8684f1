"""What crosses a border between processes."""

from __future__ import annotations

import os

import pytest

from agent_reach.sandbox.descriptors import close_all_but


def left_after(kept: tuple[int, ...], first: int) -> list[int]:
    """Return which of the descriptors 10 to 29 are open after the call, in a process of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(write, 40)
        for number in range(10, 30):
            os.dup2(read, number)
        close_all_but((*kept, 40), first)
        found = []
        for number in range(10, 30):
            try:
                os.fstat(number)
                found.append(number)
            except OSError:
                continue
        os.write(40, bytes(found))
        os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    found = os.read(read, 100)
    os.close(read)
    return list(found)


@pytest.mark.parametrize("kept", [(), (10,), (29,), (12, 11, 12, 20), tuple(range(10, 30)), (-1, 15)])
def test_only_what_is_listed_stays_open(kept: tuple[int, ...]) -> None:
    assert left_after(kept, 0) == sorted({number for number in kept if number >= 0})


def test_what_lies_below_the_first_is_left_alone() -> None:
    assert left_after((11, 25), 20) == [*range(10, 20), 25]
