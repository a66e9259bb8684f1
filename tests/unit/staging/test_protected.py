"""Names in writable grants that other programs obey: what a run makes there does not stay."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from agent_reach.staging import protected
from agent_reach.staging.protected import clear_set_id, move_aside, unmounted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUN = "0123"


@pytest.fixture
def grant(tmp_path: Path) -> Path:
    (tmp_path / "grant").mkdir()
    return tmp_path / "grant"


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def aside(grant: Path, act: Callable[[], object]) -> dict[str, str]:
    """Return subject and clause of what is said after `act`, the run."""
    watched = unmounted([str(grant)])
    act()
    denials = move_aside(watched, RUN)
    assert {(denial.action, denial.layer, denial.shown) for denial in denials} <= {("write", "launcher", True)}
    return {os.path.relpath(denial.subject, grant): denial.clause for denial in denials}


def test_a_run_that_makes_none_of_them_is_left_alone(grant: Path) -> None:
    assert aside(grant, (grant / "result.csv").touch) == {}
    assert names_in(grant) == ["result.csv"]


@pytest.mark.parametrize("name", [".envrc", ".git", ".vscode", "reach.yaml", "reach.lock"])
def test_what_a_run_makes_under_a_protected_name_is_moved_aside(grant: Path, name: str) -> None:
    found = aside(grant, (grant / name).mkdir)
    assert found == {name: f"a protected name in a writable grant; moved to {grant}/{name}.reach-{RUN}"}
    assert names_in(grant) == [f"{name}.reach-{RUN}"]


def test_what_was_there_stays_and_is_not_watched(grant: Path) -> None:
    (grant / ".envrc").write_text("export A=1")
    assert f"{grant}/.envrc" not in dict(unmounted([str(grant)]))
    assert aside(grant, lambda: None) == {}
    assert names_in(grant) == [".envrc"]


def test_hooks_in_an_existing_repository_are_moved_alone(grant: Path) -> None:
    (grant / ".git").mkdir()
    assert set(aside(grant, (grant / ".git" / "hooks").mkdir)) == {".git/hooks"}
    assert names_in(grant / ".git") == [f"hooks.reach-{RUN}"]


def test_a_directory_without_the_right_to_write_hides_nothing(grant: Path) -> None:
    def lock() -> None:
        (grant / ".envrc").touch()
        grant.chmod(0o500)

    assert set(aside(grant, lock)) == {".envrc"}
    assert names_in(grant) == [f".envrc.reach-{RUN}"]


def test_a_link_in_the_place_of_the_repository_leads_nobody_out_of_the_grant(grant: Path, tmp_path: Path) -> None:
    (grant / ".git").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config").touch()

    def exchange() -> None:
        (grant / ".git").rename(grant / "old")
        (grant / ".git").symlink_to(tmp_path / "other")

    assert set(aside(grant, exchange)) == {".git"}
    assert names_in(tmp_path / "other") == ["config"]
    assert names_in(grant) == [f".git.reach-{RUN}", "old"]


def test_a_link_that_was_there_stays_as_long_as_it_says_the_same(grant: Path) -> None:
    (grant / ".vscode").symlink_to("settings")
    assert aside(grant, lambda: None) == {}

    def exchange() -> None:
        (grant / ".vscode").unlink()
        (grant / ".vscode").symlink_to("tasks")

    assert set(aside(grant, exchange)) == {".vscode"}
    assert aside(grant, lambda: None) == {}


def test_what_cannot_be_moved_is_said(grant: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_source: str, _target: str) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "rename", refuse)
    assert "could not be moved away: Read-only file system" in aside(grant, (grant / ".envrc").touch)[".envrc"]


# -- set-id bits -----------------------------------------------------------------------------------------


def set_id(path: Path, mode: int = 0o6755) -> str:
    path.parent.mkdir(exist_ok=True)
    path.touch()
    path.chmod(mode)
    return str(path)


def mode_of(path: str) -> int:
    return os.stat(path).st_mode & 0o7777


def test_set_id_bits_of_a_run_are_taken_off_at_every_depth(grant: Path) -> None:
    since = time.time()
    both, unreadable = set_id(grant / "a" / "both"), set_id(grant / "unreadable", 0o4111)
    plain = set_id(grant / "plain", 0o1755)
    assert set(clear_set_id([str(grant)], since)) == {both, unreadable}
    assert [mode_of(path) for path in (both, unreadable, plain)] == [0o755, 0o111, 0o1755]


def test_what_a_run_has_not_touched_keeps_its_bits(grant: Path) -> None:
    old = set_id(grant / "old")
    assert clear_set_id([str(grant)], time.time() + 60) == ()
    assert mode_of(old) == 0o6755


def test_links_are_not_followed(grant: Path, tmp_path: Path) -> None:
    outside = set_id(tmp_path / "outside" / "tool")
    (grant / "file").symlink_to(outside)
    (grant / "directory").symlink_to(tmp_path / "outside")
    assert clear_set_id([str(grant)], 1.0) == ()
    assert mode_of(outside) == 0o6755


def test_a_directory_that_is_too_large_is_said(grant: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected, "_MOST_ENTRIES", 2)
    for name in "abc":
        (grant / name).touch()
    (remark,) = clear_set_id([str(grant)], 1.0)
    assert remark.startswith(f"{grant}: more than 2 entries")


def test_a_directory_that_is_gone_is_passed_over(grant: Path) -> None:
    assert clear_set_id([f"{grant}/gone"], 1.0) == ()
