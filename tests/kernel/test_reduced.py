"""Tier reduced: what it must keep where user namespaces, CAP_SYS_ADMIN or a recent Landlock are missing."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket

import pytest

from egress_world import Echo
from terminal import run_on_terminal

HELLO = "print('hello')"
GRANTS = 'version: "1"\nresources:\n  files: [{path: %s, mode: r}, {path: "%s/", mode: rw}]\n'
# What native code sees: no guard of ours between it and the kernel.
NATIVE = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    ctypes.set_errno(0)
    return 0 if getattr(libc, name)(*args) >= 0 else ctypes.get_errno()
def read(path):
    fd = libc.open(os.fsencode(path), os.O_RDONLY)
    return os.read(fd, 100).decode(errors="replace") if fd >= 0 else errno.errorcode[ctypes.get_errno()]
"""


# -- it runs, and says so --------------------------------------------------------------------------------


def test_a_program_runs_and_the_receipt_says_reduced(confined):
    ended = confined.run(HELLO)
    assert (ended.status, ended.out, ended.tier) == (0, "hello\n", "reduced"), ended
    assert ended.level("undeclared files")[0] == "enforced"
    assert re.search(r"^reach: tier reduced: .* \(`reach doctor` has the fix\)$", ended.err, re.MULTILINE)


def test_the_receipt_says_that_a_root_stays_uid_0_without_capabilities(confined):
    ended = confined.run("import os; print(os.getuid(), [l for l in open('/proc/self/status') if 'CapEff' in l])")
    assert ended.out == f"{confined.uid} ['CapEff:\\t0000000000000000\\n']\n", ended
    assert ("uid 0, no capabilities" in ended.result["receipt"]["notes"]) == (confined.uid == 0)


def test_minimum_full_is_refused_with_the_cause_and_the_fix(confined):
    contract = 'version: "1"\nsandbox: {minimum: %s}\nresources: {}\n'
    ended = confined.run(HELLO, contract=contract % "full")
    assert (ended.status, ended.out) == (125, ""), ended
    error = ended.result["error"]
    lacking = "CAP_SYS_ADMIN" if confined.prefix[-1].endswith("sys_admin") else "step `namespaces`"
    assert lacking in ended.err
    assert "sandbox.minimum" in ended.err
    assert error["fix"], error
    assert error["fix"] in ended.err
    allowed = confined.run(HELLO, contract=contract % "reduced")
    assert (allowed.status, allowed.out, allowed.tier) == (0, "hello\n", "reduced"), allowed


# -- files -----------------------------------------------------------------------------------------------


def test_an_undeclared_file_is_refused_and_a_declared_one_is_read(confined):
    hidden = confined.own(confined.place / "hidden", "s3cret")
    shown = confined.own(confined.place / "shown", "open")
    code = NATIVE + "print(read(sys.argv[1]), read(sys.argv[2]))"
    ended = confined.run(code, options=["--read", shown], args=[hidden, shown])
    assert ended.out == "EACCES open\n", ended


def test_an_undeclared_file_is_an_exception_that_names_the_contract(confined):
    hidden = confined.own(confined.place / "hidden", "s3cret")
    ended = confined.run("import sys\nopen(sys.argv[1])", args=[hidden])
    assert ended.status == 1
    assert "PermissionError: [Errno 13] Permission denied" in ended.err
    assert f"- {{path: {hidden}, mode: r}}" in ended.err


def test_detours_to_an_undeclared_file_are_refused(confined):
    """By way of /proc, of a link that the program makes, and of a rename into a writable grant."""
    hidden = confined.own(confined.place / "hidden", "s3cret")
    confined.own(confined.place / "out", directory=True)
    code = (
        NATIVE
        + """
hidden, out = sys.argv[1:3]
ways = ["/proc/self/root" + hidden, "/proc/self/cwd/../hidden", "/proc/%d/root%s" % (os.getppid(), hidden)]
print([read(way) for way in ways])
os.symlink(hidden, out + "/soft"); print(read(out + "/soft"))
made = [call(way, hidden.encode(), f"{out}/{way}ed".encode()) for way in ("link", "rename")]
print([errno.errorcode.get(e, e) for e in made])
os.rename(out + "/soft", out + "/twin"); print(os.listdir(out))
"""
    )
    ended = confined.run(code, options=["--write", f"{confined.place / 'out'}/"], args=[hidden, confined.place / "out"])
    first, soft, moved, twin = ended.out.splitlines()
    assert set(re.findall(r"\w+", first)) <= {"EACCES", "ENOENT", "EPERM"}, ended
    assert soft == "EACCES"
    assert set(re.findall(r"\w+", moved)) <= {"EACCES", "EXDEV"}, ended
    assert twin == "['twin']"


