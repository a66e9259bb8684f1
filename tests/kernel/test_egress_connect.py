"""TCP through the broker: what a rule grants works as it does natively, and nothing else gets out."""

from __future__ import annotations

import os
import signal
import socket
import time

import pytest

from egress_world import Echo, World

CLIENTS = {
    "blocking": "s = socket.socket(); s.connect((host, port))",
    "timeout": "s = socket.create_connection((host, port), timeout=5)",
    "non-blocking": """
s = socket.socket(); s.setblocking(False)
error = s.connect_ex((host, port)); assert error in (0, errno.EINPROGRESS), error
assert select.select([], [s], [], 5)[1]; assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
s.setblocking(True)""",
    "non-blocking, second connect": """
s = socket.socket(); s.setblocking(False); s.connect_ex((host, port)); select.select([], [s], [], 5)
assert s.connect_ex((host, port)) == 0; assert s.connect_ex((host, port)) == errno.EISCONN
s.setblocking(True)""",
    "epoll before connect": """
s = socket.socket(); s.setblocking(False); e = select.epoll(); e.register(s, select.EPOLLOUT | select.EPOLLIN)
s.connect_ex((host, port))
while not any(mask & select.EPOLLOUT for _, mask in e.poll(5)): pass
e.modify(s, select.EPOLLIN); s.send(b"?"); assert e.poll(5); s.recv(1); e.unregister(s); s.setblocking(True)""",
    "poll and SO_ERROR by a C library's way": """
import ctypes
s = socket.socket(); s.setblocking(False); libc = ctypes.CDLL(None, use_errno=True)
raw = struct.pack("=H", 2) + struct.pack("!H", port) + socket.inet_aton(socket.gethostbyname(host)) + bytes(8)
assert libc.connect(s.fileno(), raw, 16) == -1 and ctypes.get_errno() == errno.EINPROGRESS
p = select.poll(); p.register(s, select.POLLOUT); assert p.poll(5000); s.setblocking(True)""",
}
HEAD = "import errno, select, socket, struct, sys\nhost, port = sys.argv[1], int(sys.argv[2])\n"
ECHO = (
    "\ns.settimeout(10); s.sendall(b'x' * 100000); got = 0\nwhile got < 100000: got += len(s.recv(65536))\nprint('ok')"
)


@pytest.fixture
def echo():
    with Echo() as server:
        yield server


@pytest.fixture
def bait():
    with Echo() as server:
        yield server
        assert server.count == 0, "a connection reached a server that no rule grants"


