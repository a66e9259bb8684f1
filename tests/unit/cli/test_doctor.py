"""The page of `reach doctor` and the fixes, from facts that a test states."""

from __future__ import annotations

import pytest

from agent_reach.cli import doctor, remedies
from agent_reach.cli.mechanisms import MISSING, OK, WEAK, Check
from agent_reach.cli.terminal import Paint
from agent_reach.linux.probe import Abilities, Obstacle

PLAIN = Paint(on=False)
PROC = Obstacle("a new procfs", "step `proc`: Operation not permitted", "the fix of a plain host")


def page(*checks: Check, abilities: Abilities) -> list[str]:
    return doctor.lines(list(checks), abilities, PLAIN)


def test_a_host_that_can_everything() -> None:
    assert page(Check("Landlock", OK, "ABI 7"), abilities=Abilities("full", 7)) == [
        "ok         Landlock          ABI 7",
        "",
        "tier full: namespaces, Landlock, seccomp and the broker enforce a contract",
    ]


def test_a_fix_stands_below_what_is_missing_and_at_the_end(monkeypatch) -> None:
    monkeypatch.setattr(remedies, "place", lambda: "")
    lines = page(
        Check("procfs", MISSING, PROC.found, "do this"),
        Check("control groups", WEAK, "none", "or that"),
        abilities=Abilities("reduced", 7, PROC),
    )
    assert lines[:4] == [
        "missing    procfs            step `proc`: Operation not permitted",
        "                             fix: do this",
        "weak       control groups    none",
        "                             fix: or that",
    ]
    assert lines[-2:] == ["to get more:", "  the fix of a plain host"]


def test_findings_are_folded_and_fixes_are_not() -> None:
    lines = page(Check("x", WEAK, "word " * 30, "copy " * 30), abilities=Abilities("full", 7))
    assert all(len(line) <= 80 for line in lines if "copy" not in line)
    assert sum("copy" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("place", "obstacle", "words"),
    [
        ("", PROC, "the fix of a plain host"),
        ("docker", PROC, "--security-opt systempaths=unconfined"),
        ("kubernetes", PROC, "procMount: Unmasked"),
        ("docker", PROC.replace(fix="sysctl -w user.max_user_namespaces=15000"), "sysctl -w"),
        ("docker", Obstacle("a root that can mount", "x", "as an ordinary user"), "as an ordinary user"),
    ],
)
def test_the_fix_is_that_of_the_place(place, obstacle, words, monkeypatch) -> None:
    monkeypatch.setattr(remedies, "place", lambda: place)
    assert words in remedies.for_obstacle(obstacle)


def test_the_profile_is_attached_to_the_script_and_not_to_python(monkeypatch, tmp_path) -> None:
    script = tmp_path / "bin" / "reach"
    script.parent.mkdir()
    script.touch()
    (tmp_path / "reach").symlink_to(script)
    monkeypatch.setattr("sys.argv", [str(tmp_path / "reach")])
    profile = remedies.apparmor_profile()
    assert f'profile reach "{script}" flags=(unconfined) {{\n  userns,\n' in profile
    assert "python" not in profile.lower().replace("not to python", "")


def test_a_raspberry_without_the_memory_controller_gets_the_boot_words(monkeypatch) -> None:
    files = {"/proc/device-tree/model": "Raspberry Pi 5 Model B", "/sys/fs/cgroup/cgroup.controllers": "cpu pids"}
    monkeypatch.setattr(remedies, "place", lambda: "")
    monkeypatch.setattr(remedies, "_read", lambda path, *_: files.get(path, ""))
    assert "cgroup_enable=memory" in remedies.for_control_groups()
    files["/sys/fs/cgroup/cgroup.controllers"] = "cpu memory pids"
    assert "Delegate=yes" in remedies.for_control_groups()
