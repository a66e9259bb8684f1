"""What starting reach costs in imports, and that importing any module of it does nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import agent_reach

PACKAGE = Path(agent_reach.__file__).parent
# Each of these costs 3 to 20 ms on a cold start, more than most steps of the sandbox.
EXPENSIVE = """
    typing dataclasses enum json re socket argparse subprocess logging tempfile pathlib hashlib yaml inspect
    ast asyncio concurrent.futures contextlib ctypes.util email http.client importlib.metadata ipaddress random
    selectors shutil signal ssl threading traceback urllib.request uuid
"""
PREFIX = "import time:"


def imported(stderr: str) -> list[str]:
    """Return the modules that `-X importtime` names, those of forked processes as well."""
    lines = [line for line in stderr.splitlines() if line.startswith(PREFIX)]
    return [line.rpartition("|")[2].strip() for line in lines]


@pytest.fixture(scope="module")
def bare() -> set[str]:
    """Modules that this environment's interpreter imports for nothing at all (site, .pth files)."""
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", ""], capture_output=True, text=True, check=True)
    return set(imported(done.stderr))


@pytest.fixture
def warm(reach, reach_env, tmp_path):
    """Return a function of a contract's text that gives the modules which a warm run imports."""

    def run(contract: str = "") -> list[str]:
        (tmp_path / "hello.py").write_text("print('hello')\n")
        if contract:
            (tmp_path / "hello.reach.yaml").write_text(contract)
            (tmp_path / "hello.reach.yaml").chmod(0o644)
        command = [sys.executable, "-X", "importtime", reach, "run", "hello.py"]
        for _ in range(2):
            done = subprocess.run(
                command, cwd=tmp_path, env=reach_env, capture_output=True, text=True, timeout=60, check=False
            )
            assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
        return imported(done.stderr)

    return run


CONTRACT = """
version: "1"
resources:
  files: [{path: out/, mode: w}, {path: hello.py}]
  env: {LEVEL: info}
  network: {allow_outbound: [{host: localhost, port: 5432}]}
limits: {wall: 30s, open_files: 100}
"""


@pytest.mark.parametrize("contract", ["", CONTRACT], ids=["no contract", "a contract"])
def test_a_warm_run_imports_nothing_expensive(warm, bare, contract) -> None:
    found = set(warm(contract)) - bare
    assert "agent_reach.sandbox.launch" in found
    assert sorted(found & set(EXPENSIVE.split())) == []


def test_a_warm_run_imports_neither_the_reader_of_contracts_nor_the_other_commands(warm) -> None:
    ours = {name for name in warm(CONTRACT) if name.startswith("agent_reach.")}
    unneeded = ("agent_reach.contract.documents", "agent_reach.contract.read", "agent_reach.cli.catalogue")
    unneeded += (
        "agent_reach.linux.seccomp.compile",
        "agent_reach.linux.abi.syscalls_x86_64",
        "agent_reach.staging.fetch",
    )
    assert sorted(ours & set(unneeded)) == []
    assert len(ours) < 120, "each module costs 0.2 ms"


# -- no work at import -----------------------------------------------------------------------------------

IMPORT_ALL = r"""
import importlib, json, os, signal, sys, threading

names, found = json.loads(sys.argv[1]), []
allowed = tuple(os.path.realpath(path) for path in json.loads(sys.argv[2]))
quiet = ("os.listdir", "os.scandir", "os.putenv", "os.unsetenv", "os.add_dll_directory")
current = ""

def watch(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        writing = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        inside = isinstance(path, (str, bytes)) and os.path.realpath(os.fsdecode(path)).startswith(allowed)
        if writing or not inside:
            found.append([current, event, repr(path)])
    elif event == "ctypes.dlopen" and arguments[0] is None:
        return
    elif event.startswith(("os.", "subprocess.", "socket.", "ctypes.dlopen", "shutil.", "tempfile.", "signal.")):
        if event not in quiet:
            found.append([current, event, repr(arguments)])

def state():
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD)]
    mask = os.umask(0o22)
    os.umask(mask)
    descriptors = sorted(os.listdir("/proc/self/fd"))
    return [dict(os.environ), os.getcwd(), mask, handlers, threading.active_count(), descriptors]

before = state()
sys.dont_write_bytecode = True
sys.addaudithook(watch)
for current in names:
    importlib.import_module(current)
current = "state"
watched, found = found, []
if state() != before:
    watched.append(["state", repr(before), repr(state())])
print(json.dumps(watched))
"""
STARTED_BY_NAME = {"__main__.py"}


def modules() -> list[str]:
    """Return every module of the package but those that are programs."""
    files = sorted(path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*.py"))
    parts = [path.with_suffix("").parts for path in files if path.name not in STARTED_BY_NAME]
    return [".".join(part[:-1] if part[-1] == "__init__" else part) for part in parts]


def work_of(names: list[str], place: Path) -> list[list[str]]:
    """Return module, event and object of whatever importing the modules does besides."""
    libraries = [str(PACKAGE), sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, json.dumps(names), json.dumps(libraries)],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout)
    return found


def test_every_module_can_be_imported_and_does_no_work(tmp_path) -> None:
    names = modules()
    assert len(names) > 150
    assert work_of(names, tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "work",
    ["open('/etc/hostname').close()", "os.mkdir('made')", "os.umask(0o77)", "os.environ['A'] = '1'", "os.posix_spawn"],
)
def test_work_at_import_would_be_seen(tmp_path, work) -> None:
    spawn = "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)"
    place = tmp_path / "site"
    place.mkdir()
    (place / "noisy.py").write_text(f"import os\n{spawn if work == 'os.posix_spawn' else work}\n")
    found = work_of(["noisy"], place)
    # the module itself lies outside the libraries
    assert [event for event in found if "noisy.py" not in event[2]]


@pytest.mark.parametrize("name", ["agent_reach.inside.startup", "agent_reach.wire.reports", "agent_reach.wire.frames"])
def test_what_runs_inside_imports_on_every_interpreter(interpreters, name) -> None:
    for version, python in interpreters.items():
        code = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import {name}"
        done = subprocess.run([python, "-I", "-B", "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (version, done.stderr)
