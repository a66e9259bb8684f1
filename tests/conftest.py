"""Fixtures for all tests, and the rule that under CI=true no test is skipped silently."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from glob import glob
from pathlib import Path

import pytest

from netns import NetworkNamespace, UnsupportedError, ordinary_user

HERE = Path(__file__).parent
ROOT = os.geteuid() == 0
SKIPS = pytest.StashKey[list[tuple[str, str]]]()


# -- skips -----------------------------------------------------------------------------------------------


def allowed_skips():
    """Return the prefixes of the reasons for which a test may be skipped under CI=true."""
    lines = (HERE / "allowed_skips.txt").read_text().splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run soaks, fuzzers and the corpus at full length")


def pytest_configure(config):
    config.stash[SKIPS] = []
    config.pluginmanager.register(SkipWatch(config), "reach-skip-watch")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("root") and not ROOT:
            item.add_marker(pytest.mark.skip(reason="not root: started by an ordinary user"))


class SkipWatch:
    """Collects the skips of a run; under CI=true an unexpected one fails it."""

    def __init__(self, config):
        self.config = config
        self.strict = os.environ.get("CI") == "true"

    def pytest_runtest_logreport(self, report):
        if report.skipped and not hasattr(report, "wasxfail"):
            self.note(report)

    def pytest_collectreport(self, report):
        if report.skipped:
            self.note(report)

    def note(self, report):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        self.config.stash[SKIPS].append((report.nodeid, reason.removeprefix("Skipped: ")))

    def unexpected(self):
        allowed = allowed_skips()
        return [(test, why) for test, why in self.config.stash[SKIPS] if not why.startswith(allowed)]

    def pytest_sessionfinish(self, session, exitstatus):
        if self.strict and exitstatus == pytest.ExitCode.OK and self.unexpected():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        if self.strict and self.unexpected():
            terminalreporter.section("skipped, but not for a reason of tests/allowed_skips.txt", red=True)
            for test, why in self.unexpected():
                terminalreporter.line(f"{test}: {why}")


# -- reach -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def reach():
    """Path of the `reach` command of the environment that runs the tests."""
    path = Path(sys.executable).with_name("reach")
    if not path.exists():
        pytest.fail(f"{path} is missing: run ./dev test, or pip install -e . there")
    return str(path)


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory):
    """XDG_CACHE_HOME for a whole session: what reach learns about an interpreter is learnt once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def reach_env(tmp_path, cache_home):
    """The environment for a `reach` of this test: the caller's, with record and cache of its own."""
    state = tmp_path / "xdg-state"
    state.mkdir(mode=0o700, exist_ok=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("REACH_", "PYTEST_"))}
    return env | {"XDG_STATE_HOME": str(state), "XDG_CACHE_HOME": str(cache_home)}


@pytest.fixture
def run_reach(reach, reach_env, tmp_path):
    """Run `reach ARGS`: a function of (args, cwd, env, stdin, timeout in seconds, prefix) to a CompletedProcess.

    `env` is laid over `reach_env`; a value None takes a name out. `prefix` is a command that runs reach.
    """

    def run(args, *, cwd=None, env=None, stdin=None, timeout=60, prefix=()):
        merged = reach_env | (env or {})
        return subprocess.run(
            [*prefix, reach, *map(str, args)],
            cwd=cwd or tmp_path,
            env={name: str(value) for name, value in merged.items() if value is not None},
            **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run


# -- the machine -----------------------------------------------------------------------------------------


def _version_of(python):
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@pytest.fixture(scope="session")
def interpreters():
    """Every real CPython 3.9 to 3.13 here that we may execute: a dict such as {"3.12": "/usr/bin/python3.12"}."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = {}
    for path in sorted(glob(f"{versions}/*/bin/python3.*") + glob("/usr/bin/python3.*")):
        real = os.path.realpath(path)
        if re.fullmatch(r"python3\.(9|1[0-3])", os.path.basename(real)):
            version = _version_of(real)
            if version:
                found.setdefault(version, real)
    return found


@pytest.fixture(scope="session")
def as_user():
    """Run a command as an ordinary user: a function of (args, **options of subprocess.run).

    Started by root the command runs as an ordinary user of this machine, else as whoever runs the tests.
    """
    prefix = []
    if ROOT:
        user = ordinary_user()
        if user is None:
            pytest.skip("needs an ordinary user: useradd --create-home tester")
        prefix = ["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--init-groups"]

    def run(args, **options):
        options = {"capture_output": True, "text": True, "timeout": 60} | options
        return subprocess.run([*prefix, *map(str, args)], check=False, **options)

    run.prefix = prefix
    return run


@pytest.fixture
def own_netns():
    """Make network namespaces of this test's own: a function of (addresses for lo, lines for /etc/hosts).

    What it returns has `run`, `popen` and `prefix` (tests/netns.py): the same user, no capability gained.
    Works for root and, where the kernel permits user namespaces, for an ordinary user.
    """
    with ExitStack() as stack:

        def make(addresses=(), hosts=None):
            try:
                return stack.enter_context(NetworkNamespace(addresses, hosts))
            except UnsupportedError as error:
                pytest.skip(f"no own network namespace: {error}")

        yield make


@pytest.fixture
def long(request):
    """Whether this run asked for the full length of soaks, fuzzers and the corpus (`--long`)."""
    return request.config.getoption("--long")
