"""C23: started by cron: no HOME, no USER, no LANG, no TZ, working directory `/`.

The ordinary user of the case is whoever runs the tests when that is not root. Without HOME and XDG names the record
and the cache of these runs are where a run from cron has them: at the places that the passwd entry leads to.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

CRON = {"PATH": "/usr/bin:/bin", "CALLER_ONLY": "1"}  # the whole environment: env -i PATH=… CALLER_ONLY=1
TEN_LINES = """\
1 utf-8 utf-8
2 Zoë 東京 ✓
3 +0800
4 2026-01-01T13:00:00+01:00
5 True
6 x
7 1
8 None nightly
9 utf-8
10 True
"""


def cron(command, cwd="/", **more):
    return subprocess.run(
        command,
        cwd=cwd,
        env=CRON | more,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.fixture
def job(case):
    """The absolute path of the case's script."""
    return str(case("C23") / "job.py")


@pytest.fixture
def public_job(case, public_directory):
    """The same, where every user may read it."""
    return str(shutil.copytree(case("C23"), public_directory / "C23") / "job.py")


@pytest.mark.parametrize("cwd", ["/", "/usr", None], ids=["the root", "another directory", "beside the job"])
def test_ten_lines_from_any_directory(reach, job, cwd):
    done = cron([reach, "run", job], cwd=cwd or os.path.dirname(job))
    assert (done.returncode, done.stdout, done.stderr) == (0, TEN_LINES, "")


def test_nothing_is_left_in_the_caller_s_home_nor_in_the_root(reach, job):
    assert cron([reach, "run", job]).stdout == TEN_LINES
    for place in ("/", pwd.getpwuid(os.geteuid()).pw_dir):
        assert not Path(place, ".cache/case").exists()


@pytest.mark.root
class TestAsUidWithoutPasswdEntry:
    """A bare user id, as in a container.

    It differs from the case by one option: CONTRACT section 10 refuses to run without a record, and this user has
    no home to keep one in, "no writable place for the record: refused unless `--no-record`".
    """

    @pytest.fixture(autouse=True)
    def _nobody(self, unknown_user):
        with pytest.raises(KeyError):
            pwd.getpwuid(int(unknown_user[2]))

    @pytest.mark.parametrize("cwd", ["/", "/usr"])
    def test_ten_lines(self, reach_for_anyone, unknown_user, public_job, cwd):
        done = cron([*unknown_user, reach_for_anyone, "run", "--no-record", public_job], cwd=cwd)
        assert (done.returncode, done.stdout, done.stderr) == (0, TEN_LINES, "")
        assert not Path("/.cache/case").exists()

    def test_ten_lines_with_a_place_for_the_record(self, reach_for_anyone, unknown_user, public_job, public_directory):
        state = public_directory / "state"
        state.mkdir()
        os.chown(state, int(unknown_user[2]), int(unknown_user[4]))
        done = cron([*unknown_user, reach_for_anyone, "run", public_job], XDG_STATE_HOME=str(state))
        assert (done.returncode, done.stdout, done.stderr) == (0, TEN_LINES, "")
        assert (state / "reach").is_dir()

    def test_without_a_place_for_the_record_nothing_runs(self, reach_for_anyone, unknown_user, public_job):
        done = cron([*unknown_user, reach_for_anyone, "run", public_job])
        assert (done.returncode, done.stdout) == (125, "")
        assert "--no-record" in done.stderr
        assert "XDG_STATE_HOME" in done.stderr
