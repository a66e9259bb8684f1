"""The receipt claims what holds, and no more."""

from __future__ import annotations

from agent_reach.contract.model import Contract, Limit
from agent_reach.outcome import Enforced
from agent_reach.plan.receipt import make
from unit.plan.support import FULL, REDUCED, planned

CONTRACT = Contract(limits=(("wall", Limit(5.0)), ("memory", Limit(1 << 20))))


def lines_of(plan: object, held: dict[str, str] | None = None, **options: int) -> dict[str, Enforced]:
    return {line.what: line for line in make(plan, held or {}, **options).lines}


def test_full_names_the_namespaces() -> None:
    lines = lines_of(planned())
    assert lines["undeclared files"] == Enforced("undeclared files", "enforced", "mount namespace, Landlock ABI 6")
    assert "network namespace" in lines["undeclared connections"].by
    assert lines["other processes"] == Enforced("other processes", "enforced", "pid namespace")
    assert lines["commands"].level == "enforced"


def test_without_landlock_it_is_not_named() -> None:
    assert lines_of(planned(facts=FULL.replace(landlock=0)))["undeclared files"].by == "mount namespace"


def test_reduced_names_landlock_and_what_it_does_not_hold() -> None:
    lines = lines_of(planned(facts=REDUCED))
    assert lines["undeclared files"].by == "Landlock ABI 6"
    assert "namespace" not in " ".join(line.by for line in lines.values())
    assert lines["commands"].level == "best effort"
    assert lines["other processes"].by == "Landlock signal scope"
    assert lines_of(planned(facts=REDUCED.replace(landlock=5)))["other processes"].by == "broker"


def test_a_limit_is_enforced_only_by_a_mechanism_for_the_whole_tree() -> None:
    lines = lines_of(planned(CONTRACT), {"wall": "supervisor"})
    assert lines["limits.wall"] == Enforced("limits.wall", "enforced", "supervisor")
    assert lines["limits.memory"] == Enforced("limits.memory", "best effort", "watchdog")
    assert lines["limits.processes"].level == "best effort"


def test_remarks_of_plan_and_run_are_both_there() -> None:
    receipt = make(planned(), {}, ("set-id bits cleared: /data/x",))
    assert receipt.tier == "full"
    assert receipt.notes == ("interpreter /usr/bin/python3 (PATH)", "set-id bits cleared: /data/x")


def test_uid_0_on_the_host_is_reported() -> None:
    assert "uid 0, no capabilities" in make(planned(), {}, uid=0).notes
    assert "uid 0, no capabilities" not in make(planned(), {}, uid=1001).notes
