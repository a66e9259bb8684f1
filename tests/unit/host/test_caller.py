"""Who starts the run."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

import pytest

from agent_reach.host.caller import look_at_caller

if TYPE_CHECKING:
    from pathlib import Path


def test_ids_and_place_are_those_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o027)
    try:
        caller = look_at_caller({"HOME": "/home/alice"})
    finally:
        after = os.umask(before)
    assert (caller.uid, caller.gid, caller.cwd) == (os.geteuid(), os.getegid(), str(tmp_path))
    assert caller.umask == after == 0o027


def test_home_of_the_environment_wins_over_passwd() -> None:
    assert look_at_caller({"HOME": "/srv//alice/"}).home == "/srv/alice"
    assert look_at_caller({}).home == pwd.getpwuid(os.geteuid()).pw_dir


@pytest.mark.parametrize("home", ["/", "relative", "~"])
def test_a_home_that_is_no_place_is_replaced(home: str) -> None:
    assert look_at_caller({"HOME": home}).home == "/home/user"


def test_a_uid_without_an_entry_has_a_name_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 987_654_321)
    caller = look_at_caller({})
    assert (caller.name, caller.home) == ("user987654321", "/home/user")


def test_a_working_directory_that_is_gone_counts_as_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert look_at_caller({"HOME": "/home/alice"}).cwd == "/"
