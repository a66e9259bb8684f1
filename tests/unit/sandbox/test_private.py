"""The fresh directories of a run in tier reduced, and what killed runs leave."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_reach.sandbox import private
from unit.plan.support import REDUCED, planned

if TYPE_CHECKING:
    from pathlib import Path

    from agent_reach.plan.model import SandboxPlan

GUARD = (("sitecustomize.py", b"pass"), ("agent_reach/wire/frames.py", b"x"))


def plan_in(tmp_path: Path, digits: str) -> SandboxPlan:
    return planned(facts=REDUCED.replace(private=f"{tmp_path}/reach-run-{digits}"))


def test_the_directories_are_ours_alone_and_hold_the_guard(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, "0123456789abcdef")
    held = private.make(plan, GUARD)
    root = tmp_path / "reach-run-0123456789abcdef"
    assert {path.name: path.stat().st_mode & 0o777 for path in root.iterdir()} == dict.fromkeys(
        ("home", "tmp", "guard"), 0o700
    )
    assert root.stat().st_mode & 0o777 == 0o700
    assert (root / "guard/agent_reach/wire/frames.py").read_bytes() == b"x"
    assert (root / "guard/sitecustomize.py").stat().st_mode & 0o777 == 0o400
    assert os.path.samestat(os.fstat(held), root.stat())
    private.remove(plan.private)
    assert not root.exists()
    private.remove(plan.private)
    os.close(held)


def test_what_a_killed_run_left_is_collected_and_a_living_one_stays(tmp_path: Path) -> None:
    dead, alive = plan_in(tmp_path, "0" * 16), plan_in(tmp_path, "1" * 16)
    os.close(private.make(dead, GUARD))
    held = private.make(alive, GUARD)
    private.collect(f"{tmp_path}/reach-run-{'2' * 16}")
    assert [path.name for path in tmp_path.iterdir()] == [f"reach-run-{'1' * 16}"]
    os.close(held)


def test_what_is_only_named_alike_stays(tmp_path: Path) -> None:
    names = ("reach-run-notes", "reach-run-0123", f"reach-run-{'g' * 16}", f"other-run-{'0' * 16}", "reach-run-")
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / f"reach-run-{'3' * 16}").symlink_to(tmp_path / "reach-run-notes")
    (tmp_path / f"reach-run-{'4' * 16}").touch()
    before = sorted(path.name for path in tmp_path.iterdir())
    private.collect(f"{tmp_path}/reach-run-{'2' * 16}")
    assert sorted(path.name for path in tmp_path.iterdir()) == before
