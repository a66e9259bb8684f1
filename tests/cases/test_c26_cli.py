"""C26 on the command line: `reach run --contract FILE input.py` for each file of the case."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "C26"
RUNNABLE = {"merge-ok.yaml": "b 1\n", "bom-crlf.yaml": "bom None\n"}


@pytest.fixture
def run_file(case, run_full):
    """Run the case's script under one of its contracts."""
    here = case("C26")

    def run(name, **options):
        return run_full(["run", "--contract", name, "input.py"], cwd=here, **options)

    return run


def refused(done):
    """Return the findings of a run that the contract stopped before it started."""
    assert (done.returncode, done.stdout) == (125, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("reach: nothing ran")
    assert done.result["error"]["code"] == "contract"
    return done.result["error"]["findings"]


@pytest.mark.parametrize(
    ("row", "name", "line", "key", "words"),
    [
        (1, "typo-top.yaml", 5, "resuorces", ["did you mean `resources`?"]),
        (1, "typo-network.yaml", 5, "resources.netwrok", ["did you mean `network`?"]),
        (2, "typo-nested.yaml", 5, "resources.files[0].moed", ["did you mean `mode`?"]),
        (3, "typo-value.yaml", 5, "resources.files[0].mode", ["`raed`", "r, rb, w"]),
        (4, "dup-top.yaml", 6, "resources.network", ["first on line 3"]),
        (5, "dup-env.yaml", 6, "resources.env.MODE", ["first on line 4"]),
        (7, "merge-dup.yaml", 8, "resources.env.LEVEL", ["first on line 7"]),
        (8, "tab.yaml", 3, "", ["tab"]),
        (9, "empty.yaml", 1, "", ["empty"]),
        (10, "list.yaml", 1, "", ["expected a mapping"]),
        (11, "string-for-list.yaml", 4, "resources.network.allow_outbound", ["expected a list"]),
        (13, "bad-alias.yaml", 4, "resources.env.MODE", ["`nowhere`"]),
        (14, "two-docs.yaml", 3, "", ["more than one document"]),
        (16, "bomb.yaml", 6, "x-e[4]", ["aliases"]),
    ],
)
def test_refused_with_line_and_key(run_file, row, name, line, key, words):
    done = run_file(name)
    (finding,) = refused(done)
    assert (finding["file"].rpartition("/")[2], finding["line"], finding["key"]) == (name, line, key)
    assert f"reach: {name}:{line}:" in done.stderr
    for word in (key, *words):
        assert word in done.stderr


def test_row_12_three_mistakes_in_one_run(run_file):
    done = run_file("bad-unit.yaml")
    assert [(finding["line"], finding["key"]) for finding in refused(done)] == [
        (3, "limits.wall"),
        (4, "limits.memory"),
        (5, "limits.processes"),
    ]
    for line in (3, 4, 5):
        assert f"reach: bad-unit.yaml:{line}:" in done.stderr


@pytest.mark.parametrize(("name", "output"), RUNNABLE.items())
def test_rows_6_and_15_these_run(run_file, name, output):
    done = run_file(name)
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


def test_row_16_within_two_seconds_and_200_megabytes(run_file):
    # Both bounds are the kernel's, for the whole of `reach run`: RLIMIT_AS in bytes and RLIMIT_CPU in seconds.
    assert shutil.which("prlimit"), "needs prlimit of util-linux"
    bounds = ["prlimit", "--as=200000000", "--cpu=2"]
    (finding,) = refused(run_file("bomb.yaml", prefix=bounds))
    assert finding["code"] == "E_ALIAS"


def test_every_file_of_the_case_is_tried():
    rows = test_refused_with_line_and_key.pytestmark[0].args[1]
    tried = {row[1] for row in rows} | set(RUNNABLE) | {"bad-unit.yaml"}
    assert {path.name for path in HERE.glob("*.yaml")} == tried
