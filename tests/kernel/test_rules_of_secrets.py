"""DESIGN section 3, rules 1 to 3: what is in a program's memory and descriptors, and who may look at whom."""

from __future__ import annotations

import os
import stat

import pytest

from terminal import run_on_terminal

MARK = "kTq7-launcher-only-value"
# Looks for a word in all of its own memory without holding it in one piece itself.
SCAN = """
import os, re, sys
halves = sys.argv[1].split("|"); wanted = re.compile(b"".join(re.escape(h.encode()) for h in halves))
found = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps:
        span, rights = line.split()[:2]
        if "r" not in rights or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")): continue
        start, end = (int(word, 16) for word in span.split("-"))
        try: memory.seek(start); found += len(wanted.findall(memory.read(end - start)))
        except (OSError, OverflowError, ValueError): pass
print("in memory" if found else "nowhere")
"""


@pytest.fixture
def with_secret(caller, monkeypatch):
    """A caller whose environment holds a secret."""
    base = type(caller).environment.fget
    monkeypatch.setattr(type(caller), "environment", property(lambda one: base(one) | {"LAUNCHER_SECRET": MARK}))
    return caller


def test_rule_01_a_secret_of_the_launcher_was_never_in_the_programs_memory(with_secret):
    ended = with_secret.run(SCAN, args=[f"{MARK[:9]}|{MARK[9:]}"])
    assert (ended.status, ended.out) == (0, "nowhere\n"), ended


def test_rule_01_a_granted_secret_is_in_its_memory(with_secret):
    options = ["--pass", "LAUNCHER_SECRET"]
    ended = with_secret.run(SCAN, args=[f"{MARK[:9]}|{MARK[9:]}"], options=options)
    assert (ended.status, ended.out) == (0, "in memory\n"), ended


def test_rule_01_the_environment_is_built_and_not_inherited(with_secret):
    code = "import os\nprint(*sorted(os.environ)); print(open('/proc/self/environ').read().count('LAUNCHER'))"
    names, count = with_secret.run(code).out.splitlines()
    base = {"HOME", "LANG", "LOGNAME", "PATH", "PYTHONUTF8", "SHELL", "TMPDIR", "USER", "LC_CTYPE"}
    callers = {"TERM", "COLORTERM", "TZ", "LC_ALL", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
    assert set(names.split()) <= base | callers
    assert {"HOME", "PATH", "TMPDIR"} <= set(names.split())
    assert count == "0"


def test_rule_01_every_descriptor_but_the_three_is_closed(caller):
    held = os.open("/etc/hostname", os.O_RDONLY)
    try:
        code = "import os\nprint([n for n in range(4096) if os.path.exists(f'/proc/self/fd/{n}')])"
        assert caller.run(code, pass_fds=(held,)).out == "[0, 1, 2]\n"
    finally:
        os.close(held)


STREAMS = """
import os, stat
print(*[stat.S_IFMT(os.fstat(n).st_mode) for n in range(3)], *map(os.isatty, range(3)))
"""


def test_rule_02_the_program_gets_pipes_and_not_the_callers_files(caller):
    log = caller.own(caller.place / "log", "")
    with open(log, "a+") as file:
        ended = caller.run(STREAMS, stdin=file, stdout=file, stderr=file, capture_output=False)
    pipe = stat.S_IFIFO
    assert log.read_text().split()[:6] == [str(pipe)] * 3 + ["False"] * 3, ended


def test_rule_02_it_gets_a_terminal_of_its_own_when_the_callers_is_one(caller):
    code = "import os\nprint(*map(os.isatty, range(3)), os.ttyname(0) == os.ttyname(1)); open('/dev/tty').close()"
    words = [*caller.prefix, *caller.words(code, options=["-q"])]
    status, said = run_on_terminal(words, caller.environment, caller.work)
    assert (status, said.split()[:4]) == (0, ["True"] * 4), said


def test_rule_02_output_is_counted_outside(caller):
    code = "import sys\nfor _ in range(64): sys.stdout.write('x' * 4096)"
    ended = caller.run(code, options=["--limit", "output=16KiB"])
    assert (ended.result["limit"], len(ended.out)) == ("output", 16 << 10), ended.result
    allowed = caller.run(code, options=["--limit", "output=1MiB"])
    assert (allowed.status, len(allowed.out), allowed.result["usage"]["output"]) == (0, 256 << 10, 256 << 10)


def test_rule_03_init_cannot_be_looked_into(caller):
    code = """
import os
for name in "environ", "maps", "mem", "root", "cwd", "fd":
    try: os.close(os.open(f"/proc/1/{name}", os.O_RDONLY)); print("open")
    except OSError as e: print(e.errno)
"""
    ended = caller.run(code)
    assert set(ended.out.split()) <= {"1", "2", "13"}, ended


def test_rule_03_the_program_can_look_at_itself_and_the_broker_at_it(caller):
    """Undumpable, it would lose /dev/stdout and its own /proc, and no connect could be answered."""
    code = """
import os, socket
print("by name", file=open("/dev/stdout", "w"))
print(len(os.listdir("/proc/self/fd")) > 2, os.readlink("/proc/self/exe") != "")
server = socket.create_server(("127.0.0.1", 0)); socket.create_connection(server.getsockname()).close()
print("connected")
"""
    ended = caller.run(code)
    assert sorted(ended.out.splitlines()) == ["True True", "by name", "connected"], ended


def test_rule_03_the_program_stays_dumpable_whatever_it_says(caller):
    code = """
import ctypes, socket
libc = ctypes.CDLL(None)
print(libc.prctl(4, 0), libc.prctl(3))
server = socket.create_server(("127.0.0.1", 0)); socket.create_connection(server.getsockname()).close()
print("connected")
"""
    assert caller.run(code).out.splitlines() == ["0 1", "connected"]
