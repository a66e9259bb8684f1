"""C17: process pools, semaphores and shared memory under a closed network, and a limit counted per run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

SIX_LINES = """\
fork [2, 3, 4]
spawn [2, 3, 4]
forkserver [2, 3, 4]
shm b'reach'
manager {'a': 1, 'b': 2}
threads 20 False
"""
LIMIT = 64


@pytest.fixture
def noise():
    """Start the 80 idle processes of noise.sh in a case's directory; they end with the test."""
    pids = []

    def start(here):
        subprocess.run(["sh", "noise.sh"], cwd=here, stdout=subprocess.DEVNULL, check=True)
        pids.extend(map(int, (here / "noise.pids").read_text().split()))
        return pids

    yield start
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_rows_1_and_4_pools_shared_memory_and_managers_work(case, run_full, no_process_left):
    here = case("C17")
    with no_process_left():
        done = run_full(["run", "input.py"], cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (0, SIX_LINES, "")


def test_rows_2_and_4_other_processes_of_the_user_do_not_count(case, run_full, noise, no_process_left):
    here = case("C17")
    assert len(noise(here)) > LIMIT
    with no_process_left():
        done = run_full(["run", "input.py"], cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (0, SIX_LINES, "")


def test_rows_3_and_4_a_fork_bomb_stops_at_the_limit(case, run_full, no_process_left):
    with no_process_left():
        done = run_full(["run", "bomb.py"], cwd=case("C17"))
    assert (done.returncode, done.stdout) == (0, "stopped by BlockingIOError before 500: True\n")


def test_row_3_the_host_can_still_start_processes_meanwhile(case, reach, reach_env):
    with subprocess.Popen(
        [reach, "run", "bomb.py"], cwd=case("C17"), env=reach_env, stdout=subprocess.PIPE, text=True
    ) as bomb:
        started = 0
        while bomb.poll() is None:
            subprocess.run(["true"], check=True, timeout=60)
            started += 1
        assert started > 0
        assert bomb.stdout.read() == "stopped by BlockingIOError before 500: True\n"


@pytest.mark.parametrize("script", ["input.py", "bomb.py"])
def test_row_4_nothing_new_in_the_host_s_shared_memory(case, run_full, own_shared_memory, script):
    here = case("C17")
    done = run_full(["run", script], cwd=here, prefix=own_shared_memory.prefix(here))
    assert (done.returncode, done.stderr) == (0, "")
    assert own_shared_memory.run(["ls", "-A", "/dev/shm"]).stdout == ""


def test_row_4_even_of_a_script_that_never_unlinks(case, run_full, own_shared_memory):
    here = case("C17")
    (here / "leave.py").write_text(
        "import _multiprocessing, os\n"
        "_multiprocessing.SemLock(1, 1, 1, '/reach-case-c17', False)\n"  # a named semaphore
        "print(os.listdir('/dev/shm'))\n"
    )
    bare = own_shared_memory.run([sys.executable, "leave.py"], cwd=here)
    assert bare.stdout == "['sem.reach-case-c17']\n"
    own_shared_memory.run(["rm", "/dev/shm/sem.reach-case-c17"])

    done = run_full(["run", "leave.py"], cwd=here, prefix=own_shared_memory.prefix(here))
    assert (done.returncode, done.stdout) == (0, bare.stdout)
    assert own_shared_memory.run(["ls", "-A", "/dev/shm"]).stdout == ""
