"""Memory and processor time of a tree, seen from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from agent_reach.sandbox.watchdog import PERIOD, Watchdog, _tree

if TYPE_CHECKING:
    from collections.abc import Iterator

# A process with a child, which holds 48 MiB and has used some processor time.
PROGRAM = """
import subprocess, sys, time
if len(sys.argv) == 1:
    child = subprocess.Popen([sys.executable, "-S", __file__, "child"], stdin=subprocess.PIPE)
    child.wait()
else:
    held = b"x" * (48 << 20)
    while time.process_time() < 0.15:
        pass
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    script = tmp_path_factory.mktemp("tree") / "program.py"
    script.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, "-S", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        for pid in _tree(process.pid):
            os.kill(pid, 9)


def look(tree: int, *, memory: float = 0, cpu_time: float = 0) -> tuple[str, int]:
    watchdog = Watchdog(tree, memory=memory, cpu_time=cpu_time, scratch=False)
    return watchdog.look(), watchdog.peak


def test_the_tree_is_the_process_and_its_descendants(tree: int) -> None:
    assert len(_tree(tree)) == 2
    assert _tree(tree)[0] == tree
    assert os.getpid() not in _tree(tree)


def test_memory_of_the_whole_tree_counts(tree: int) -> None:
    limit, peak = look(tree, memory=40 << 20)
    assert limit == "memory"
    assert 48 << 20 < peak < 200 << 20
    assert look(tree, memory=1 << 30)[0] == ""


def test_processor_time_of_the_whole_tree_counts(tree: int) -> None:
    assert look(tree, cpu_time=0.05)[0] == "cpu_time"
    assert look(tree, cpu_time=3600)[0] == ""
    assert look(tree)[0] == ""


def test_it_does_not_look_again_before_it_is_due(tree: int) -> None:
    watchdog = Watchdog(tree, memory=1, cpu_time=0, scratch=False)
    assert watchdog.due() == 0.0
    assert watchdog.look() == "memory"
    assert watchdog.due() <= PERIOD
    watchdog._next = time.monotonic() + 1000
    assert watchdog.due() > 900
    assert watchdog.look() == ""


def test_a_tree_that_is_gone_exceeds_nothing() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert look(process.pid, memory=1, cpu_time=0.001) == ("", 0)
