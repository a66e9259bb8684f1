from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_reach.contract.load import discover
from agent_reach.errors import ContractError

if TYPE_CHECKING:
    from pathlib import Path


def put(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    path.chmod(0o644)
    return str(path)


def test_the_contract_of_the_script_beats_that_of_the_project(tmp_path: Path) -> None:
    project = put(tmp_path / "reach.yaml")
    own = put(tmp_path / "sync.reach.yaml")
    assert discover("sync.py", str(tmp_path), "/") == own
    assert discover("sync", str(tmp_path), "/") == own
    assert discover("other.py", str(tmp_path), "/") == project
    assert discover(None, str(tmp_path), "/") == project


def test_it_is_looked_for_from_the_script_not_from_the_working_directory(tmp_path: Path) -> None:
    put(tmp_path / "reach.yaml")
    own = put(tmp_path / "jobs" / "reach.yaml")
    assert discover("jobs/x.py", str(tmp_path), "/") == own
    assert discover(f"{tmp_path}/jobs/x.py", "/", "/") == own


def test_upward_to_the_repository(tmp_path: Path) -> None:
    outer = put(tmp_path / "reach.yaml")
    (tmp_path / "repo" / "a" / "b").mkdir(parents=True)
    assert discover("x.py", f"{tmp_path}/repo/a/b", "/") == outer
    (tmp_path / "repo" / ".git").mkdir()
    assert discover("x.py", f"{tmp_path}/repo/a/b", "/") is None
    inner = put(tmp_path / "repo" / "reach.yaml")
    assert discover("x.py", f"{tmp_path}/repo/a/b", "/") == inner


def test_upward_to_home(tmp_path: Path) -> None:
    put(tmp_path / "reach.yaml")
    home = tmp_path / "alice"
    (home / "a").mkdir(parents=True)
    assert discover("x.py", str(home / "a"), str(home)) is None
    own = put(home / "reach.yaml")
    assert discover("x.py", str(home / "a"), str(home)) == own


def test_not_across_file_systems() -> None:
    # /proc is a file system of its own; / may hold a contract, but not for what is in /proc.
    assert discover("x.py", "/proc/self", "/nowhere") is None


def test_one_that_everybody_can_write_is_refused_not_passed_over(tmp_path: Path) -> None:
    path = put(tmp_path / "a" / "reach.yaml")
    put(tmp_path / "reach.yaml")
    (tmp_path / "a" / "reach.yaml").chmod(0o666)
    with pytest.raises(ContractError) as caught:
        discover("x.py", f"{tmp_path}/a", "/")
    (finding,) = caught.value.findings
    assert (finding.code, finding.file) == ("E_PERMISSIONS", path)


def test_a_directory_of_that_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "reach.yaml").mkdir()
    with pytest.raises(ContractError):
        discover("x.py", str(tmp_path), "/")
