"""Environment and staged files over the pipe between launcher and worker."""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.sandbox.values import ValuesWriter, receive, send_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NAMES = st.text(st.characters(blacklist_characters="=\0", blacklist_categories=("Cs",)), min_size=1, max_size=8)
TEXTS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=200)


def received(scratch: int, send: Callable[[ValuesWriter], object]) -> dict[bytes, bytes] | None:
    """Return what the worker gets of what `send` writes."""
    read, write = os.pipe()
    writer = ValuesWriter(write)
    thread = threading.Thread(target=send, args=(writer,))
    thread.start()
    try:
        return receive(read, scratch)
    finally:
        thread.join()
        writer.abandon()
        os.close(read)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    path = tmp_path_factory.mktemp("stage")
    descriptor = os.open(path, os.O_RDONLY)
    yield path, descriptor
    os.close(descriptor)


@given(environment=st.dictionaries(NAMES, TEXTS, max_size=5), staged=st.dictionaries(st.integers(0, 3), st.binary()))
def test_everything_arrives_as_it_was(
    directory: tuple[Path, int], environment: dict[str, str], staged: dict[int, bytes]
) -> None:
    path, scratch = directory
    for old in path.iterdir():
        old.unlink()
    found = received(scratch, lambda writer: send_all(writer, environment, staged))
    assert found == {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
    assert {file.name: file.read_bytes() for file in path.iterdir()} == {
        f"staged-{number}": content for number, content in staged.items()
    }


def test_values_of_any_size_and_any_byte_arrive(directory: tuple[Path, int]) -> None:
    path, scratch = directory
    value, content = "ä=\udcff\n" * 100_000, bytes(range(256)) * 20_000
    found = received(scratch, lambda writer: send_all(writer, {"A": value, "EMPTY": ""}, {7: content}))
    assert found == {b"A": os.fsencode(value), b"EMPTY": b""}
    assert (path / "staged-7").read_bytes() == content
    assert stat.S_IMODE((path / "staged-7").stat().st_mode) == 0o444


def test_a_place_that_was_made_before_is_filled(directory: tuple[Path, int]) -> None:
    path, scratch = directory
    (path / "staged-9").touch(mode=0o444)
    received(scratch, lambda writer: send_all(writer, {}, {9: b"secret"}))
    assert (path / "staged-9").read_bytes() == b"secret"


def test_a_link_in_the_place_of_a_staged_file_is_not_followed(directory: tuple[Path, int], tmp_path: Path) -> None:
    path, scratch = directory
    (tmp_path / "target").touch()
    (path / "staged-8").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        received(scratch, lambda writer: (writer.staged(8, b"x"), writer.finish()))
    assert (tmp_path / "target").read_bytes() == b""


@pytest.mark.parametrize("sent", [0, 1, 2])
def test_without_the_end_mark_nothing_runs(directory: tuple[Path, int], sent: int) -> None:
    def give_up(writer: ValuesWriter) -> None:
        for number in range(sent):
            writer.variable(f"A{number}", "x")
        writer.abandon()

    assert received(directory[1], give_up) is None


def test_a_message_that_is_cut_short_is_no_environment(directory: tuple[Path, int]) -> None:
    whole_read, whole_write = os.pipe()
    send_all(ValuesWriter(whole_write), {"NAME": "value"}, {})
    data = os.read(whole_read, 1000)
    os.close(whole_read)
    for length in range(len(data)):
        read, write = os.pipe()
        os.write(write, data[:length])
        os.close(write)
        assert receive(read, directory[1]) is None, length
        os.close(read)