def test_hidden_names_of_the_project_are_not_read(confined):
    confined.own(confined.work / ".env", "TOKEN=1")
    confined.own(confined.work / "data.txt", "fine")
    code = NATIVE + "print(read('.env'), read('reach.yaml'), read('data.txt'))"
    ended = confined.run(code, contract='version: "1"\nresources: {}\n')
    assert ended.out == "EACCES EACCES fine\n", ended


def test_read_only_grants_cannot_be_written_truncated_or_removed(confined):
    shown = confined.own(confined.place / "shown", "open")
    out = confined.own(confined.place / "out", directory=True)
    code = (
        NATIVE
        + """
shown, out = (path.encode() for path in sys.argv[1:3])
mine = out + b"/mine"; os.write(os.open(mine, os.O_WRONLY | os.O_CREAT, 0o600), b"12345")
for path in shown, mine:
    errors = call("open", path, os.O_WRONLY), call("truncate", path, ctypes.c_long(2)), call("unlink", path)
    print(*(errno.errorcode.get(e, e) for e in errors))
fd = os.open(out + b"/two", os.O_WRONLY | os.O_CREAT); os.write(fd, b"12345"); os.ftruncate(fd, 2)
print(os.fstat(fd).st_size)
"""
    )
    ended = confined.run(code, options=["--read", shown, "--write", f"{out}/"], args=[shown, out])
    refused, allowed, size = ended.out.splitlines()
    assert set(refused.split()) <= {"EACCES", "EPERM"}, ended
    no_right = confined.command[-1] == "2"  # before ABI 3 no truncate by path is let through
    assert allowed == ("0 EPERM 0" if no_right else "0 0 0")
    assert size == "2"
    assert shown.read_text() == "open"


def test_what_other_users_programs_obey_stays_read_only_in_a_writable_grant(confined):
    out = confined.own(confined.place / "out", directory=True)
    confined.own(out / ".git", directory=True)
    confined.own(out / ".git" / "hooks", directory=True)
    confined.own(out / ".envrc", "export A=1")
    confined.own(out / "plain", "old")
    code = (
        NATIVE
        + """
out = os.fsencode(sys.argv[1])
for name in b".envrc", b".git/hooks/pre-commit", b"plain":
    print(errno.errorcode.get(call("open", out + b"/" + name, os.O_WRONLY | os.O_CREAT, 0o700), "open"))
print(errno.errorcode.get(call("rename", out + b"/.git", out + b"/git"), "renamed"))
"""
    )
    ended = confined.run(code, options=["--write", f"{out}/"], args=[out])
    assert ended.out.split() == ["EACCES", "EACCES", "open", "EACCES"], ended


def test_sockets_fifos_and_devices_of_the_host_in_a_grant_cannot_be_used(confined):
    out = confined.own(confined.place / "out", directory=True)
    os.mkfifo(out / "fifo")
    os.chown(out / "fifo", confined.uid, confined.gid)
    reader = os.open(out / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(out / "sock"))
        os.chmod(out / "sock", 0o777)
        server.listen()
        server.setblocking(False)
        code = (
            NATIVE
            + """
import socket
out = sys.argv[1]
print(errno.errorcode.get(call("open", os.fsencode(out + "/fifo"), os.O_WRONLY | os.O_NONBLOCK), "open"))
try: socket.socket(socket.AF_UNIX).connect(out + "/sock"); print("connected")
except OSError as e: print(errno.errorcode[e.errno])
print(errno.errorcode.get(call("open", os.fsencode(out + "/file"), os.O_WRONLY | os.O_CREAT, 0o600), "open"))
"""
        )
        ended = confined.run(code, options=["--write", f"{out}/"], args=[out])
        assert ended.out.split()[:2] == ["EACCES", "EACCES"], ended
        with pytest.raises(BlockingIOError):
            server.accept()
    os.close(reader)


