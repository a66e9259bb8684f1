"""The containment corpus under `reach run`, and bare as the control that each probe has teeth on this host."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KERNEL = HERE / "probes" / "kprobe.py"
PYTHON = HERE / "probes" / "pyprobes.py"
ADDRESSES = ("192.0.2.1", "192.0.2.53", "169.254.169.254")

# What a sandbox may let its program do, in namespaces of its own.
OWN_AFFAIRS = {
    "PK-memfd-exec",
    "PK-landlock-still-free",  # a query of the version
    "NW-bind-listen-any",
    "NW-netlink-route",
    "SI-hostname",
    "PK-signal-parent-stop",
}
# Tier reduced has no namespaces: the host's name and its mount table are no secrets of anybody. The bounding set
# of an ordinary user cannot be emptied, and gives nothing: no_new_privs is set.
WITHOUT_NAMESPACES = {"PK-landlock-still-free", "PK-memfd-exec", "SI-hostname", "SI-mountinfo-host-paths", "PK-caps"}
# Probes that go through bare on any host where the tests run, whoever starts them.
TEETH = {
    "FS-secret-direct",
    "FS-self-root-secret",
    "FS-dotdot-from-fd",
    "FS-unix-known-sockets",
    "FS-suid-exec",
    "PK-see-host-pids",
    "PK-signal-host",
    "PK-seccomp-mode",
    "PK-memfd-exec",
    "NW-host-loopback4",
    "NW-host-loopback-0.0.0.0",
    "NW-udp-sendto",
    "NW-udp-sendmsg",
    "NW-udp-connect-send",
    "NW-dns-53",
    "NW-metadata",
    "NW-abstract-unix",
    "SI-env-extra",
    "SI-ppid-cmdline",
}
KNOCKS = ["abstract", "dns", "tcp", "udp", "unix"]


class Bait:
    """What lies outside, laid by the caller in a network namespace of the test's own."""

    def __init__(self, world, caller):
        self.world, self.caller = world, caller
        words = [*caller.prefix, caller.python, HERE / "bait.py", caller.place]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = world.popen(map(str, words), env=caller.environment, **pipes)
        self.told = json.loads(self.process.stdout.readline())

    def words(self):
        return [f"{name}={value}" for name, value in self.told.items()]

    def taken(self):
        """Return who took what since the last call."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=20)


@pytest.fixture
def lay(own_netns):
    """Lay bait as a caller: a function of the caller."""
    laid = []

    def make(caller):
        laid.append(Bait(own_netns(ADDRESSES), caller))
        return laid[-1]

    yield make
    for bait in laid:
        bait.close()


@pytest.fixture
def bait(lay, caller):
    return lay(caller)


def read(text):
    """Return {probe: (result, detail)} from the lines that the probes print."""
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {row["id"]: (row["res"], row["detail"]) for row in rows}


def opened(found):
    return {name: detail for name, (result, detail) in found.items() if result == "open"}


def run_kernel_probes(caller, bait):
    ended = caller.run(KERNEL.read_text(), args=bait.words(), timeout=120, inside=bait.world)
    return ended, read(ended.out)


# -- the kernel's side -----------------------------------------------------------------------------------


def test_bare_the_probes_have_teeth(caller, bait):
    program = caller.own(caller.work / "kprobe.py", KERNEL.read_text())
    words = [*bait.world.prefix(caller.work), *caller.prefix, caller.python, program, *bait.words()]
    env = caller.environment | {"LAUNCHER_API_KEY": "bait"}
    done = subprocess.run(
        [*map(str, words)], env=env, capture_output=True, text=True, timeout=120, check=False, cwd=caller.work
    )
    found = read(done.stdout)
    assert opened(found).keys() >= TEETH, (TEETH - opened(found).keys(), done.stderr)
    assert bait.taken()["knocked"] == KNOCKS


def test_inside_only_own_affairs_are_open(caller, bait, monkeypatch):
    monkeypatch.setenv("LAUNCHER_API_KEY", "bait")
    ended, found = run_kernel_probes(caller, bait)
    assert len(found) > 90, ended
    assert opened(found).keys() <= OWN_AFFAIRS, opened(found)
    assert not [name for name, (result, _) in found.items() if result == "error"], found
    assert ended.tier == "full"
    assert bait.taken() == {"knocked": [], "secret unchanged": True}


def test_in_tier_reduced_nothing_outside_is_reached(confined, lay):
    bait = lay(confined)
    ended, found = run_kernel_probes(confined, bait)
    assert len(found) > 90, ended
    assert opened(found).keys() <= WITHOUT_NAMESPACES, opened(found)
    assert ended.tier == "reduced"
    assert bait.taken() == {"knocked": [], "secret unchanged": True}


# -- Python's side ---------------------------------------------------------------------------------------

CORPUS = """
import json, sys, warnings
warnings.simplefilter("ignore")
import corpus
for name, code in corpus.S.items():
    scope = {"__name__": "probe"}
    try: exec(compile(code, name, "exec"), scope); found = repr(scope.get("REACHED"))
    except BaseException as error: found = "- " + type(error).__name__
    print(json.dumps([name, found[:100]]), flush=True)
exec(compile(open("kernel.py").read(), "kernel.py", "exec"), {"__name__": "__main__"})
"""
CLAIMS = re.compile(r"\b(safe|secure|harmless|trusted)\b", re.IGNORECASE)


def test_python_level_bypasses_leave_the_kernels_promises_as_they_were(caller, bait):
    """A language-level layer may miss every snippet; after all of them the kernel's probes find what they did."""
    caller.own(caller.work / "corpus.py", PYTHON.read_text())
    caller.own(caller.work / "kernel.py", KERNEL.read_text())
    ended = caller.run(CORPUS, args=bait.words(), timeout=120, inside=bait.world)
    snippets = dict(json.loads(line) for line in ended.out.splitlines() if line.startswith("["))
    assert len(snippets) > 55, ended
    assert sum(not result.startswith("-") for result in snippets.values()) > 30  # they do run
    found = read(ended.out)
    assert len(found) > 90, ended
    assert opened(found).keys() <= OWN_AFFAIRS, opened(found)
    assert bait.taken() == {"knocked": [], "secret unchanged": True}
    said = ended.err + json.dumps(ended.result)
    assert not CLAIMS.search(said), said
