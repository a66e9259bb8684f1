"""Files that are there whole or not at all."""

from __future__ import annotations

import os

import pytest

from agent_reach._util.atomic import put


def test_a_file_takes_the_place_of_another(tmp_path) -> None:
    place = tmp_path / "entry"
    place.write_bytes(b"old")
    put(str(place), b"new")
    assert place.read_bytes() == b"new"
    assert place.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["entry"]


def test_a_failure_leaves_nothing_behind(tmp_path) -> None:
    place = tmp_path / "entry"
    place.mkdir()
    with pytest.raises(IsADirectoryError):
        put(str(place), b"new")
    assert os.listdir(tmp_path) == ["entry"]
