"""Ways out that were shown to work against sandboxes of this kind: a probe for each, and the allowed thing."""

from __future__ import annotations

import os
import socket
import stat
import subprocess

import pytest

NATIVE = """
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def name(number): return errno.errorcode.get(number, "ok")
def call(function, *args):
    ctypes.set_errno(0)
    return name(0 if getattr(libc, function)(*args) >= 0 else ctypes.get_errno())
def attempt(function, *args):
    try: function(*args); return "ok"
    except OSError as e: return name(e.errno)
"""


# -- set-id bits through an id-mapped grant --------------------------------------------------------------

SET_ID = (
    NATIVE
    + """
os.chdir(sys.argv[1]); path = b"planted"
open(path, "wb").write(open("/proc/self/exe", "rb").read(4)); fd = os.open(path, os.O_RDWR); at = -100
for bits in 0o4755, 0o2755, 0o6755:
    print(call("chmod", path, bits), call("fchmod", fd, bits), call("fchmodat", at, path, bits, 0),
      call("syscall", ctypes.c_long(452), at, path, bits, 0),                   # fchmodat2
      call("open", b"a", os.O_CREAT | os.O_WRONLY, bits), call("openat", at, b"b", os.O_CREAT | os.O_WRONLY, bits),
      call("creat", b"c", bits), call("mkdir", b"d", bits), call("mkdirat", at, b"e", bits),
      call("mknod", b"f", 0o100000 | bits, 0), call("openat", at, b".", os.O_TMPFILE | os.O_RDWR, bits))
how = ctypes.create_string_buffer(struct.pack("<QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0), 24)
print(call("syscall", ctypes.c_long(437), at, b"g", how, ctypes.c_long(24)))     # openat2
capability = struct.pack("<IIIII", 0x2000001, 1 << 21, 0, 0, 0)
print(attempt(os.setxattr, path, "security.capability", capability))
print(call("chmod", path, 0o1777), call("chmod", path, 0o755), os.access(path, os.X_OK))
"""
)


def test_no_set_id_bit_can_be_planted_in_a_writable_grant(caller):
    """Behind an id-mapped mount the file would belong to root on the host: shown to work without rule 6."""
    out = caller.own(caller.place / "out", directory=True)
    ended = caller.run(SET_ID, options=["--write", f"{out}/"], args=[out])
    assert ended.status == 0, ended
    *refused, openat2, capability, allowed = ended.out.splitlines()
    assert {word for line in refused for word in line.split()} <= {"EPERM", "ENOSYS"}, ended
    assert (openat2, capability) == ("ENOSYS", "EPERM")
    assert allowed == "ok ok True"
    planted = {path.name: os.lstat(path) for path in out.rglob("*")}
    assert planted["planted"].st_uid == caller.uid
    assert not [name for name, about in planted.items() if about.st_mode & (stat.S_ISUID | stat.S_ISGID)]


def test_set_id_bits_that_a_grant_had_are_gone_afterwards(caller):
    """The second wall: whatever the program did to the content, the bit does not outlive the run."""
    out = caller.own(caller.place / "out", directory=True)
    tool = caller.own(out / "tool", "#!/bin/sh\n")
    tool.chmod(0o4755)
    ended = caller.run("print('ran')", options=["--write", f"{out}/"])
    assert ended.out == "ran\n", ended
    assert stat.S_IMODE(tool.stat().st_mode) == 0o755
    assert f"set-id bits cleared: {tool}" in ended.result["receipt"]["notes"]


# -- Unix sockets by path --------------------------------------------------------------------------------

UNIX = (
    NATIVE
    + """
import socket, threading
path, granted = sys.argv[1:3]; folder = os.path.dirname(path)
def knock(where, family=1):
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(5)
    try: s.connect(where); return s.recv(20).decode() or "nothing"
    except OSError as e: return name(e.errno)
    finally: s.close()
print(knock(path), knock(granted))                                   # the host's own, before ours is there
os.makedirs(folder, exist_ok=True); os.chdir(folder)
ours = socket.socket(socket.AF_UNIX); ours.bind(path); ours.listen(16)
def serve():
    while True: c, _ = ours.accept(); c.send(b"inside"); c.close()
threading.Thread(target=serve, daemon=True).start()
os.symlink("/proc/1/root" + path, "by-init"); os.symlink(path, "by-link")
print(knock(path), knock("by-link"), knock("./" + os.path.basename(path)), knock("../" * 20 + path.lstrip("/")))
print(*[knock(where) for where in ("by-init", "/proc/self/root" + path, "/proc/1/root" + path)])
fd = os.open(folder, os.O_PATH); print(knock("/proc/self/fd/%d/%s" % (fd, os.path.basename(path))), knock("/dev/null"))
a = socket.socket(socket.AF_UNIX); b = a.dup()
print(knock(granted), attempt(b.connect, granted), attempt(a.connect, path))
"""
)


