"""Start `reach` as root and as an ordinary user, from whichever of the two runs the tests."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from netns import ordinary_user

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src"
SYSTEM_PYTHON = "/usr/bin/python3"


class Outcome:
    """How a command ended: status, output, errors, and the result that reach wrote."""

    def __init__(self, done, result):
        self.status, self.out, self.err, self.result = done.returncode, done.stdout, done.stderr, result

    @property
    def tier(self):
        return self.result["receipt"]["tier"]

    def level(self, what):
        """Return level and mechanism that the receipt states for something."""
        lines = self.result["receipt"]["lines"]
        return next((line["level"], line["by"]) for line in lines if line["what"] == what)

    def __repr__(self):
        return f"<status {self.status}\n{self.out}\n{self.err}>"


class Caller:
    """A user, with directories of its own (`work` is the project, `place` for what lies outside), who runs reach.

    Args:
        name: ``root`` or ``user``.
        prefix: words that make a command run as this user.
        command: reach, as this user can start it.
        python: an interpreter that this user can execute.
        uid, gid: ids.
        home: home directory.
    """

    def __init__(self, name, prefix, command, python, uid, gid, home):
        self.name, self.prefix, self.command, self.python = name, prefix, command, python
        self.uid, self.gid, self.home = uid, gid, home
        self.base = Path(tempfile.mkdtemp(prefix="caller-"))
        self.base.chmod(0o755)
        for directory in ("state", "cache", "work", "place"):
            self.own(self.base / directory, directory=True)
        self.work, self.place = self.base / "work", self.base / "place"

    def own(self, path, content="", *, mode=None, directory=False):
        """Make a file or a directory that belongs to this user."""
        path = Path(path)
        if directory:
            path.mkdir(mode=0o700)
        else:
            path.write_text(textwrap.dedent(content))
        if mode is not None:
            path.chmod(mode)
        os.chown(path, self.uid, self.gid)
        return path

    @property
    def environment(self):
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
        places = {"XDG_STATE_HOME": str(self.base / "state"), "XDG_CACHE_HOME": str(self.base / "cache")}
        return kept | places | {"HOME": self.home, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}

    def bare(self, args, **options):
        """Run a command as this user, without reach."""
        options = {"capture_output": True, "text": True, "timeout": 60, "cwd": self.work} | options
        env = self.environment | options.pop("env", {})
        return subprocess.run([*self.prefix, *map(str, args)], check=False, env=env, **options)

    def popen(self, args, **options):
        """Start a command as this user, without reach."""
        options = {"stdout": subprocess.PIPE, "text": True, "cwd": self.work, "env": self.environment} | options
        return subprocess.Popen([*self.prefix, *map(str, args)], **options)

    def words(self, code, *, contract="", options=(), args=()):
        """Return the words that run some code under reach; writes the files that they name."""
        script = self.own(self.work / "program.py", code)
        place = self.work / "reach.yaml"
        if contract:
            self.own(place, contract)
        else:
            place.unlink(missing_ok=True)
        report = self.base / "state" / "result.json"
        report.unlink(missing_ok=True)
        return [
            *(*self.command, "run", "--result", report, "--python", self.python, *options),
            *(script, *args),
        ]

    def run(self, code, *, contract="", options=(), args=(), timeout=60, inside=None, **more):
        """Run code under reach.

        Args:
            code: source text of a program.
            contract: text of its contract, or empty for none.
            options: of `reach run`.
            args: of the program.
            timeout: seconds until the test fails.
            inside: a network namespace (tests/netns.py), or None for the machine's own.
            more: options of `subprocess.run`.
        """
        words = [*map(str, self.words(code, contract=contract, options=options, args=args))]
        more = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": timeout} | more
        where = inside.prefix(self.work) if inside else []
        done = subprocess.run([*where, *self.prefix, *words], check=False, env=self.environment, cwd=self.work, **more)
        report = self.base / "state" / "result.json"
        text = report.read_text() if report.exists() else ""
        return Outcome(done, json.loads(text) if text.strip() else None)

    @contextlib.contextmanager
    def running(self, code="print('up', flush=True); input()", options=(), args=()):
        """Start a program that prints ``up`` and waits; yield the pids of launcher, supervisor, init and worker."""
        run = self.popen(self.words(code, options=["-q", *options], args=args), stdin=subprocess.PIPE)
        try:
            assert run.stdout.readline() == "up\n"
            (supervisor,) = children(run.pid)
            (init,) = children(supervisor)
            worker = children(init)[0]
            yield run.pid, supervisor, init, worker
        finally:
            run.communicate("\n", timeout=30)

    def copy(self):
        """Return the same user, to be changed."""
        other = object.__new__(Caller)
        other.__dict__.update(self.__dict__)
        return other

    def confined(self, how):
        """Return this caller in a process where something is missing; see `CONFINEMENTS`."""
        other = self.copy()
        if how == "no CAP_SYS_ADMIN":
            other.prefix = [*self.prefix, "setpriv", "--bounding-set=-sys_admin"]
            return other
        other.prefix = [*self.prefix, self.python, str(HERE / "nouserns.py")]
        if how == "plain Docker":
            other.prefix += ["--refuse", "pidfd_getfd=EPERM"]
        if how.startswith("Landlock ABI"):
            other.command = [self.python, str(HERE / "landlock_abi.py"), how.rpartition(" ")[2]]
        return other

    def refused(self, **calls):
        """Return this caller in a process to which calls, by name, are refused with an error, by name."""
        other = self.copy()
        words = [word for call, error in calls.items() for word in ("--refuse", f"{call}={error}")]
        other.prefix = [*self.prefix, self.python, str(HERE / "nouserns.py"), "--only", *words]
        return other

    def sabotaged(self, wall):
        """Return this caller with a reach whose one wall is taken out (tests/sabotage.py)."""
        other = self.copy()
        other.command = [self.python, str(HERE / "sabotage.py"), wall]
        return other

    def close(self):
        shutil.rmtree(self.base, ignore_errors=True)


def status_of(pid):
    """Return the fields of a process's status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def children(pid):
    """Return the children of a process."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


CONFINEMENTS = ("no user namespaces", "Landlock ABI 4", "Landlock ABI 2", "no CAP_SYS_ADMIN")
IMPOSSIBLE = {("user", "no CAP_SYS_ADMIN")}  # which an ordinary user never has
SHORT = {
    ("root", "no CAP_SYS_ADMIN"),
    ("root", "Landlock ABI 4"),
    ("user", "no user namespaces"),
    ("user", "Landlock ABI 2"),
}


def make(name):
    """Return a caller, or skip the test where this machine or this start cannot have it."""
    here = os.geteuid()
    reach = Path(sys.executable).with_name("reach")
    if name == "root" and here:
        pytest.skip("not root: started by an ordinary user")
    if (name == "root") == (here == 0):
        home = os.path.expanduser("~")
        return Caller(name, [], [str(reach)], sys.executable, here, os.getegid(), home)
    user = ordinary_user()
    if user is None:
        pytest.skip("needs an ordinary user: useradd --create-home tester")
    prefix = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    check = [*prefix, "env", f"PYTHONPATH={SOURCE}", SYSTEM_PYTHON, "-c", "import agent_reach.cli, yaml"]
    found = subprocess.run(check, capture_output=True, text=True, check=False, cwd="/")
    if found.returncode:
        pytest.skip(f"interpreter not readable here: for {user.pw_name}: {found.stderr.strip()[-200:]}")
    command = [SYSTEM_PYTHON, "-m", "agent_reach"]
    return Caller(name, prefix, command, SYSTEM_PYTHON, user.pw_uid, user.pw_gid, user.pw_dir)


@pytest.fixture(scope="session")
def known_callers():
    """Callers made so far, by name: what reach learns about an interpreter it learns once for each."""
    known = {}
    yield known
    for one in known.values():
        one.close()


def fresh(known, name):
    """Return a caller whose directories are empty."""
    one = known.get(name) or known.setdefault(name, make(name))
    for directory in (one.work, one.place):
        shutil.rmtree(directory, ignore_errors=True)
        one.own(directory, directory=True)
    return one


@pytest.fixture
def caller(request, known_callers):
    """Root, then an ordinary user."""
    return fresh(known_callers, request.param)


def pytest_generate_tests(metafunc):
    """Choose callers, root only where root runs the tests, and the confinements of `confined`.

    Root sees each confinement once, and all of them with `--long`.
    """
    names = ("user",) if os.geteuid() else ("root", "user")
    if "caller" in metafunc.fixturenames:
        metafunc.parametrize("caller", names, indirect=True)
    if "confined" in metafunc.fixturenames:
        pairs = [(name, how) for name in names for how in CONFINEMENTS if (name, how) not in IMPOSSIBLE]
        if os.geteuid() == 0 and not metafunc.config.getoption("--long"):
            pairs = [pair for pair in pairs if pair in SHORT]
        metafunc.parametrize("confined", pairs, indirect=True, ids=[f"{name}, {how}" for name, how in pairs])


@pytest.fixture
def confined(request, known_callers):
    """Root, or an ordinary user, to whom tier full is refused in one of the ways."""
    name, how = request.param
    return fresh(known_callers, name).confined(how)
