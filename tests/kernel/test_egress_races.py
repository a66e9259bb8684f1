"""Races of the program against its broker, over address and descriptor: none reaches what is not granted (NW-05)."""

from __future__ import annotations

import pytest

from egress_world import Echo, World

ROUNDS = 20_000  # which `--long` waits for


# What races for the address flips it from a process of its own, in shared memory: no interpreter lock slows it. What
# races for the descriptor is a thread.
HEAD = """
import ctypes, mmap, os, signal, socket, struct, sys, threading, time
sys.setswitchinterval(1e-6)
libc = ctypes.CDLL(None, use_errno=True)
granted, bait, rounds, seconds = map(int, sys.argv[1:5])
def inet(port): return struct.pack("=H", 2) + struct.pack("!H", port) + socket.inet_aton("127.0.0.1") + bytes(8)
page = mmap.mmap(-1, 4096); page[:16] = inet(granted)
buffer = (ctypes.c_char * 32).from_buffer(page); stop = []; results = {}
good, evil = inet(granted), inet(bait)
def count(r):
    error = 0 if r == 0 else ctypes.get_errno(); results[error] = results.get(error, 0) + 1
def race(flip, attempt, fork=True):
    def loop():
        while not stop: flip()
    child = os.fork() if fork else -1
    if child == 0: loop()
    if not fork: threading.Thread(target=loop).start()
    end = time.monotonic() + seconds; n = 0
    while n < rounds and time.monotonic() < end: attempt(); n += 1
    stop.append(1); print(n, results.get(0, 0))
    if fork: os.kill(child, signal.SIGKILL); os.waitpid(child, 0)
def connect(s, size=16): count(libc.connect(s.fileno(), buffer, size))
"""

RACES = {
    "port in the address": """
def flip(): ctypes.memmove(buffer, evil, 16); ctypes.memmove(buffer, good, 16)
def attempt():
    s = socket.socket(); connect(s); s.close()
race(flip, attempt)""",
    "port, non-blocking": """
def flip(): ctypes.memmove(buffer, evil, 16); ctypes.memmove(buffer, good, 16)
def attempt():
    s = socket.socket(); s.setblocking(False); connect(s); connect(s); s.close()
race(flip, attempt)""",
    "family: Unix path against internet address": """
unix = struct.pack("=H", 1) + b"/tmp/none\\0".ljust(14, b"\\0")
def flip(): ctypes.memmove(buffer, evil, 16); ctypes.memmove(buffer, unix, 16); ctypes.memmove(buffer, good, 16)
def attempt():
    s = socket.socket(); u = socket.socket(socket.AF_UNIX); connect(s); connect(u); s.close(); u.close()
race(flip, attempt)""",
    "AF_UNSPEC and back on a socket that was handed in": """
h = socket.socket(); h.connect(("127.0.0.1", granted)); spare = os.dup(h.fileno())
def flip():
    ctypes.memmove(buffer, bytes(16), 16); ctypes.memmove(buffer, evil, 16); ctypes.memmove(buffer, good, 16)
def attempt():
    connect(h); u = socket.socket(); u.setblocking(False); connect(u); u.close()
race(flip, attempt)""",
    "descriptor: dup2 over it": """
fd = os.open("/dev/null", os.O_RDONLY); own = socket.create_server(("127.0.0.1", 0)); held = socket.socket()
unix = socket.socket(socket.AF_UNIX); fresh = []
def flip():
    s = socket.socket(); os.dup2(s.fileno(), fd); os.dup2(unix.fileno(), fd)
    try: os.dup2(held.fileno(), fd)
    except OSError: pass  # attempt() has just closed it
    s.close()
def attempt():
    global held
    count(libc.connect(fd, buffer, 16)); ctypes.memmove(buffer, evil if len(fresh) % 2 else good, 16); fresh.append(1)
    if len(fresh) % 50 == 0: held.close(); held = socket.socket()
race(flip, attempt, fork=False)""",
    "descriptor: closed and opened again": """
box = [socket.socket()]
def flip():
    time.sleep(0.0005); old = box[0]; number = old.fileno(); old.close(); box[0] = socket.socket()
def attempt():
    try: number = box[0].fileno()
    except IndexError: return
    if number >= 0: count(libc.connect(number, buffer, 16))
race(flip, attempt, fork=False)""",
}


@pytest.fixture
def seconds(request):
    return 300 if request.config.getoption("--long") else 3


@pytest.mark.parametrize("race", RACES)
def test_no_race_reaches_what_is_not_granted(race, seconds):
    with Echo() as server, Echo() as bait:
        rules = [("127.0.0.1", server.port)]
        ended = World(rules).run(HEAD + RACES[race], server.port, bait.port, ROUNDS, seconds, timeout=seconds + 60)
        assert ended.status == 0, ended.output
        assert bait.count == 0
        rounds, connected = map(int, ended.output.split())
        assert rounds > 100
        assert connected
        assert {one.port for one in ended.connections} == {server.port}


def test_a_race_in_the_hosts_own_network_reaches_nothing_either(seconds):
    """Tier reduced: the sockets are the host's, so only the broker's copy stands between."""
    with Echo() as server, Echo() as bait:
        rules = [("127.0.0.1", server.port)]
        code = HEAD + RACES["port in the address"]
        ended = World(rules, tier="reduced").run(code, server.port, bait.port, ROUNDS, seconds, timeout=seconds + 60)
        assert ended.status == 0, ended.output
        assert bait.count == 0
        assert server.count
        assert f"127.0.0.1:{bait.port}" in ended.subjects()  # the race was one


def test_signals_at_a_high_rate_never_show_an_error_of_the_kernel_alone():
    """ERESTARTSYS (512) must not reach the program, whichever thread takes the signal."""
    code = """
import ctypes, os, signal, socket, struct, sys, threading, time
granted = int(sys.argv[1]); libc = ctypes.CDLL(None, use_errno=True); seen = {}; stop = []
signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
raw = struct.pack("=H", 2) + struct.pack("!H", granted) + socket.inet_aton("127.0.0.1") + bytes(8)
def loop():
    while not stop:
        s = socket.socket(); e = 0 if libc.connect(s.fileno(), raw, 16) == 0 else ctypes.get_errno()
        seen[e] = seen.get(e, 0) + 1; s.close()
threads = [threading.Thread(target=loop) for _ in range(3)]
for t in threads: t.start()
time.sleep(3); stop.append(1)
for t in threads: t.join()
signal.setitimer(signal.ITIMER_REAL, 0); print(sorted(seen))"""
    with Echo() as server:
        ended = World([("127.0.0.1", server.port)]).run(code, server.port)
    assert ended.output in {"[0]\n", "[0, 4]\n"}
