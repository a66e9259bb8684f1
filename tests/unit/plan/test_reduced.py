"""Tier reduced: what Landlock alone can give, and what is refused because it cannot."""

from __future__ import annotations

import pytest

from agent_reach.contract.model import EnvGrant, FileGrant, Origin
from agent_reach.errors import Unavailable
from agent_reach.host.model import CommandFact, ProjectFact
from agent_reach.plan.facts import Pieces
from unit.plan.support import PYTHON, REDUCED, granting, planned

PRIVATE = REDUCED.private


def test_a_file_at_another_place_is_refused_by_name() -> None:
    grant = FileGrant("/data/in.csv", source="https://host/in.csv", origin=Origin("/srv/job/reach.yaml", 9))
    with pytest.raises(Unavailable) as caught:
        planned(*granting(grant, facts=REDUCED))
    assert "/data/in.csv" in caught.value.needed
    assert "/srv/job/reach.yaml:9" in caught.value.needed
    assert "reach doctor" in caught.value.fix


def test_a_file_at_its_own_place_is_granted() -> None:
    plan = planned(*granting(FileGrant("/data/in.csv"), FileGrant("/data/out", "w", directory=True), facts=REDUCED))
    assert "/data/in.csv" in plan.readable
    assert "/data/in.csv" not in plan.writable
    assert "/data/out" in plan.writable
    assert "/data/out" not in plan.readable


def test_a_grant_for_both_is_in_both_lists() -> None:
    plan = planned(*granting(FileGrant("/data", "rw", directory=True), facts=REDUCED))
    assert "/data" in plan.readable
    assert "/data" in plan.writable


def test_of_a_project_only_the_entries_beside_hidden_ones_can_be_read() -> None:
    facts = REDUCED.replace(project=ProjectFact("/srv/job", masks=(("/srv/job/.env", "file"),)))
    plan = planned(facts=facts)
    assert "/srv/job/job.py" in plan.readable
    assert not {"/srv/job", "/srv/job/.env"} & set(plan.readable)
    assert "/srv/job" in plan.listable


def test_of_a_directory_with_something_kept_only_the_pieces_are_granted() -> None:
    contract, facts = granting(FileGrant("/data", "rw", directory=True), facts=REDUCED)
    pieces = Pieces("/data", ("/data/.git/hooks",), ("/data",), ("/data/a", "/data/.git/HEAD"))
    plan = planned(contract, facts.replace(pieces=(pieces,)))
    assert "/data" in plan.readable
    assert "/data" not in plan.writable
    assert {"/data/a", "/data/.git/HEAD"} <= set(plan.writable)
    assert "/data" in plan.listable
    assert any("/data/.git/hooks" in note for note in plan.notes)


def test_a_directory_that_is_only_read_needs_no_remark_about_writing() -> None:
    contract, facts = granting(FileGrant("/data", "r", directory=True), facts=REDUCED)
    plan = planned(contract, facts.replace(pieces=(Pieces("/data", ("/data/s",), ("/data/a",)),)))
    assert not any("/data/s" in note for note in plan.notes)


@pytest.mark.parametrize("wide", ["/", "/usr", "/usr/local", "/home/alice"])
def test_nothing_wide_is_readable_because_python_lies_there(wide: str) -> None:
    plan = planned(facts=REDUCED.replace(interpreter=PYTHON.replace(prefix=wide, extra=(wide,))))
    assert wide not in plan.readable
    assert "" not in plan.readable


def test_neither_home_nor_the_terminals_of_the_same_user_nor_tmp_can_be_reached() -> None:
    plan = planned(facts=REDUCED)
    reached = {*plan.readable, *plan.writable}
    assert not reached & {"/home/alice", "/tmp", "/var/tmp", "/dev", "/dev/pts", "/dev/shm", "/proc", "/run", "/etc"}
    assert {PRIVATE, "/dev/null"} <= set(plan.writable)


def test_home_and_temporary_files_are_in_the_runs_own_directory() -> None:
    environment = dict(planned(facts=REDUCED).environment)
    assert environment["HOME"] == f"{PRIVATE}/home"
    assert environment["TMPDIR"] == f"{PRIVATE}/tmp"
    assert "use-vc" in environment["RES_OPTIONS"]


def test_the_guard_and_delivered_files_are_in_the_runs_own_directory() -> None:
    contract, facts = granting(env=(EnvGrant("CERT", deliver="file"),), facts=REDUCED)
    plan = planned(contract, facts.replace(guard_files=(("sitecustomize.py", b"x"),)))
    assert plan.program.guard == f"{PRIVATE}/guard"


def test_a_granted_command_can_be_executed_and_another_cannot() -> None:
    files = (("/usr/bin/git", "/usr/bin/git"), ("/usr/bin/sh", "/usr/bin/dash"), ("/usr/bin/dash", "/usr/bin/dash"))
    plan = planned(facts=REDUCED.replace(commands=(CommandFact("git", "/usr/bin/git", files, ("/opt/git",)),)))
    granted = {"/usr/bin/git", "/usr/bin/sh", "/usr/bin/dash", "/opt/git", "/usr/bin/python3", "/usr/bin/python3.11"}
    assert set(plan.executables) == granted
    assert granted <= set(plan.readable)
    assert not {"/usr/bin/curl", "/usr/bin", "/bin"} & {*plan.readable, *plan.executables}
