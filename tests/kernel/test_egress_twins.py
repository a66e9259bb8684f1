"""Without pidfd_getfd, as in a plain container: the broker makes the sockets and keeps their twins."""

from __future__ import annotations

import errno
import os

import pytest

from agent_reach.linux import pidfd
from egress_world import Echo, World

HEAD = "import errno, os, select, socket, struct, sys\nport, bait = int(sys.argv[1]), int(sys.argv[2])\n"


@pytest.fixture
def no_getfd(monkeypatch):
    def refused(*_arguments):
        raise OSError(errno.EPERM, "pidfd_getfd")

    monkeypatch.setattr(pidfd, "get_fd", refused)


@pytest.fixture
def run(no_getfd):
    def run(code, **options):
        with Echo() as server, Echo() as bait:
            rules = [("127.0.0.1", server.port), ("db.example.com", server.port)]
            hosts = {"db.example.com": ["127.0.0.1"]}
            world = World(rules, hosts, tier="reduced", notify_socket=True, **options)
            ended = world.run(HEAD + code, server.port, bait.port)
            assert bait.count == 0
            ended.bait = f"127.0.0.1:{bait.port}"
            return ended

    return run


def test_granted_connections_work_and_others_are_refused(run):
    ended = run("""
for blocking in (None, 5, 0):
    s = socket.socket(); s.settimeout(blocking)
    if blocking == 0:
        s.connect_ex(("127.0.0.1", port)); select.select([], [s], [], 5)
        assert s.connect_ex(("127.0.0.1", port)) in (0, errno.EISCONN)
        s.setblocking(True)
    else: s.connect(("127.0.0.1", port))
    s.sendall(b"x"); print(s.recv(1), s.getpeername()[1] == port)
try: socket.create_connection(("127.0.0.1", bait), timeout=5)
except PermissionError as error: print(error.errno)
t = socket.socket(); print(*(t.connect_ex(("127.0.0.1", to)) for to in (bait, port, port)))
libc = __import__("ctypes").CDLL(None, use_errno=True); print(libc.listen(t.fileno(), 1))
n = socket.socket(type=socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
print(os.get_inheritable(n.fileno()), os.get_blocking(n.fileno()))""")
    assert ended.output == "b'x' True\n" * 3 + "13\n13 0 106\n-1\nFalse False\n"
    assert ended.bait in ended.subjects()


def test_the_end_of_a_connection_reaches_the_peer(run):
    """A twin that stayed open would keep the connection alive behind the program's back."""
    ended = run("""
for blocking in (True, False):
    s = socket.socket(); s.setblocking(blocking); s.connect_ex(("127.0.0.1", port)); select.select([], [s], [], 5)
    s.setblocking(True); s.sendall(b"x"); s.shutdown(socket.SHUT_WR)
    assert s.recv(9) == b"x"; assert s.recv(9) == b""; s.close()
print("ok")""")
    assert ended.output == "ok\n"


def test_many_sockets_that_never_connect_leave_nothing_behind(run):
    before = len(os.listdir("/proc/self/fd"))
    ended = run("""
for _ in range(2000): socket.socket().close()
s = socket.create_connection(("127.0.0.1", port), timeout=5); s.sendall(b"x"); print(s.recv(1))""")
    assert ended.output == "b'x'\n"
    assert len(os.listdir("/proc/self/fd")) <= before + 4


def test_unix_sockets_are_refused_and_the_channel_is_not(run):
    ended = run("""
u = socket.socket(socket.AF_UNIX); print(*(u.connect_ex(name) for name in ("/nowhere", "/", "\\0other", "\\0reach")))
a, b = socket.socketpair(); a.send(b"x"); print(b.recv(1))""")
    assert ended.output == "2 13 13 0\nb'x'\n"
