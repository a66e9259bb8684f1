"""Launchers and supervisors that are killed leave nothing behind; the long form is `python kill_soak.py 300`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.soak
@pytest.mark.parametrize("tier", ["full", "reduced"])
def test_killed_runs_leave_the_host_as_it_was(caller, tier, long):
    rounds = 300 if long else 20 if tier == "full" else 8
    words = [caller.python, HERE / "kill_soak.py", rounds, "--seed", 1, "--tier", tier]
    done = caller.bare(words, timeout=rounds * 3 + 60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not as before" not in done.stdout