@pytest.fixture
def host_server():
    """Listen on a path outside: a function of the path; what it returns knows how often somebody knocked."""
    servers = []

    def listen(path):
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        os.chmod(path, 0o777)
        server.listen(64)
        server.setblocking(False)
        servers.append(server)
        return server

    yield listen
    for server in servers:
        server.close()


def knocks(server):
    count = 0
    while True:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def test_a_path_is_never_looked_up_in_the_brokers_root(caller, host_server, tmp_path_factory):
    """A connect on a duplicate of the caller's socket would be resolved outside, and reach docker.sock: shown."""
    folder = f"/tmp/reach-escape-{os.getpid()}-{caller.name}"
    os.mkdir(folder, 0o755)
    try:
        outside = host_server(f"{folder}/docker.sock")
        granted = host_server(caller.place / "granted.sock")
        os.chmod(caller.place, 0o755)
        options = ["--write", f"{caller.place}/"]
        ended = caller.run(UNIX, options=options, args=[f"{folder}/docker.sock", caller.place / "granted.sock"])
        assert ended.status == 0, ended
        before, inside, magic, other, dup = ended.out.splitlines()
        assert before.split()[0] == "ENOENT", ended
        assert before.split()[1] in {"EACCES", "ECONNREFUSED"}  # masked: no socket any more
        assert inside == "inside inside inside inside", ended
        assert "inside" not in magic.split()[0]
        assert set(magic.split()) <= {"ELOOP", "EACCES", "ENOENT", "EXDEV", "EPERM"}, ended
        assert set(other.split()) <= {"ELOOP", "EACCES", "ENOENT", "EXDEV", "ECONNREFUSED"}, ended
        assert set(dup.split()[:2]) <= {"EACCES", "ECONNREFUSED"}, ended
        assert dup.split()[2] == "ok"
        assert (knocks(outside), knocks(granted)) == (0, 0)
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(f"{folder}/docker.sock")
        assert knocks(outside) == 1
    finally:
        os.unlink(f"{folder}/docker.sock")
        os.rmdir(folder)


# -- the caller's descriptors ----------------------------------------------------------------------------

DESCRIPTORS = (
    NATIVE
    + """
above = [fd for fd in range(3, 4096) if attempt(os.fstat, fd) == "ok"]; found = []
for fd in 0, 1, 2:
    found.append((attempt(os.ftruncate, fd, 0), attempt(os.lseek, fd, 0, 0), attempt(os.pread, fd, 100, 0)))
    try: found.append(os.read(os.open("/proc/self/fd/%d" % fd, os.O_RDONLY | os.O_NONBLOCK), 100))
    except OSError as e: found.append(name(e.errno))
    found.append(attempt(lambda: os.truncate("/proc/self/fd/%d" % fd, 0)))
with open(sys.argv[1], "w") as file: print(found, above, file=file)
print("to the log"); print("to the errors", file=sys.stderr)
"""
)


def test_the_callers_log_cannot_be_truncated_or_read_back(caller):
    """`reach run … >> log`: an inherited descriptor is the file itself, with everything that was in it."""
    out = caller.own(caller.place / "out", directory=True)
    log = caller.own(caller.place / "log", "earlier and secret\n")
    errors = caller.own(caller.place / "errors", "earlier errors\n")
    data = caller.own(caller.place / "data", "input\n")
    # Opened for reading and writing on purpose: the most that a shell can hand over.
    with open(log, "a+") as one, open(errors, "a+") as two, open(data, "r+") as zero:
        options = ["-q", "--write", f"{out}/"]
        ended = caller.run(
            DESCRIPTORS, options=options, args=[out / "seen"], stdout=one, stderr=two, stdin=zero, capture_output=False
        )
    seen = (out / "seen").read_text()
    assert ended.status == 0, seen
    assert log.read_text() == "earlier and secret\nto the log\n"
    assert errors.read_text() == "earlier errors\nto the errors\n"
    assert data.read_text() == "input\n"
    assert "secret" not in seen
    assert "earlier" not in seen
    assert seen.strip().endswith("[]"), seen  # nothing above 2


def test_descriptors_that_the_caller_left_open_stay_outside(caller):
    secret = caller.own(caller.place / "secret", "s3cret")
    held = os.open(secret, os.O_RDWR)
    listener = socket.create_server(("127.0.0.1", 0))
    try:
        code = "import os\nprint([fd for fd in range(3, 4096) if os.path.exists(f'/proc/self/fd/{fd}')][1:])"
        ended = caller.run(code, pass_fds=(held, listener.fileno()))
        assert ended.out == "[]\n", ended
    finally:
        os.close(held)
        listener.close()


# -- init, and what it may be asked ----------------------------------------------------------------------

