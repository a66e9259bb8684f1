"""Racing connects under `reach run`: what was checked is what is connected to, whatever runs beside it.

The judge stands outside: a listener at the forbidden port that must not hear anybody. `./dev escape` runs the
full 20,000 rounds of each race.
"""

from __future__ import annotations

import pytest

from egress_world import Echo

SHORT, FULL = 2_000, 20_000

# Flipping is done by another process that shares the page, on the other processor: no interpreter lock makes
# it wait. Every round is a connect of a fresh socket with an address that is being rewritten meanwhile.
HEAD = """
import ctypes, mmap, os, signal, socket, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
granted, bait, rounds = map(int, sys.argv[1:4])
def inet(port): return struct.pack("=H", 2) + struct.pack("!H", port) + socket.inet_aton("127.0.0.1") + bytes(8)
good, evil = inet(granted), inet(bait)
page = mmap.mmap(-1, 4096); page[:16] = good
where = ctypes.addressof(ctypes.c_char.from_buffer(page))
results = {}
def connect(fd, size=16):
    ctypes.set_errno(0)
    error = 0 if libc.connect(fd, ctypes.c_void_p(where), size) == 0 else ctypes.get_errno()
    results[error] = results.get(error, 0) + 1
def flipping(*values):
    pid = os.fork()
    while pid == 0:
        for value in values: page[:len(value)] = value
    return pid
def done(pid=0):
    if pid: os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
    print(sum(results.values()), results.get(0, 0))
"""

RACES = {
    "the port is rewritten": """
pid = flipping(evil, good)
for _ in range(rounds):
    s = socket.socket(); connect(s.fileno()); s.close()
done(pid)""",
    "the family is rewritten": """
unspecified = bytes(2) + evil[2:]; unix = b"\\1\\0" + b"/tmp/nobody\\0\\0\\0"
pid = flipping(evil, unspecified, unix, good)
for _ in range(rounds):
    s = socket.socket(); connect(s.fileno()); s.close()
done(pid)""",
    "the descriptor is exchanged": """
sys.setswitchinterval(1e-6)
held = os.open("/dev/null", os.O_RDONLY); stop = []
def exchange():
    null = os.open("/dev/null", os.O_RDONLY); u = socket.socket(socket.AF_UNIX)
    while not stop:
        s = socket.socket(); os.dup2(s.fileno(), held); os.dup2(u.fileno(), held); os.dup2(null, held); s.close()
t = threading.Thread(target=exchange); t.start(); pid = flipping(evil, good)
for _ in range(rounds): connect(held)
stop.append(1); t.join()
for _ in range(3):  # it goes on as ever
    s = socket.socket(); page[:16] = good; connect(s.fileno()); s.close()
done(pid)""",
    "several threads share a socket": """
box = [socket.socket()]
def run(n):
    for i in range(n):
        try: connect(box[0].fileno())
        except (IndexError, OSError): pass
        if i % 8 == 0:
            old = box[0]; box[0] = socket.socket(); old.close()
pid = flipping(evil, good)
threads = [threading.Thread(target=run, args=(rounds // 4,)) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
done(pid)""",
}


@pytest.mark.parametrize("race", RACES)
def test_no_racing_connect_reaches_a_forbidden_port(caller, race, long):
    judge(caller, race, FULL if long else SHORT)


def test_no_racing_connect_reaches_a_forbidden_port_of_the_hosts_own_network(confined, long):
    """Tier reduced: there is no network namespace behind the broker."""
    judge(confined, "the port is rewritten", FULL if long else SHORT)


def judge(caller, race, rounds):
    """Run a race and ask the listeners outside."""
    with Echo() as server, Echo() as bait:
        ended = caller.run(
            HEAD + RACES[race],
            options=["-q", "--net", f"127.0.0.1:{server.port}"],
            args=[server.port, bait.port, rounds],
            timeout=60 + rounds // 50,
        )
        assert bait.count == 0
        assert ended.status == 0, ended
        tried, connected = map(int, ended.out.split())
        assert tried >= rounds - 4
        assert connected  # the granted port was reached meanwhile
        assert server.count
        assert {one["port"] for one in ended.result["connections"]} == {server.port}
