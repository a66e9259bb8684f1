"""C11: a background child that keeps stdout or stderr open (rows 1 to 3; the others are about sessions)."""

from __future__ import annotations

import subprocess
import time

import pytest

SECONDS = 3  # the case's own bound; the children sleep for 300


def test_row_1_the_run_ends_with_the_script(case, run_full):
    here = case("C11")
    start = time.monotonic()
    done = run_full(["run", "input.py"], cwd=here)
    assert time.monotonic() - start < SECONDS
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["child up", "parent done"]
    assert (here / "out/ran.txt").read_text() == "yes"


def test_row_2_no_child_is_left_on_the_host(case, reach, reach_env, descendants):
    # As `pgrep -f PATTERN` right after the run, among the processes that came from this run.
    patterns = ("reach-case-c11", "sleep 301.11")

    def matching():
        lines = descendants().values()
        return [pattern for pattern in patterns if any(pattern in line for line in lines)]

    before = descendants()
    with subprocess.Popen([reach, "run", "input.py"], cwd=case("C11"), env=reach_env) as run:
        while (seen := matching()) != list(patterns) and run.poll() is None:
            time.sleep(0.01)
        assert run.wait(60) == 0
    assert seen == list(patterns), "the children were to be seen while the script ran"
    assert matching() == []
    assert descendants().keys() <= before.keys()


@pytest.mark.parametrize("command", ['"$1" run input.py > log; cat log', '"$1" run input.py | cat'])
def test_row_3_the_pipe_closes_too(case, reach, reach_env, command):
    start = time.monotonic()
    done = subprocess.run(
        ["sh", "-c", command, "sh", reach],
        cwd=case("C11"),
        env=reach_env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert time.monotonic() - start < SECONDS
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["child up", "parent done"]
