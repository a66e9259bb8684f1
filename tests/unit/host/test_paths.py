"""What lies at a path."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from agent_reach.host.model import PathFact
from agent_reach.host.paths import beneath, look

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_known_by_its_identity(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x")
    path.chmod(0o640)
    about = path.stat()
    assert look(str(path)) == PathFact(
        str(path), str(path), "file", about.st_dev, about.st_ino, about.st_uid, about.st_gid, 0o640
    )


def test_a_link_is_followed_to_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "one").symlink_to("real")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    fact = look(str(tmp_path / "two"))
    assert (fact.path, fact.real, fact.kind) == (str(tmp_path / "two"), str(tmp_path / "real"), "directory")


def test_a_link_to_nothing_is_told_from_nothing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone")
    assert look(str(tmp_path / "link")).kind == "symlink"
    assert look(str(tmp_path / "gone")).kind == "missing"
    assert look(str(tmp_path / "link" / "below")).kind == "missing"


def test_things_that_are_no_files_are_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        assert look(str(tmp_path / "s")).kind == "socket"
    assert look(str(tmp_path / "fifo")).kind == "fifo"
    assert look("/dev/null").kind == "device"


@pytest.mark.parametrize("ending", ["x" * 5000, "file/below", "loop"])
def test_what_cannot_be_looked_up_is_missing(tmp_path: Path, ending: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    path = f"{tmp_path}/{ending}"
    assert look(path) == PathFact(path, path, "missing")


@pytest.mark.parametrize(
    ("path", "root", "answer"),
    [("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False), ("/a", "/a/b", False), ("/a", "/", True)],
)
def test_beneath(path: str, root: str, answer: bool) -> None:
    assert beneath(path, root) is answer
