"""Which mechanism each limit gets, and what the filter and Landlock are told."""

from __future__ import annotations

import resource

import pytest

from agent_reach.contract.model import Contract, FileGrant, Limit
from agent_reach.linux import landlock
from agent_reach.sandbox import limits
from agent_reach.sandbox.lock import landlock_rules, make_lock
from unit.plan.support import FULL, REDUCED, granting, planned

CONTRACT = Contract(
    limits=tuple(
        (name, Limit(value))
        for name, value in {
            "wall": 5,
            "memory": 1 << 20,
            "cpus": 2,
            "cpu_time": 1.5,
            "open_files": 50,
            "output": 9,
        }.items()
    )
)


def test_every_run_bounds_processes_and_files_and_leaves_no_core() -> None:
    found = {kind: (soft, hard) for kind, soft, hard in limits.resource_limits({"processes": 64})}
    assert found[resource.RLIMIT_NPROC] == (64, 64)
    assert found[resource.RLIMIT_CORE] == (0, 0)
    assert found[resource.RLIMIT_NOFILE][0] == 1024
    assert resource.RLIMIT_CPU not in found


def test_open_files_and_processor_time_are_limits_of_each_process() -> None:
    wanted = {"processes": 64, "open_files": 50, "cpu_time": 1.5}
    found = {kind: (soft, hard) for kind, soft, hard in limits.resource_limits(wanted)}
    assert found[resource.RLIMIT_NOFILE] == (50, 50)
    assert found[resource.RLIMIT_CPU] == (2, 3)
    assert limits.resource_limits({"processes": 1, "cpu_time": 0.2})[-1] == (resource.RLIMIT_CPU, 1, 2)


def test_a_control_group_is_asked_for_what_it_holds_best() -> None:
    assert limits.by_control_group(planned(CONTRACT)) == {"memory": 1 << 20, "cpus": 2}
    reduced = limits.by_control_group(planned(CONTRACT, REDUCED))
    assert reduced == {"memory": 1 << 20, "cpus": 2, "processes": 1024}


def test_what_is_held_without_a_control_group() -> None:
    full = limits.held_without(planned(CONTRACT), 1001)
    assert {"wall", "output", "open_files", "scratch", "processes"} <= set(full)
    assert not {"memory", "cpus", "cpu_time"} & set(full)
    assert "processes" not in limits.held_without(planned(CONTRACT), 0)
    assert not {"processes", "scratch", "scratch_inodes"} & set(limits.held_without(planned(CONTRACT, REDUCED), 1001))


def test_the_filter_of_tier_full_permits_what_namespaces_hold() -> None:
    options = limits.filter_options(planned())
    options.check()
    assert (options.tier, options.metadata, options.uid, options.gid) == ("full", "allow", 1001, 1002)
    assert not any((options.notify_forks, options.notify_signals, options.no_memfd, options.refuse_truncate))


def test_the_filter_of_tier_reduced_makes_up_for_namespaces_and_old_landlock() -> None:
    options = limits.filter_options(planned(facts=REDUCED))
    options.check()
    assert (options.metadata, options.notify_forks, options.notify_signals) == ("notify", True, False)
    assert limits.filter_options(planned(facts=REDUCED.replace(landlock=5))).notify_signals
    assert limits.filter_options(planned(facts=REDUCED.replace(landlock=2))).refuse_truncate
    assert not limits.filter_options(planned(facts=REDUCED.replace(landlock=3))).refuse_truncate


def test_memory_files_are_refused_where_nothing_would_count_them() -> None:
    plan = planned(CONTRACT)
    assert limits.filter_options(plan).no_memfd
    assert not limits.filter_options(plan.replace(memory_cgroup=True)).no_memfd


# -- Landlock --------------------------------------------------------------------------------------------


def rights(plan: object) -> dict[str, int]:
    rules = landlock_rules(plan)
    assert len(dict(rules)) == len(rules)
    return dict(rules)


def test_full_reads_what_is_shown_and_writes_what_is_granted() -> None:
    found = rights(planned(*granting(FileGrant("/data", "rw", directory=True), FileGrant("/docs"))))
    assert found["/"] == landlock.READ | landlock.EXECUTE
    assert found["/data"] & landlock.WRITE == landlock.WRITE
    assert "/docs" not in found


def test_a_grant_for_writing_alone_can_be_listed_and_not_read() -> None:
    found = rights(planned(*granting(FileGrant("/data", "w", directory=True))))
    assert found["/data"] == landlock.WRITE | landlock.READ_DIR
    assert found["/"] == landlock.READ_DIR
    assert not found["/data"] & (landlock.READ_FILE | landlock.EXECUTE)


@pytest.mark.parametrize("facts", [FULL, REDUCED])
def test_no_device_or_special_file_can_be_made_but_sockets_and_fifos(facts: object) -> None:
    for path, granted in rights(planned(*granting(FileGrant("/data", "rw", directory=True), facts=facts))).items():
        assert not granted & (landlock.MAKE_CHAR | landlock.MAKE_BLOCK), path


def test_reduced_executes_what_it_reads_and_lists_the_project() -> None:
    found = rights(planned(facts=REDUCED))
    assert found["/usr/bin/python3"] & landlock.EXECUTE
    assert found["/srv/job"] == landlock.READ_DIR
    assert "/" not in found
    assert found[REDUCED.private] & landlock.WRITE == landlock.WRITE


def test_the_lock_holds_limits_rules_and_a_filter() -> None:
    full, reduced = make_lock(planned(), ""), make_lock(planned(facts=REDUCED), "")
    assert (full.version, full.refuse_bind, reduced.refuse_bind) == (6, False, True)
    assert full.rules == landlock_rules(planned())
    assert full.program
    assert len(full.program) % 8 == 0
    assert full.program != reduced.program
