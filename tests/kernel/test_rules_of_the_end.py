"""DESIGN section 3, rules 12 and 13: everything ends with the run, whoever dies first, and nothing is left."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

import callers

# A word in the command line by which the processes of one test are found from outside.
MARK = "reach-rule-12"
TREE = f"""
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = "import signal, time; signal.signal(15, 1); print('.', flush=True); time.sleep(300)"
for kind in range(4):
    p = subprocess.Popen([sys.executable, "-S", "-c", child, "{MARK}" + sys.argv[1]], start_new_session=bool(kind % 2),
      stdout=subprocess.PIPE)
    p.stdout.read(1)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(sys.executable, [sys.executable, "-S", "-c", child, "{MARK}" + sys.argv[1]])
    os._exit(0)
time.sleep(0.3); print("up", flush=True)
if sys.argv[2] == "wait": sys.stdin.read()
while sys.argv[2] == "for ever": time.sleep(100)
"""


def marked(word):
    """Return the processes of this machine whose command line has the word, but those of reach itself."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"{MARK}{word}".encode() in words:
            found.append(int(pid))
    return found


def gone(word, seconds=10):
    """Wait until there is none; return what is left."""
    end = time.monotonic() + seconds
    while (left := marked(word)) and time.monotonic() < end:
        time.sleep(0.02)
    return left


@pytest.fixture
def word(request):
    return f"-{os.getpid()}-{abs(hash(request.node.nodeid))}"


def test_rule_12_with_the_program_end_all_that_it_started(caller, word):
    ended = caller.run(TREE, args=[word, "end"])
    assert (ended.status, ended.out.strip()) == (0, "up"), ended
    assert not gone(word, seconds=1)


def test_rule_12_the_same_in_tier_reduced(confined, word):
    ended = confined.run(TREE, args=[word, "end"])
    assert (ended.status, ended.out.strip()) == (0, "up"), ended
    assert not gone(word, seconds=1)


def test_rule_12_at_the_wall_a_request_comes_first_and_then_the_kill(caller, word):
    limits = ["--limit", "wall=1s", "--limit", "grace=300ms"]
    ended = caller.run(TREE, args=[word, "for ever"], options=limits)
    assert (ended.status, ended.result["limit"]) == (124, "wall"), ended
    assert not gone(word, seconds=1)
    polite = "import signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(print('asked')))\ntime.sleep(60)"
    asked = caller.run(polite, options=limits)
    assert (asked.status, asked.out) == (124, "asked\n"), asked
    quick = caller.run("print('in time')", options=limits)
    assert (quick.status, quick.out) == (0, "in time\n"), quick


@pytest.mark.parametrize("victims", ["launcher", "supervisor", "launcher supervisor", "supervisor launcher", "init"])
def test_rule_13_whoever_is_killed_takes_the_sandbox_along(caller, word, victims):
    with caller.running(TREE, args=[word, "wait"]) as pids:
        assert len(marked(word)) == 5
        names = dict(zip(("launcher", "supervisor", "init", "worker"), pids, strict=True))
        for victim in victims.split():
            os.kill(names[victim], signal.SIGKILL)
        assert not gone(word)
        for pid in names.values():
            assert not alive(pid), (pid, names)


def alive(pid, seconds=10):
    """Wait until a process has ended or is a zombie; return whether it goes on."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if callers.status_of(pid)["State"].startswith("Z"):
                return False
        except (OSError, KeyError):
            return False
        time.sleep(0.02)
    return True


def groups():
    """Return the control groups of runs."""
    return {
        f"{top}/{name}" for top, names, _ in os.walk("/sys/fs/cgroup") for name in names if name.startswith("reach-")
    }


def test_rule_13_the_next_run_collects_what_two_killed_processes_left(caller):
    limits = ["--limit", "memory=300MiB"]
    before = groups()
    ended = caller.run("print(1)", options=limits)
    if not ended.level("limits.memory")[1].startswith("cgroup"):
        pytest.skip("kernel without a control group that this user may write to")
    with caller.running(options=limits) as (launcher, supervisor, *_):
        left = groups() - before
        assert left
        for pid in (launcher, supervisor):
            os.kill(pid, signal.SIGKILL)
        assert not alive(supervisor)
    assert groups() & left  # nobody is there to remove it
    caller.run("print(1)", options=limits)
    assert not groups() & left


def test_rule_13_a_run_that_goes_on_is_not_collected(caller):
    limits = ["--limit", "memory=300MiB"]
    before = groups()
    with caller.running(options=limits):
        mine = groups() - before
        caller.run("print(1)", options=limits)
        assert mine <= groups()


def test_rule_13_private_directories_of_tier_reduced_are_collected(confined):
    code = "import os; print(os.path.dirname(os.environ['HOME']), flush=True); input()"
    words = confined.words(code, options=["-q"])
    run = confined.popen(words, stdin=-1)
    place = run.stdout.readline().strip()
    try:
        assert os.path.isdir(place)
        other = confined.run("import os; print(os.path.dirname(os.environ['HOME']))", options=["--no-record"])
        assert os.path.isdir(place)  # somebody holds it
        assert not os.path.exists(other.out.strip())
        supervisor = callers.children(run.pid)[0]
        for pid in (run.pid, supervisor):
            os.kill(pid, signal.SIGKILL)
    finally:
        run.communicate(timeout=30)
    assert not alive(supervisor)
    assert os.path.isdir(place)
    confined.run("print(1)")
    assert not os.path.exists(place)


def test_rule_13_somebody_elses_directory_of_a_like_name_is_left_alone(confined):
    mine = Path(f"/tmp/reach-results-{os.getpid()}")
    confined.own(mine, directory=True)
    try:
        (mine / "data").write_text("precious")
        confined.run("print(1)")
        assert (mine / "data").read_text() == "precious"
    finally:
        (mine / "data").unlink()
        mine.rmdir()


def test_rule_13_nothing_of_a_run_stays_but_the_record_and_the_cache(caller):
    def outside():
        skipped = (caller.base / "state", caller.base / "cache")
        return {path for path in caller.base.rglob("*") if not any(path.is_relative_to(one) for one in skipped)}

    out = caller.own(caller.place / "out", directory=True)
    code = (
        "import os, sys, tempfile\nopen(sys.argv[1] + '/kept', 'w').write('1'); open(tempfile.mktemp(), 'w').write('2')"
    )
    caller.run("print(1)", options=["--write", f"{out}/"])
    before = outside()
    caller.run(code, options=["--write", f"{out}/"], args=[out])
    assert outside() - before == {out / "kept"}