def test_the_runs_own_home_and_tmpdir_are_fresh_and_gone_afterwards(confined):
    code = """
import os, tempfile
for name in os.environ["HOME"], tempfile.gettempdir():
    open(name + "/file", "w").write("x"); os.makedirs(name + "/a/b"); os.mkdir(name + "/closed", 0)
    print(name, oct(os.stat(name).st_mode & 0o7777), len(os.listdir(name)))
"""
    ended = confined.run(code)
    lines = [line.split() for line in ended.out.splitlines()]
    assert len(lines) == 2, ended
    for path, mode, entries in lines:
        assert (mode, entries) == ("0o700", "3")
        assert not os.path.lexists(os.path.dirname(path))


def test_another_terminal_of_the_same_user_cannot_be_opened(confined):
    master, slave = pty.openpty()
    try:
        name = os.ttyname(slave)
        os.chown(name, confined.uid, -1)
        opened = confined.bare([confined.python, "-c", "import sys; open(sys.argv[1])", name])
        assert opened.returncode == 0, opened.stderr  # it is this user's
        ended = confined.run(NATIVE + "print(read(sys.argv[1]), read('/dev/null') == '')", args=[name])
        assert ended.out == "EACCES True\n", ended
    finally:
        os.close(master)
        os.close(slave)


def test_on_a_terminal_the_program_has_one_of_its_own(confined):
    """Its own it may open by name: what pdb, getpass and curses do."""
    code = """
import os
for name in os.ttyname(0), "/dev/tty": print("by name", name, file=open(name, "w"))
"""
    words = [*confined.prefix, *confined.words(code, options=["-q"])]
    status, said = run_on_terminal(words, confined.environment, confined.work)
    assert (status, said.count("by name /dev/")) == (0, 2), said


