"""DESIGN section 3, rules 14 and 15: what a host can do is found out by doing it, and every floor is forced once."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

HELLO = "print('hello')"


def test_rule_14_a_whole_host_has_tier_full(caller):
    ended = caller.run(HELLO)
    assert (ended.status, ended.out, ended.tier) == (0, "hello\n", "full"), ended


def test_rule_14_a_namespace_that_may_be_made_and_not_used_is_not_believed(caller):
    """Ubuntu 24.04: the namespace succeeds, and what is done in it is refused."""
    ended = caller.refused(mount="EACCES").run(HELLO)
    assert (ended.status, ended.out, ended.tier) == (0, "hello\n", "reduced"), ended
    assert "tier reduced: user namespaces: step `tmpfs`" in ended.err or "step `" in ended.err


def test_rule_14_a_masked_proc_is_found_out_by_mounting_one(caller):
    """As in a container: everything succeeds but the mount of a new procfs, and the fix is the container's."""
    if os.geteuid():
        pytest.skip("not root: the mask has to lie outside the user namespace that the run makes")

    def run(*options):
        words = [*caller.prefix, *map(str, caller.words(HELLO, options=options))]
        script = f"mount -t tmpfs tmpfs /proc/irq && cd {caller.work} && exec {shlex.join(words)}"
        words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
        pipes = {"capture_output": True, "text": True, "timeout": 60}
        return subprocess.run(words, env=caller.environment, check=False, **pipes)

    done = run()
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert "tier reduced: a new procfs" in done.stderr
    refused = run("--minimum", "full")
    assert refused.returncode == 125
    assert "systempaths=unconfined" in refused.stderr


def test_rule_14_what_was_found_out_holds_only_for_the_same_confinement(caller):
    """The answer is remembered; a process that may do less asks again, and one that may do more again as well."""
    assert caller.run(HELLO).tier == "full"
    assert caller.confined("no user namespaces").run(HELLO).tier == "reduced"
    assert caller.run(HELLO).tier == "full"


def test_rule_14_a_control_group_is_believed_when_it_held(caller):
    """Read back, and tried: a program beyond the limit is ended by whoever the receipt names."""
    greedy = "kept = bytearray(400 << 20)\nfor at in range(0, len(kept), 4096): kept[at] = 1\nprint('all')\n"
    greedy += "import time; time.sleep(5)"
    ended = caller.run(greedy, options=["--limit", "memory=150MiB"])
    level, mechanism = ended.level("limits.memory")
    assert (ended.result["cause"], ended.result["limit"]) == ("limit", "memory"), ended
    assert (level == "enforced") == mechanism.startswith("cgroup")
    modest = caller.run(greedy.replace("400", "40").replace("(5)", "(0)"), options=["--limit", "memory=150MiB"])
    assert (modest.status, modest.out) == (0, "all\n"), modest


def test_rule_14_no_process_that_is_not_ours_is_moved(caller):
    mine = Path("/proc/self/cgroup").read_text()
    with caller.running(options=["--limit", "memory=300MiB"]) as (launcher, supervisor, *_):
        for pid in (launcher, supervisor):
            assert Path(f"/proc/{pid}/cgroup").read_text() == mine
    assert Path("/proc/self/cgroup").read_text() == mine


@pytest.mark.parametrize("call", ["pidfd_getfd", "seccomp", "open_tree", "mount_setattr", "move_mount", "clone3"])
@pytest.mark.parametrize("error", ["ENOSYS", "EPERM"])
def test_rule_15_with_a_call_missing_a_run_is_weaker_by_name_or_refused(caller, call, error):
    """Never silently weaker: it runs in a tier that the receipt names, or it does not run and says why."""
    ended = caller.refused(**{call: error}).run(HELLO)
    if ended.status == 0:
        assert ended.out == "hello\n", ended
        assert ended.tier == "full" or "tier reduced: " in ended.err, ended
    else:
        assert (ended.status, ended.out) == (125, ""), ended
        assert ended.err.startswith("reach: "), ended
        assert "internal error" not in ended.err


def test_rule_15_undeclared_files_are_refused_with_every_landlock(confined):
    hidden = confined.own(confined.place / "hidden", "x")
    shown = confined.own(confined.place / "shown", "y")
    code = """
import os, sys
for path in sys.argv[1:]:
    try: print(os.read(os.open(path, os.O_RDONLY), 1))
    except OSError as e: print(e.errno)
"""
    ended = confined.run(code, options=["--read", shown], args=[hidden, shown])
    assert ended.out.split() == ["13", "b'y'"], ended


def test_rule_15_below_landlock_2_tier_reduced_is_refused(caller):
    confined = caller.confined("Landlock ABI 1")
    ended = confined.run(HELLO)
    assert (ended.status, ended.out) == (125, ""), ended
    assert "Landlock: ABI 1" in ended.err
    assert caller.confined("Landlock ABI 2").run(HELLO).out == "hello\n"


def test_rule_15_tier_full_runs_without_landlock_and_says_so(caller):
    other = caller.copy()
    other.command = [caller.python, str(Path(__file__).parent.parent / "landlock_abi.py"), "0"]
    ended = other.run(HELLO, options=["--no-cache"])
    assert (ended.status, ended.out, ended.tier) == (0, "hello\n", "full"), ended
    assert ended.level("undeclared files") == ("enforced", "mount namespace")
