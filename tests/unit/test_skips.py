"""Under CI=true a test may only be skipped for a reason that is written down."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.fixture
def run_pytest(tmp_path):
    """Run pytest on one module beside copies of our conftest: a function of (source, value of CI) to the process."""
    for name in ("conftest.py", "netns.py", "allowed_skips.txt"):
        shutil.copy(TESTS / name, tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\naddopts = --import-mode=importlib\n")

    def run(source, ci):
        (tmp_path / "test_sample.py").write_text(f"import pytest\n\n\ndef test_it():\n    {source}\n")
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | {"CI": ci}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_a_skip_without_a_listed_reason_fails_ci_and_is_named(run_pytest):
    done = run_pytest('pytest.skip("no PostgreSQL server")', "true")
    assert done.returncode == 1
    assert "test_sample.py::test_it: no PostgreSQL server" in done.stdout


def test_a_listed_reason_passes(run_pytest):
    assert run_pytest('pytest.skip("not root: started by an ordinary user")', "true").returncode == 0


def test_elsewhere_any_skip_passes(run_pytest):
    assert run_pytest('pytest.skip("no PostgreSQL server")', "").returncode == 0


def test_an_expected_failure_is_no_skip(run_pytest):
    assert run_pytest('pytest.xfail("known")', "true").returncode == 0