INIT = (
    NATIVE
    + """
def look(pid):
    words = []
    files = "environ", "maps", "mem", "auxv", "syscall", "stack", "io", "task/%s/mem" % pid
    for entry in ("root", "cwd", "exe", "ns/mnt", "fd", *files):
        where = "/proc/%s/%s" % (pid, entry)
        try:
            if entry in ("root", "cwd", "exe", "ns/mnt"): os.readlink(where)
            elif entry == "fd": os.listdir(where)
            else: os.close(os.open(where, os.O_RDONLY))
            words.append(entry)
        except OSError as e: words.append(name(e.errno))
    return words
print(*look(1)); print(*look(os.getpid()))
print(call("ptrace", 16, 1, None, None), call("ptrace", 0x4206, 1, None, None),
  call("process_vm_readv", 1, None, 0, None, 0, 0),
  call("syscall", ctypes.c_long(438), 3, 0, 0), attempt(os.pidfd_open, 1))
print(libc.prctl(4, 0), libc.prctl(3), libc.prctl(4, 2), libc.prctl(3), flush=True)
p = os.fork()
if p == 0:
    libc.prctl(4, 0); print(libc.prctl(3), len(look("self")), flush=True); os._exit(0)
os.waitpid(p, 0)
"""
)


def test_init_holds_nothing_and_lets_nobody_look(caller):
    ended = caller.run(INIT)
    init, own, trace, dumpable, child = ended.out.splitlines()
    assert set(init.split()) <= {"EACCES", "EPERM", "ENOENT"}, ended
    assert {"environ", "maps", "root", "cwd", "exe", "fd"} <= set(own.split()), ended
    assert set(trace.split()[:4]) <= {"EPERM", "ENOSYS", "EBADF", "EACCES"}, ended
    # Setting it succeeds and changes nothing: the broker must be able to read the caller's memory.
    assert dumpable == "0 1 0 1", ended
    assert child.split()[0] == "1"


# -- a notifier below ours -------------------------------------------------------------------------------

NESTED = (
    NATIVE
    + """
import socket, struct
NR = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
def filter_of(*lines):
    code = b"".join(struct.pack("=HBBI", *line) for line in lines)
    keep = ctypes.create_string_buffer(code, len(code))
    return keep, ctypes.create_string_buffer(struct.pack("=H6xQ", len(lines), ctypes.addressof(keep)))
allow, whole = filter_of((6, 0, 0, 0x7FFF0000))
for flags in 8, 8 | 1 << 4, 8 | 1 << 5, 8 | 1:
    print(call("syscall", ctypes.c_long(NR), 1, flags, whole), end=" ")
print(call("prctl", 22, 2, whole, 0, 0))
print(call("syscall", ctypes.c_long(NR), 1, 0, whole))              # one of its own, without a listener
connect = {"x86_64": 42, "aarch64": 203}[os.uname().machine]
keep, mine = filter_of((0x20, 0, 0, 0), (0x15, 0, 1, connect), (6, 0, 0, 0x7FFF0000), (6, 0, 0, 0x7FFF0000))
print(call("syscall", ctypes.c_long(NR), 1, 1, mine))               # which says that every connect is allowed
for port in sys.argv[1:]:
    s = socket.socket(); print(attempt(s.connect, ("127.0.0.1", int(port))), end=" ")
print()
"""
)


def test_no_listener_below_ours_and_no_filter_that_allows_more(caller):
    with socket.create_server(("127.0.0.1", 0)) as granted, socket.create_server(("127.0.0.1", 0)) as bait:
        ports = [server.getsockname()[1] for server in (granted, bait)]
        ended = caller.run(NESTED, options=["--net", f"127.0.0.1:{ports[0]}"], args=ports)
        assert ended.status == 0, ended
        listeners, plain, connects_allowed, connected = ended.out.splitlines()
        assert set(listeners.split()) <= {"EBUSY", "EPERM", "EINVAL"}, ended
        assert (plain, connects_allowed) == ("ok", "ok")
        assert connected.split()[0] == "ok"
        assert connected.split()[1] in {"ECONNREFUSED", "EACCES"}, ended
        bait.setblocking(False)
        with pytest.raises(BlockingIOError):
            bait.accept()


def test_the_broker_goes_on_when_a_filter_of_the_programs_own_kills_its_calls(caller):
    """A program that has its own calls killed hurts itself alone: the next run, and this one's end, are as ever."""
    code = (
        NATIVE
        + """
NR = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
connect = {"x86_64": 42, "aarch64": 203}[os.uname().machine]
lines = (0x20, 0, 0, 0), (0x15, 0, 1, connect), (6, 0, 0, 0x80000000), (6, 0, 0, 0x7FFF0000)
code = b"".join(struct.pack("=HBBI", *line) for line in lines); keep = ctypes.create_string_buffer(code, len(code))
whole = ctypes.create_string_buffer(struct.pack("=H6xQ", 4, ctypes.addressof(keep)))
import socket
print(call("syscall", ctypes.c_long(NR), 1, 0, whole), flush=True)
socket.socket().connect(("127.0.0.1", 9))
"""
    )
    ended = caller.run(code)
    assert ended.out == "ok\n", ended
    assert (ended.status, ended.result["signal"], ended.result["cause"]) == (128 + 31, 31, "signalled")
    assert subprocess.run(["true"], check=True).returncode == 0
    assert caller.run("print('next')").out == "next\n"
