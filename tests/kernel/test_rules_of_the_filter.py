"""DESIGN section 3, rules 7 to 10: the order of the lock, its proof, the listener, and what the broker decides on."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

import callers
from egress_world import Echo

STATE = """
import os, resource
fields = dict(line.split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
for name in "NoNewPrivs", "Seccomp", "CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd": print(name, fields[name].strip())
print("core", resource.getrlimit(resource.RLIMIT_CORE)[1], "descriptors", len(os.listdir("/proc/self/fd")) - 1)
"""


def test_rule_07_everything_is_in_force_before_user_code_runs(caller):
    ended = caller.run(STATE)
    found = dict(line.split(" ", 1) for line in ended.out.splitlines())
    assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2"), ended
    assert {found[name] for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd")} == {"0" * 16}
    assert found["core"] == "0 descriptors 3"


@pytest.mark.parametrize("wall", ["without_landlock", "open_filter", "deaf_supervisor", "with_privileges"])
def test_rule_07_with_a_wall_missing_nothing_runs(caller, wall):
    """The proof before user code is made on the real thing, so it notices a lock that was not put on."""
    if wall == "without_landlock" and caller.run("print(1)").level("undeclared files")[1] == "mount namespace":
        pytest.skip("kernel without Landlock")
    ended = caller.sabotaged(wall).run("print('ran')", options=["--minimum", "full"])
    assert (ended.status, ended.out) == (125, ""), ended
    assert ended.result["error"]["code"], ended.result


def test_rule_07_the_same_holds_in_tier_reduced(confined):
    for wall in ("without_landlock", "open_filter", "deaf_supervisor"):
        if confined.command[0] == confined.python:
            return  # an older Landlock is made with a runner of its own
        ended = confined.sabotaged(wall).run("print('ran')")
        assert (ended.status, ended.out) == (125, ""), (wall, ended)


def test_rule_07_with_every_wall_in_its_place_it_runs(caller):
    assert caller.run("print('ran')", options=["--minimum", "full"]).out == "ran\n"


def test_rule_07_a_filter_that_cannot_be_put_on_runs_nothing(caller):
    ended = caller.refused(seccomp="ENOSYS").run("print('ran')")
    assert (ended.status, ended.out) == (125, ""), ended
    assert "seccomp" in ended.err


NESTED = """
import subprocess, sys
words = [sys.executable, "-m", "agent_reach", "run", "--no-record", sys.argv[1]]
env = {"PYTHONPATH": sys.argv[2], "PATH": "/usr/bin:/bin", "HOME": "/tmp"}
done = subprocess.run(words, capture_output=True, text=True, env=env)
print(done.returncode, done.stdout, done.stderr)
"""


def test_rule_08_under_another_notifier_reach_says_so_and_runs_nothing(caller):
    """In a run of its own, where the broker above holds the one listener that a process may have."""
    hello = caller.own(caller.work / "hello.py", "print('nested')")
    ended = caller.run(NESTED, options=["--read", f"{callers.SOURCE}/"], args=[hello, callers.SOURCE])
    assert ended.out.startswith("125 "), ended
    assert "nested" not in ended.out
    assert "seccomp notification" in ended.out
    assert "other supervisor" in ended.out


def test_rule_09_tcp_is_dialled_on_a_socket_of_the_brokers(caller):
    """The program's descriptor keeps its number and flags, and is another socket: one of the host's network."""
    code = """
import socket, sys
port = int(sys.argv[1]); s = socket.socket(); s.settimeout(10); number = s.fileno()
before = s.getsockopt(socket.SOL_SOCKET, 71, 8)
s.connect(("127.0.0.1", port)); s.sendall(b"through"); print(s.recv(7).decode(), s.fileno() == number)
print(before != s.getsockopt(socket.SOL_SOCKET, 71, 8))
"""
    with Echo() as server:
        ended = caller.run(code, options=["--net", f"127.0.0.1:{server.port}"], args=[server.port])
    assert ended.out.splitlines() == ["through True", "True"], ended


def test_rule_09_abstract_names_are_the_sandboxs_own(caller):
    name = f"reach-rule-9-{os.getpid()}-{caller.name}"
    code = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
try: s.connect("\\0" + sys.argv[1]); print("the host's")
except OSError as e: print(type(e).__name__)
own = socket.socket(socket.AF_UNIX); own.bind("\\0" + sys.argv[1]); own.listen()
s = socket.socket(socket.AF_UNIX); s.connect("\\0" + sys.argv[1]); print("its own")
"""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        server.setblocking(False)
        ended = caller.run(code, args=[name])
        assert ended.out.splitlines() == ["ConnectionRefusedError", "its own"], ended
        with pytest.raises(BlockingIOError):
            server.accept()


def test_rule_09_a_unix_socket_that_the_run_made_is_reached_by_every_name(caller):
    code = """
import os, socket, tempfile
d = tempfile.mkdtemp(); os.chdir(d); s = socket.socket(socket.AF_UNIX); s.bind("here"); s.listen(8)
os.symlink(d + "/here", "link"); os.mkdir("below")
for name in "here", d + "/here", "link", "below/../here", "../" + os.path.basename(d) + "/here":
    socket.socket(socket.AF_UNIX).connect(name); print("connected", end=" ")
"""
    ended = caller.run(code)
    assert ended.out.split() == ["connected"] * 5, ended


def test_rule_10_the_broker_is_an_ancestor_of_the_program(caller):
    """What Yama asks for before one process may look at another."""
    with caller.running() as pids:
        parents = [int(callers.status_of(pid)["PPid"]) for pid in pids]
        assert parents[1:] == list(pids[:-1])
        assert b"program.py" in Path(f"/proc/{pids[-1]}/cmdline").read_bytes()


CONNECT = """
import socket, sys
for port in sys.argv[1:]:
    try: s = socket.create_connection(("127.0.0.1", int(port)), 10); s.sendall(b"x"); print(s.recv(1).decode())
    except OSError as e: print(type(e).__name__)
"""


def test_rule_10_where_descriptors_cannot_be_copied_the_broker_makes_the_sockets(caller):
    """Plain Docker: no user namespaces and no pidfd_getfd."""
    confined = caller.confined("plain Docker")
    with Echo() as server, Echo() as bait:
        options = ["--net", f"127.0.0.1:{server.port}"]
        ended = confined.run(CONNECT, options=options, args=[bait.port, server.port])
        assert ended.out.split() == ["PermissionError", "x"], ended
        assert (bait.count, server.count) == (0, 1)
    assert ended.tier == "reduced"
