"""Directories that belong to somebody for as long as a lock is held."""

from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

import pytest

from agent_reach._util import held

if TYPE_CHECKING:
    from pathlib import Path


def test_a_directory_is_held_as_long_as_a_copy_of_its_descriptor_is_open(tmp_path: Path) -> None:
    path = str(tmp_path / "run")
    descriptor = held.make(path)
    assert os.stat(path).st_mode & 0o777 == 0o700
    assert held.take(path) == -1
    copy = os.dup(descriptor)
    os.close(descriptor)
    assert held.take(path) == -1
    os.close(copy)
    taken = held.take(path)
    assert taken >= 0
    assert held.take(path) == -1
    os.close(taken)


def test_what_exists_or_is_gone_or_is_no_directory_is_not_held(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError):
        held.make(str(tmp_path / "there"))
    (tmp_path / "link").symlink_to("there")
    (tmp_path / "file").touch()
    for name in ("gone", "link", "file"):
        assert held.take(str(tmp_path / name)) == -1


def test_a_tree_is_removed_whatever_its_modes_and_links(tmp_path: Path) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    (outside / "kept").mkdir(parents=True)
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "file").touch()
    (tree / "link").symlink_to(outside)
    (tree / "a" / "up").symlink_to("..")
    os.mkfifo(tree / "pipe")
    (tree / "a" / "b").chmod(0)
    (tree / "a").chmod(0o400)
    held.remove_tree(str(tree))
    assert not tree.exists()
    assert (outside / "kept").is_dir()


def test_depth_neither_recurses_nor_holds_descriptors(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 8, hard))
    try:
        held.remove_tree(str(tmp_path / "d"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
