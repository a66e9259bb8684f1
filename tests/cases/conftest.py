"""Fixtures for the cases: each is a directory of inputs here, run from a copy of its own in tier `full`."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

import agent_reach
from netns import NetworkNamespace, UnsupportedError

HERE = Path(__file__).parent
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
NOBODY_KNOWS = 12345  # a uid without a passwd entry
SUPERVISOR_ENDS = 5.0  # seconds


@pytest.fixture
def case(tmp_path):
    """Copy a case into a directory of this test: a function from its name to the copy's path."""

    def copy(name):
        return Path(shutil.copytree(HERE / name, tmp_path / name, symlinks=True))

    return copy


@pytest.fixture
def run_full(run_reach, tmp_path):
    """Run `reach ARGS` as `run_reach` does, in tier `full`: what comes back has the JSON of `--result` as `result`."""

    def run(args, **options):
        command, *rest = args
        place = tmp_path / "result.json"
        done = run_reach([command, "--result", place, *rest], **options)
        done.result = json.loads(place.read_text())
        if done.result["error"] is None:
            assert done.result["receipt"]["tier"] == "full", done.result["receipt"]
        return done

    return run


# -- what a run leaves on the host -------------------------------------------------------------------------


def _parents():
    """Return pid -> (parent, command line) of every process that is not a zombie."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdecimal():
            continue
        try:
            # The name between the parentheses may hold anything: what counts stands behind the last one.
            state, parent, *_ = Path("/proc", entry, "stat").read_bytes().rpartition(b")")[2].split()
            line = Path("/proc", entry, "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        if state not in b"ZX":
            found[int(entry)] = (int(parent), line.replace(b"\0", b" ").decode(errors="replace").strip())
    return found


def _is_reach(line):
    """Whether a command line is that of reach: an interpreter, and the script `reach`."""
    return any(os.path.basename(word) == "reach" for word in line.split()[:2])


@pytest.fixture
def descendants():
    """The processes below this one, as the host sees them: a function to a dict of pid -> command line.

    The test is their subreaper meanwhile: whoever detached itself, into a session of its own or by a double fork,
    is found too. What others run on this machine at the same time is not.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0

    def find():
        parents = _parents()
        found, ring = {}, {os.getpid()}
        while ring:
            ring = {pid for pid, (parent, _) in parents.items() if parent in ring}
            found |= {pid: parents[pid][1] for pid in ring}
        return found

    yield find
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture
def no_process_left(descendants):
    """Hold what runs in a `with` block to leaving no process on the host.

    Of the program nothing may be there when reach has ended. reach's own supervisor has until `SUPERVISOR_ENDS`: it
    waits for the kernel to take the namespaces apart, and its launcher does not wait for it.
    """

    @contextmanager
    def hold():
        before = descendants()
        yield
        deadline = time.monotonic() + SUPERVISOR_ENDS
        while left := {pid: line for pid, line in descendants().items() if pid not in before}:
            programs = {pid: line for pid, line in left.items() if not _is_reach(line)}
            assert programs == {}
            assert time.monotonic() < deadline, left
            time.sleep(0.01)

    return hold


@pytest.fixture
def own_shared_memory():
    """Mount namespace whose /dev/shm is empty and nobody else's: what a run leaves there is seen for certain."""
    try:
        with NetworkNamespace(setup="mount -t tmpfs -o mode=1777 shm /dev/shm") as namespace:
            yield namespace
    except UnsupportedError as error:
        pytest.skip(f"kernel without a namespace for us: {error}")


# -- a uid that nobody knows -------------------------------------------------------------------------------


@pytest.fixture
def unknown_user():
    """The words that, put before a command, run it as a uid without a passwd entry."""
    return ["setpriv", "--reuid", str(NOBODY_KNOWS), "--regid", str(NOBODY_KNOWS), "--clear-groups"]


@pytest.fixture
def public_directory():
    """A directory that every user may read, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory(prefix="reach-case-") as path:
        os.chmod(path, 0o755)
        yield Path(path)


@pytest.fixture
def reach_for_anyone(interpreters, unknown_user, public_directory):
    """Path of a `reach` that every user may run: root's checkout and its environment may lie below /root."""
    for python in ["/usr/bin/python3", *interpreters.values()]:
        code = "import sys; sys.exit(sys.version_info < (3, 11))"
        if subprocess.run([*unknown_user, python, "-I", "-c", code], capture_output=True, check=False).returncode == 0:
            break
    else:
        pytest.skip("interpreter not readable here: no Python of at least 3.11 that every user may run")
    library = public_directory / "lib"
    for package in (agent_reach, yaml):
        source = Path(package.__file__).parent
        # Compiled parts belong to the other interpreter; PyYAML does without.
        shutil.copytree(source, library / source.name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    script = public_directory / "reach"
    script.write_text(
        f"#!{python} -IB\nimport sys\n\nsys.path.insert(0, {str(library)!r})\n"
        "from agent_reach.cli import main\n\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    return str(script)