def test_rule_15_metadata_outside_writable_grants_cannot_be_changed(confined):
    shown = confined.own(confined.place / "shown", "open", mode=0o640)
    before = os.stat(shown)
    code = (
        NATIVE
        + """
path = os.fsencode(sys.argv[1]); fd = os.open(path, os.O_RDONLY)
errors = [call("chmod", path, 0o666), call("fchmod", fd, 0o666), call("chown", path, os.getuid(), os.getgid()),
  call("utimensat", -100, path, None, 0), call("futimens", fd, None),
  call("setxattr", path, b"user.x", b"1", ctypes.c_long(1), 0),
  call("fsetxattr", fd, b"user.x", b"1", ctypes.c_long(1), 0)]
print(*(errno.errorcode.get(e, e) for e in errors))
"""
    )
    ended = confined.run(code, options=["--read", shown], args=[shown])
    assert set(ended.out.split()) <= {"EPERM", "EACCES"}, ended
    after = os.stat(shown)
    assert (after.st_mode, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


def test_rule_15_mode_and_times_are_changed_in_writable_grants(confined):
    """What shutil.copy, tarfile and every installer do; set-id bits stay refused there too."""
    out = confined.own(confined.place / "out", directory=True)
    source = confined.own(confined.place / "source", "content", mode=0o754)
    os.utime(source, ns=(10**18 + 1, 10**18 + 2))
    code = """
import os, shutil, sys, tempfile
source, out = sys.argv[1:3]
shutil.copy2(source, out + "/copy"); os.chdir(out)
os.mkdir("d", 0o700); os.chmod("d", 0o750); here = os.open("d", os.O_RDONLY)
fd = os.open("d/f", os.O_RDWR | os.O_CREAT); os.fchmod(fd, 0o640); os.utime(fd, (1, 2)); os.utime("d/f", (3, 4))
os.chmod("f", 0o604, dir_fd=here); print(oct(os.fstat(fd).st_mode), os.fstat(fd).st_mtime)
os.utime("d/f"); print(os.fstat(fd).st_mtime > 1e9)
os.unlink("d/f"); os.fchmod(fd, 0o600); print(oct(os.fstat(fd).st_mode))
with tempfile.NamedTemporaryFile() as file: os.chmod(file.name, 0o644)
os.symlink(source, "link")
for path, mode in ("d", 4755), ("d", 2755), (source, 600), ("link", 600), ("missing", 600), ("/dev/null", 600):
    try: os.chmod(path, int(str(mode), 8)); print("changed")
    except OSError as e: print(e.errno)
"""
    ended = confined.run(code, contract=GRANTS % (source, out), args=[source, out])
    assert ended.out.split() == ["0o100604", "4.0", "True", "0o100600", "1", "1", "1", "1", "2", "1"], ended
    copied = (out / "copy").stat()
    assert (copied.st_mode & 0o7777, copied.st_mtime_ns) == (0o754, 10**18 + 2)
    assert source.stat().st_mode & 0o7777 == 0o754


def test_rule_15_a_mode_is_changed_where_it_was_checked(confined):
    """The name is exchanged all the time: between a file of its own and a link to one that it may only read."""
    out = confined.own(confined.place / "out", directory=True)
    source = confined.own(confined.place / "source", "content", mode=0o644)
    code = """
import os, signal, sys
source, out = sys.argv[1:3]; os.chdir(out); open("own", "w").close(); os.symlink(source, "bad"); pid = os.fork()
while pid == 0:
    for name in "own", "bad":
        try: os.unlink("name")
        except OSError: pass
        try: os.link(name, "name", follow_symlinks=False)
        except OSError: pass
done = 0
for _ in range(3000):
    try: os.chmod("name", 0o666); done += 1
    except OSError: pass
os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0); print(done > 0)
"""
    ended = confined.run(code, contract=GRANTS % (source, out), args=[source, out])
    assert ended.out == "True\n", ended
    assert source.stat().st_mode & 0o7777 == 0o644


# -- network ---------------------------------------------------------------------------------------------

CONNECT = """
import socket, sys
for host, port in (word.rsplit(":", 1) for word in sys.argv[1:]):
    try:
        with socket.create_connection((host, int(port)), 10) as s: s.sendall(b"hi"); print("connected")
    except OSError as e: print(type(e).__name__, e.errno)
"""


def test_an_undeclared_host_is_refused_and_a_declared_one_is_reached(confined):
    with Echo() as server, Echo() as bait:
        ended = confined.run(
            CONNECT,
            options=["--net", f"127.0.0.1:{server.port}"],
            args=[f"127.0.0.1:{bait.port}", f"127.0.0.1:{server.port}"],
        )
        assert ended.out.splitlines() == ["PermissionError 13", "connected"], ended
        assert (bait.count, server.count) == (0, 1)
    assert f"denied connect 127.0.0.1:{bait.port}" in ended.err
    assert ended.level("undeclared connections") == ("enforced", "seccomp, broker")


def test_a_declared_name_is_resolved_outside(confined):
    with Echo() as server, Echo() as bait:
        ended = confined.run(
            CONNECT,
            options=["--net", f"localhost:{server.port}"],
            args=[f"localhost:{server.port}", f"localhost:{bait.port}", "db.example:5432"],
        )
        lines = ended.out.splitlines()
        assert lines[0] == "connected", ended
        assert lines[1] == "PermissionError 13"
        assert lines[2] in {"PermissionError 13", "gaierror -2"}
        assert (bait.count, server.count) == (0, 1)


def test_sockets_that_the_broker_cannot_mediate_do_not_exist(confined):
    code = """
import errno, socket
kinds = (2, 2, 0), (10, 2, 0), (2, 3, 1), (16, 3, 0), (17, 3, 0), (1, 2, 0), (2, 1, 262), (2, 1, 0)
for family, kind, protocol in kinds:
    try: socket.socket(family, kind, protocol).close(); print("open")
    except OSError as e: print(errno.errorcode[e.errno])
"""
    *refused, tcp = confined.run(code).out.split()
    assert len(refused) == 7
    assert "open" not in refused
    assert tcp == "open"


def test_no_program_listens_in_the_hosts_network(confined):
    code = """
import socket
s = socket.socket()
try: s.bind(("127.0.0.1", 0)); s.listen(); print("listens")
except OSError as e: print(type(e).__name__)
a, b = socket.socketpair(); a.send(b"x"); print(b.recv(1))
"""
    ended = confined.run(code)
    assert ended.out.splitlines() == ["PermissionError", "b'x'"], ended


def test_abstract_sockets_of_the_host_are_not_reached(confined):
    name = f"\0reach-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        server.setblocking(False)
        code = """
import socket, sys
try: socket.socket(socket.AF_UNIX).connect("\\0" + sys.argv[1]); print("connected")
except OSError as e: print(type(e).__name__)
"""
        assert confined.run(code, args=[name[1:]]).out == "PermissionError\n"
        with pytest.raises(BlockingIOError):
            server.accept()


# -- processes -------------------------------------------------------------------------------------------

BYSTANDER = """
import signal, sys
got = []
for number in (signal.SIGURG, signal.SIGWINCH): signal.signal(number, lambda n, f: got.append(n))
print("ready", flush=True); sys.stdin.read(); print(*got)
"""


@pytest.fixture
def bystander(confined):
    """A process of the same user outside, which says at the end which signals it got."""
    import subprocess

    prefix = confined.prefix[:4] if confined.prefix[:1] == ["setpriv"] and len(confined.prefix) > 4 else []
    process = subprocess.Popen(
        [*prefix, confined.python, "-c", BYSTANDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def test_signals_reach_own_children_and_nobody_else(confined, bystander):
    """Only signals that nobody dies of: were one let through, it would reach every process of this user."""
    code = """
import errno, os, signal, sys, time
outside = int(sys.argv[1]); URG = signal.SIGURG
def attempt(call, *args):
    try: call(*args); return "sent"
    except OSError as e: return errno.errorcode[e.errno]
got = []; signal.signal(URG, lambda *_: got.append(1))
child = os.fork()
while child == 0: signal.pause()
print(attempt(os.kill, outside, 0), attempt(os.kill, outside, URG), attempt(os.killpg, outside, URG))
print(attempt(os.kill, -1, URG) in ("sent", "EPERM", "ESRCH"))
print(attempt(os.kill, os.getppid(), 0))
signal.raise_signal(URG); signal.pthread_kill(__import__("threading").get_ident(), URG); os.kill(os.getpid(), URG)
time.sleep(0.1); print(len(got) >= 1)
print(attempt(os.kill, child, signal.SIGTERM), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    ended = confined.run(code, args=[bystander.pid])
    lines = ended.out.splitlines()
    assert lines[0].split() == ["EPERM", "EPERM", lines[0].split()[2]], ended
    assert lines[0].split()[2] in {"EPERM", "ESRCH"}
    assert lines[1:] == ["True", "EPERM", "True", f"sent -{signal.SIGTERM:d}"], ended
    said, _ = bystander.communicate("")
    assert said == "\n"


def test_threads_of_a_program_signal_each_other(confined):
    code = """
import signal, threading, time
got = []; signal.signal(signal.SIGUSR1, lambda *_: got.append(threading.get_ident()))
main = threading.main_thread().ident
t = threading.Thread(target=lambda: signal.pthread_kill(main, signal.SIGUSR1)); t.start(); t.join(); time.sleep(0.05)
print(got == [main])
import multiprocessing as m
p = m.get_context("fork").Process(target=time.sleep, args=(60,)); p.start(); p.kill(); p.join(); print(p.exitcode)
"""
    assert confined.run(code).out.split() == ["True", "-9"]


def test_rule_15_limits_priorities_and_schedulers_of_foreign_processes_stay(confined, bystander):
    code = (
        NATIVE
        + """
import resource
pid = int(sys.argv[1]); mask = ctypes.create_string_buffer(b"\\1" + bytes(127))
param = ctypes.create_string_buffer(8); limit = (ctypes.c_ulong * 2)(10, 10)
for target in pid, 0:
    errors = [call("prlimit", target, 7, ctypes.byref(limit) if target else None, None),
      call("setpriority", 0, target, 19), call("sched_setscheduler", target, 3, param),
      call("sched_setaffinity", target, 128, mask)]
    print(*(errno.errorcode.get(e, e) for e in errors))
"""
    )
    ended = confined.run(code, args=[bystander.pid])
    foreign, own = ended.out.splitlines()
    assert set(foreign.split()) == {"EPERM"}, ended
    assert own == "0 0 0 0", ended


def test_processes_outside_cannot_be_looked_into(confined, bystander):
    code = (
        NATIVE
        + """
pid = sys.argv[1]
print(*(read(f"/proc/{pid}/{name}") for name in ("environ", "cmdline", "maps", "mem", "status", "root/etc/passwd")))
print(errno.errorcode.get(call("ptrace", 0x4206, int(pid), None, None), "traced"))
print(read("/proc/self/comm").strip())
"""
    )
    ended = confined.run(code, args=[bystander.pid])
    looked, traced, own = ended.out.splitlines()
    assert set(looked.split()) <= {"EACCES", "EPERM"}, ended
    assert traced in {"EPERM", "ENOSYS", "EACCES"}
    assert own


def test_rule_12_everything_that_was_started_ends_with_the_run(confined):
    """Also what has left its session, its group and its parent."""
    code = """
import os, time
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: time.sleep(300)
        os._exit(0)
child = os.fork()
if child == 0: os.setsid(); time.sleep(300)
print(child, flush=True)
"""
    ended = confined.run(code)
    assert ended.status == 0, ended
    child = int(ended.out.split()[-1])
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert "could not all be ended" not in ended.err


def test_a_memory_limit_counts_the_program_and_not_the_hosts_files(confined):
    assert confined.run(HELLO, options=["--limit", "memory=200MiB"]).out == "hello\n"
    code = "import time\nkept = bytearray(300 << 20)\nfor at in range(0, 300 << 20, 4096): kept[at] = 1\ntime.sleep(20)"
    ended = confined.run(code, options=["--limit", "memory=200MiB"])
    assert (ended.result["cause"], ended.result["limit"]) == ("limit", "memory"), ended


# -- values ----------------------------------------------------------------------------------------------


def test_a_secret_is_delivered_as_a_file_of_the_run(confined):
    secret = confined.own(confined.work / "ca.pem", "content of the file")
    contract = f"""
version: "1"
resources:
  env:
    - {{name: PGSSLROOTCERT, source: "file://{secret}"}}
    - {{name: PLAIN, default: "x"}}
"""
    code = (
        "import os; print(os.environ['PLAIN'], open(os.environ['PGSSLROOTCERT']).read(), os.environ['PGSSLROOTCERT'])"
    )
    ended = confined.run(code, contract=contract)
    assert ended.out.startswith("x content of the file /"), ended
    assert not os.path.exists(ended.out.split()[-1])


def test_a_file_at_another_path_is_refused_by_name_before_anything_runs(confined):
    source = confined.own(confined.place / "source", "x")
    contract = f'version: "1"\nresources:\n  files: [{{path: /data/in.txt, mode: r, source: "file://{source}"}}]\n'
    ended = confined.run(HELLO, contract=contract)
    assert (ended.status, ended.out) == (125, ""), ended
    assert "/data/in.txt" in ended.err


def test_commands_are_granted_one_by_one(confined):
    code = """
import subprocess
for name in ("/bin/true", "/bin/ls"):
    try: print(subprocess.run([name], stdout=-3).returncode)
    except OSError as e: print(type(e).__name__)
"""
    ended = confined.run(code, options=["--command", "true"])
    assert ended.out.split() == ["0", "PermissionError"], ended
    assert ended.level("commands")[0] == "best effort"


def test_the_interpreter_starts_again(confined):
    code = "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'print(6*7)'], stdout=-1).stdout)"
    ended = confined.run(code)
    assert ended.out == "b'42\\n'\n", ended


def test_without_landlock_nothing_runs(caller):
    other = caller.confined("Landlock ABI 0")
    ended = other.run(HELLO)
    assert (ended.status, ended.out) == (125, ""), ended
    assert "Landlock" in ended.err
