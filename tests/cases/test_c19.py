"""C19: the script finds itself, its neighbours and its arguments."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

ARGUMENTS = ["--limit=2", "a b", "", "--", "-x", "ü"]


@pytest.fixture
def data(case):
    """The directory `project/data` of the case."""
    return case("C19") / "project/data"


@pytest.fixture(params=[[], ["--contract", "../reach.yaml"]], ids=["discovered", "named"])
def contract(request):
    """The options that name the contract: it is also the one that reach discovers."""
    return request.param


def bare(arguments, cwd, environ):
    # -B and UTF-8: what a run inside has too, whatever the caller's locale is.
    command = [sys.executable, "-B", "-X", "utf8", "../bin/report", *arguments]
    return subprocess.run(command, cwd=cwd, env=environ, capture_output=True, timeout=60, check=True)


def test_row_1_one_json_line_and_nothing_on_stderr(run_full, data, contract):
    done = run_full(["run", *contract, "../bin/report", *ARGUMENTS], cwd=data)
    assert (done.returncode, done.stderr) == (0, "")
    assert isinstance(json.loads(done.stdout), dict)
    assert done.stdout.count("\n") == 1


def test_row_2_byte_for_byte_what_python_prints(reach, reach_env, data, contract):
    done = subprocess.run(
        [reach, "run", *contract, "../bin/report", *ARGUMENTS],
        cwd=data,
        env=reach_env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == bare(ARGUMENTS, data, reach_env).stdout


def test_rows_3_and_4_each_field(run_full, data):
    done = run_full(["run", "../bin/report", *ARGUMENTS], cwd=data)
    assert json.loads(done.stdout) == {
        "args": ARGUMENTS,
        "argv0": "../bin/report",
        "cwd_tail": "data",
        "path0_tail": "tools",  # CPython resolves the symlink for sys.path[0]
        "file_is_absolute": True,
        "file_tail": "bin/report",
        "real_tail": "tools/report.py",
        "name": "__main__",
        "helper": "helper found",
        "relative": "from the working directory",
        "beside": "beside the script",
    }


def test_row_5_a_read_only_project_works_and_gets_no_pycache(run_full, data):
    project = data.parent
    before = sorted(project.rglob("*"))
    for path in (project, *before):
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        done = run_full(["run", "../bin/report", *ARGUMENTS], cwd=data)
    finally:
        for path in (project, *(path for path in before if path.is_dir())):
            path.chmod(0o755)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize(
    "arguments",
    [["-x", "--limit=2"], ["-v", "--help"], ["--contract", "nowhere.yaml"], ["--env", "nowhere", "--read", "/etc"]],
    ids=" ".join,
)
def test_row_6_nothing_behind_the_script_is_an_option_of_reach(run_full, data, arguments):
    done = run_full(["run", "../bin/report", *arguments], cwd=data)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["args"] == arguments


def test_row_6_the_same_option_before_the_script_is_one(run_full, data):
    done = run_full(["run", "--contract", "nowhere.yaml", "../bin/report"], cwd=data)
    assert (done.returncode, done.stdout) == (125, "")
    assert "nowhere.yaml" in done.stderr
    assert os.path.exists(data / "in.txt")