def world(server, **options):
    return World(
        [("db.example.com", server.port), ("127.0.0.1", server.port)], {"db.example.com": ["127.0.0.1"]}, **options
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "db.example.com"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_granted_connection_works_in_every_style(echo, client, host):
    ended = world(echo).run(HEAD + CLIENTS[client] + ECHO, host, echo.port)
    assert (ended.status, ended.output) == (0, "ok\n")
    assert ended.denials == ()
    assert [(one.host, one.address, one.port) for one in ended.connections] == [(host, "127.0.0.1", echo.port)]


def test_asyncio_opens_a_hundred_connections_at_once(echo):
    code = """
import asyncio, sys
async def one():
    r, w = await asyncio.open_connection(sys.argv[1], int(sys.argv[2]))
    w.write(b"hello"); assert await r.readexactly(5) == b"hello"; w.close()
async def main(): await asyncio.gather(*(one() for _ in range(100)))
asyncio.run(main()); print("ok")"""
    ended = world(echo).run(code, "db.example.com", echo.port)
    assert (ended.status, ended.output) == (0, "ok\n")
    assert echo.count == 100
    assert ended.connections[0].count == 100


REFUSED = (
    HEAD
    + """
try: socket.create_connection((host, port), timeout=5); print("connected")
except OSError as error: print(type(error).__name__, error.errno)"""
)


@pytest.mark.parametrize("host", ["db.example.com", "evil.example.com", "10.1.2.3", "8.8.8.8", "169.254.169.254"])
def test_what_no_rule_grants_is_eacces_and_is_taken_down(echo, bait, host):
    ended = world(echo).run(REFUSED, host, bait.port)
    assert ended.output == "PermissionError 13\n"
    assert ended.subjects() == [f"{host}:{bait.port}"]
    assert ended.connections == ()


def test_a_name_that_turns_to_a_metadata_service_is_refused(echo):
    ended = World([("db.example.com", 80)], {"db.example.com": ["169.254.169.254"]}).run(REFUSED, "db.example.com", 80)
    assert ended.output == "PermissionError 13\n"
    assert "metadata" in ended.denials[0].clause


def test_a_name_that_turns_to_the_loopback_is_refused_without_an_address_rule(bait):
    ended = World([("db.example.com", bait.port)], {"db.example.com": ["127.0.0.1"]}).run(
        REFUSED, "db.example.com", bait.port
    )
    assert ended.output == "PermissionError 13\n"
    assert ended.denials[0].entry == f"- {{host: 127.0.0.1, port: {bait.port}, protocol: tcp}}"


def test_the_second_address_of_a_name_is_tried_by_the_program(echo):
    hosts = {"db.example.com": ["127.0.0.3", "127.0.0.1"]}
    rules = [("db.example.com", echo.port), ("127.0.0.1", echo.port), ("127.0.0.3", echo.port)]
    ended = World(rules, hosts).run(HEAD + CLIENTS["timeout"] + ECHO, "db.example.com", echo.port)
    assert ended.output == "ok\n"
    assert sorted(one.address for one in ended.connections) in (["127.0.0.1", "127.0.0.3"], ["127.0.0.1"])


@pytest.mark.parametrize("host", ["::1", "localhost"])
def test_the_ipv6_loopback_of_the_host(host):
    try:
        server = Echo("::1")
    except OSError:
        pytest.skip("no IPv6 on this host's loopback")
    with server:
        code = HEAD + "s = socket.create_connection((host, port), timeout=5)" + ECHO
        ended = World([("localhost", server.port)]).run(code, host, server.port)
    assert (ended.status, ended.output) == (0, "ok\n")


def test_an_ipv4_address_written_as_ipv6(echo):
    code = HEAD + "s = socket.socket(socket.AF_INET6); s.connect((host, port))" + ECHO
    assert world(echo).run(code, "::ffff:127.0.0.1", echo.port).output == "ok\n"


def test_flags_and_options_of_the_descriptor_are_kept(echo):
    code = (
        HEAD
        + """
import fcntl, os
for blocking in (True, False):
    for inheritable in (True, False):
        s = socket.socket(); s.setblocking(blocking); s.set_inheritable(inheritable)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 77)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("qq", 3, 500000))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 30000)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 4))
        number = s.fileno(); s.connect_ex((host, port)); assert s.fileno() == number
        assert os.get_blocking(number) is blocking and os.get_inheritable(number) is inheritable
        assert s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert s.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 77
        assert struct.unpack("qq", s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16)) == (3, 500000)
        assert s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 60000
        assert struct.unpack("ii", s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)) == (1, 4)
print("ok")"""
    )
    assert world(echo).run(code, "127.0.0.1", echo.port).output == "ok\n"


def test_a_local_port_that_the_program_chose_is_kept_and_an_automatic_one_is_not():
    with Echo(accepting=False) as server:
        code = (
            HEAD
            + """
for local in (20123, 0):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", local))
    s.connect((host, port))
    print(s.getsockname()[1] == local); s.close()"""
        )
        assert world(server).run(code, "127.0.0.1", server.port).output == "True\nFalse\n"


def test_a_socket_that_failed_may_connect_again(echo):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = closed.getsockname()[1]
        code = (
            HEAD
            + """
s = socket.socket()
print(s.connect_ex((host, int(sys.argv[3])))); print(s.connect_ex((host, 9))); s.connect((host, port))"""
            + ECHO
        )
        rules = [("127.0.0.1", echo.port), ("127.0.0.1", dead)]
        ended = World(rules).run(code, "127.0.0.1", echo.port, dead)
    assert ended.output == "111\n111\nok\n"  # nobody listens; the sandbox's own loopback, where nobody listens either


def test_a_connected_socket_can_be_neither_dissolved_nor_turned_into_a_server(echo, bait):
    code = (
        HEAD
        + """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args): return 0 if getattr(libc, name)(*args) == 0 else ctypes.get_errno()
s = socket.socket(); s.connect((host, port)); bait = int(sys.argv[3])
to = struct.pack("=H", 2) + struct.pack("!H", bait) + socket.inet_aton("127.0.0.1") + bytes(8)
print(call("connect", s.fileno(), bytes(16), 16), call("connect", s.fileno(), to, 16), call("listen", s.fileno(), 1))
n = socket.socket(); n.setblocking(False); n.connect_ex((host, port)); n.shutdown(2)
print(call("connect", n.fileno(), bytes(16), 16), call("listen", n.fileno(), 1), call("connect", n.fileno(), to, 16))
try: n.sendto(b"x", 0x20000000, ("127.0.0.1", bait)); print("sent")
except OSError as error: print(error.errno)"""
    )
    ended = world(echo).run(code, "127.0.0.1", echo.port, bait.port)
    first, second, third = ended.output.splitlines()
    assert first == "1 106 1"
    assert second.split()[:2] == ["1", "1"]
    assert second.split()[2] in {"106", "99", "13"}
    assert third == "95"


MALFORMED = (
    HEAD
    + """
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True); libc.connect.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
def call(fd, pointer, size): return 0 if libc.connect(fd, pointer, size) == 0 else ctypes.get_errno()
good = struct.pack("=H", 2) + struct.pack("!H", port) + socket.inet_aton(host) + bytes(4200)
buffer = ctypes.create_string_buffer(good); at = ctypes.addressof(buffer); s = socket.socket(); fd = s.fileno()
print([call(fd, at, size) for size in (0, 1, 2, 15, 129, 4096, -1, -2**31)])
print(call(fd, None, 16), call(fd, 8, 16), call(fd, 2**64 - 8, 16), call(fd, 2**63, 16))
page = mmap.mmap(-1, 8192); start = ctypes.addressof(ctypes.c_char.from_buffer(page)); page[4088:4096] = good[:8]
libc.mprotect(ctypes.c_void_p(start + 4096), 4096, 0); print(call(fd, start + 4088, 16))
print(call(999, at, 16), call(-1, at, 16), call(os.open("/dev/null", 0), at, 16), call(os.open("/", os.O_PATH), at, 16))
for family in (1, 16, 17, 40, 45, 65535):
    buffer[0:2] = struct.pack("=H", family); print(call(fd, at, 16), end=" ")
six = socket.socket(socket.AF_INET6); buffer[0:2] = struct.pack("=H", 2); unix = socket.socket(1)
print(call(six.fileno(), at, 16), call(unix.fileno(), at, 16))
skewed = ctypes.create_string_buffer(b"." + good); print(call(fd, ctypes.addressof(skewed) + 1, 16))"""
)


def test_malformed_addresses_get_the_kernels_own_errors_and_the_good_one_still_connects(echo):
    ended = world(echo).run(MALFORMED, "127.0.0.1", echo.port)
    assert ended.output.splitlines() == [
        "[22, 22, 22, 22, 22, 22, 22, 22]",
        "14 14 14 14",
        "14",
        "9 9 88 9",
        "97 97 97 97 97 97 97 22",
        "0",
    ]


@pytest.fixture
def black_hole():
    """A port of the host's loopback whose connections hang: its backlog is full."""
    with Echo(backlog=0, accepting=False) as server:
        fill = []
        for _ in range(8):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", server.port))
            fill.append(one)
        time.sleep(0.1)
        yield server
        for one in fill:
            one.close()


def test_slow_hosts_do_not_keep_others_waiting(echo, black_hole):
    code = (
        HEAD
        + """
import threading
hole = int(sys.argv[3])
def wait():
    try: socket.socket().connect((host, hole))
    except OSError: pass
for _ in range(100): threading.Thread(target=wait, daemon=True).start()
for _ in range(20):
    s = socket.socket(); s.settimeout(5); s.connect((host, port)); s.sendall(b"x"); assert s.recv(1) == b"x"
print("ok", flush=True)
import os; os._exit(0)"""
    )
    rules = [("127.0.0.1", echo.port), ("127.0.0.1", black_hole.port)]
    assert World(rules).run(code, "127.0.0.1", echo.port, black_hole.port).output == "ok\n"


def test_a_send_timeout_bounds_a_blocking_connect(black_hole):
    code = (
        HEAD
        + """
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("qq", 0, 300000))
print(s.connect_ex((host, port)))"""
    )
    assert world(black_hole).run(code, "127.0.0.1", black_hole.port).output == "115\n"


@pytest.mark.parametrize("thread", [False, True])
def test_a_signal_gets_through_to_a_connect_that_hangs(black_hole, thread):
    code = (
        HEAD
        + """
import signal, threading, time, os
def late(): time.sleep(0.5); os.kill(os.getpid(), signal.SIGINT)
if int(sys.argv[3]): threading.Thread(target=late, daemon=True).start()
else:
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.5)
try: socket.socket().connect((host, port)); print("connected")
except KeyboardInterrupt: print("interrupted", flush=True)
os._exit(0)"""
    )
    assert world(black_hole).run(code, "127.0.0.1", black_hole.port, int(thread)).output == "interrupted\n"


def test_a_handler_that_returns_lets_the_connect_go_on(black_hole):
    code = (
        HEAD
        + """
import ctypes, os, signal, time
ran = []
signal.signal(signal.SIGALRM, lambda *_: ran.append(1)); signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
s = socket.socket(); s.settimeout(2)
try: s.connect((host, port)); print("connected")
except TimeoutError: print("timeout", len(ran) >= 3)
libc = ctypes.CDLL(None, use_errno=True)
raw = struct.pack("=H", 2) + struct.pack("!H", port) + socket.inet_aton(host) + bytes(8)
def connect(timeout):
    b = socket.socket(); b.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("qq", timeout, 0))
    libc.connect(b.fileno(), raw, 16); return ctypes.get_errno()
print(connect(0), connect(9))  # EINTR both times: the handler was installed without SA_RESTART
signal.setitimer(signal.ITIMER_REAL, 0); signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
print(connect(9), flush=True)  # a limit: EINTR in spite of SA_RESTART, signal(7)
child = os.fork()
if child == 0: signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2); connect(0); os._exit(1)  # no limit: goes on for ever
time.sleep(1.2); print(os.waitpid(child, os.WNOHANG)[0], flush=True); os.kill(child, 9)"""
    )
    ended = world(black_hole).run(code, "127.0.0.1", black_hole.port)
    assert ended.output == "timeout True\n4 4\n4\n0\n"


def test_a_killed_caller_leaves_nothing_behind(echo, black_hole):
    code = (
        HEAD
        + """
import os, signal, time
hole = int(sys.argv[3])
for _ in range(5):
    pid = os.fork()
    if pid == 0: socket.socket().connect((host, hole)); os._exit(0)
    time.sleep(0.1); os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
s = socket.create_connection((host, port), timeout=5); s.sendall(b"x"); print(s.recv(1))"""
    )
    before = len(os.listdir("/proc/self/fd"))
    rules = [("127.0.0.1", echo.port), ("127.0.0.1", black_hole.port)]
    assert World(rules).run(code, "127.0.0.1", echo.port, black_hole.port).output == "b'x'\n"
    time.sleep(0.2)
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_without_its_broker_a_connect_fails_and_open_connections_go_on(echo):
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    code = (
        HEAD
        + """
import os, time
s = socket.create_connection((host, port)); os.write(int(sys.argv[3]), b"%d " % os.getpid())
while os.getppid() == int(sys.argv[4]): time.sleep(0.01)
try: socket.create_connection((host, port), timeout=5); result = "connected"
except OSError as error: result = str(error.errno)
s.sendall(b"x"); os.write(int(sys.argv[3]), (result + " " + s.recv(1).decode()).encode())"""
    )
    broker = os.fork()
    if broker == 0:
        world(echo).run(code, "127.0.0.1", echo.port, writer, os.getpid())
        os._exit(0)
    os.close(writer)
    program = int(os.read(reader, 100))
    try:
        os.kill(broker, signal.SIGKILL)
        os.waitpid(broker, 0)
        assert os.read(reader, 100) == b"38 x"
    finally:
        os.close(reader)
        end_within(program, 10)


def end_within(pid, seconds):
    """Wait until a process that is not ours has ended."""
    deadline = time.monotonic() + seconds
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < deadline, "the program still runs"
        time.sleep(0.05)


def test_random_addresses_on_all_kinds_of_sockets_reach_nothing_and_break_nothing(echo, bait):
    code = (
        HEAD
        + """
import ctypes, os, random
libc = ctypes.CDLL(None, use_errno=True); random.seed(7); bait = int(sys.argv[3])
def inet(family, to):
    tail = socket.inet_aton("127.0.0.1") if family == 2 else bytes(4) + socket.inet_pton(10, "::ffff:127.0.0.1")
    return struct.pack("=H", family) + struct.pack("!H", to) + tail + bytes(8)
seeds = [inet(2, bait), inet(10, bait), struct.pack("=H", 1) + b"/tmp/x", struct.pack("=H", 1) + b"\\0reach",
    struct.pack("=H", 1) + b"\\0y", bytes(16), struct.pack("=HHII", 16, 0, 0, 0)]
kinds = [(2, 1), (10, 1), (2, 2), (10, 2), (1, 1), (1, 5), (16, 3)]
sockets = [socket.socket(*kind) for kind in kinds]
for s in sockets: s.setblocking(False)
for number in range(4000):
    raw = bytearray(random.choice(seeds) + bytes(random.randrange(3)))
    for _ in range(random.randrange(3)): raw[random.randrange(len(raw))] = random.randrange(256)
    index = random.randrange(len(sockets)); size = random.choice((len(raw), len(raw), random.randrange(130)))
    libc.connect(sockets[index].fileno(), bytes(raw) + bytes(128), size)
    if number % 20 == 0:
        index = random.randrange(len(sockets)); sockets[index].close()
        sockets[index] = socket.socket(*kinds[index]); sockets[index].setblocking(False)
s = socket.create_connection((host, port), timeout=5); s.sendall(b"x"); print(s.recv(1))"""
    )
    ended = world(echo).run(code, "127.0.0.1", echo.port, bait.port, timeout=60)
    assert ended.output == "b'x'\n"
    assert "broker" not in ended.subjects()  # no fault in reach
