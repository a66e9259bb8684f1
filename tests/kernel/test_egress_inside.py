"""The sandbox's own side: its loopback, its datagrams, its Unix sockets; and the host's, which stay out of reach."""

from __future__ import annotations

import errno
import os
import socket
import tempfile

import pytest

from egress_world import Echo, World

HEAD = "import errno, os, select, socket, struct, sys, threading\n"

OWN_SERVER = (
    HEAD
    + """
family, host = (socket.AF_INET6, "::1") if sys.argv[1] == "6" else (socket.AF_INET, "127.0.0.1")
server = socket.create_server((host, 0), family=family); port = server.getsockname()[1]
def serve():
    while True:
        peer, _ = server.accept(); peer.sendall(peer.recv(9)); peer.close()
threading.Thread(target=serve, daemon=True).start()
for client in ("blocking", "timeout", "non-blocking"):
    s = socket.socket(family); s.settimeout({"blocking": None, "timeout": 5, "non-blocking": 0}[client])
    if client == "non-blocking":
        assert s.connect_ex((host, port)) in (0, errno.EINPROGRESS); select.select([], [s], [], 5); s.setblocking(True)
    else: s.connect((host, port))
    s.sendall(b"hello"); assert s.recv(9) == b"hello"
print("ok")"""
)


@pytest.mark.parametrize("version", ["4", "6"])
def test_a_server_of_the_programs_own_needs_no_rule(version):
    ended = World().run(OWN_SERVER, version)
    assert (ended.status, ended.output, ended.denials, ended.connections) == (0, "ok\n", (), ())


REFUSED = (
    HEAD
    + """
s = socket.socket(); s.setblocking(sys.argv[1] == "blocking")
error = s.connect_ex(("127.0.0.1", int(sys.argv[2])))
if error == errno.EINPROGRESS: select.select([], [s], [], 5); error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
print(error)"""
)


@pytest.mark.parametrize("client", ["blocking", "non-blocking"])
def test_the_hosts_loopback_is_another_one_and_a_connect_meant_for_it_is_shown(client):
    with Echo() as bait:
        ended = World().run(REFUSED, client, bait.port)
        assert bait.count == 0
    assert ended.output == f"{errno.ECONNREFUSED}\n"
    assert ended.subjects() == [f"127.0.0.1:{bait.port}"]
    assert ended.denials[0].entry == f"- {{host: 127.0.0.1, port: {bait.port}, protocol: tcp}}"


def test_a_rule_for_localhost_means_the_host_and_the_other_ports_the_sandbox():
    with Echo() as server:
        code = (
            HEAD
            + """
own = socket.create_server(("127.0.0.1", 0)); granted = int(sys.argv[1])
s = socket.create_connection(("localhost", granted)); s.sendall(b"x"); print(s.recv(1))
t = socket.create_connection(("localhost", own.getsockname()[1])); print(t.getpeername() == own.getsockname())"""
        )
        ended = World([("localhost", server.port)]).run(code, server.port)
        assert ended.output == "b'x'\nTrue\n"
        assert server.count == 1


def test_zero_means_the_loopback():
    code = (
        HEAD
        + """
own = socket.create_server(("0.0.0.0", 0))
s = socket.create_connection(("0.0.0.0", own.getsockname()[1])); print(s.getpeername()[0])"""
    )
    assert World().run(code).output == "127.0.0.1\n"


def test_datagrams_stay_inside():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bait:
        bait.bind(("127.0.0.1", 0))
        bait.settimeout(0.2)
        code = (
            HEAD
            + """
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(1); port = int(sys.argv[1])
for how in ("sendto", "connect"):
    try:
        if how == "sendto": u.sendto(b"x", ("127.0.0.1", port))
        else: u.connect(("127.0.0.1", port)); u.send(b"x")
        u.recv(1); print("answered")
    except OSError: print("no answer")
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); own.bind(("127.0.0.1", 0))
v = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); v.connect(own.getsockname()); v.send(b"hi"); print(own.recv(9))"""
        )
        ended = World([("127.0.0.1", bait.getsockname()[1])]).run(code, bait.getsockname()[1])
        assert ended.output == "no answer\nno answer\nb'hi'\n"
        with pytest.raises(TimeoutError):
            bait.recv(1)


def test_own_unix_sockets_by_path_and_by_abstract_name():
    code = (
        HEAD
        + """
os.mkdir("/tmp/d"); os.chdir("/tmp/d")
def listen(name):
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen(); return s
absolute, abstract = listen("/tmp/s"), listen("\\0mine")
os.symlink("/tmp/s", "/tmp/d/link"); os.symlink("../s", "/tmp/d/up")
for name in ("/tmp/s", "\\0mine", "../s", "link", "up", "/tmp/../tmp/./s", "//tmp//s"):
    for blocking in (True, False):
        c = socket.socket(socket.AF_UNIX); c.setblocking(blocking); c.connect(name)
        server = abstract if name[0] == "\\0" else absolute
        p, _ = server.accept(); c.send(b"x"); assert p.recv(1) == b"x"
for name, expected in (("/tmp/none", 2), ("/tmp/d", 111), ("\\0none", 111), ("", 22), ("/tmp/s/x", 20)):
    try: socket.socket(socket.AF_UNIX).connect(name); print("connected", name)
    except OSError as error: assert error.errno == expected, (name, error)
a, b = socket.socketpair(); a.send(b"x"); print(b.recv(1))"""
    )
    ended = World().run(code)
    assert (ended.output, ended.denials) == ("b'x'\n", ())


def test_a_unix_socket_that_never_accepts_keeps_nobody_waiting():
    with Echo() as server:
        code = (
            HEAD
            + """
s = socket.socket(socket.AF_UNIX); s.bind("/tmp/full"); s.listen(0)
n = 0
for _ in range(4):
    c = socket.socket(socket.AF_UNIX); c.setblocking(False); n += c.connect_ex("/tmp/full") == errno.EAGAIN
print(n > 0)
def wait(): socket.socket(socket.AF_UNIX).connect("/tmp/full")
for _ in range(60): threading.Thread(target=wait, daemon=True).start()
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5); c.sendall(b"x")
print(c.recv(1), flush=True); os._exit(0)"""
        )
        assert World([("127.0.0.1", server.port)]).run(code, server.port).output == "True\nb'x'\n"


@pytest.fixture
def host_socket():
    """A Unix socket of the host, in a directory that the sandbox sees, too."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, socket.socket(socket.AF_UNIX) as server:
        os.chmod(folder, 0o755)
        server.bind(f"{folder}/host.sock")
        os.chmod(f"{folder}/host.sock", 0o777)
        server.listen(8)
        server.setblocking(False)
        yield f"{folder}/host.sock"
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("way", ["{path}", "/tmp/link", "/proc/self/root{path}", "link", "../..{path}"])
def test_a_unix_socket_of_the_host_is_refused_on_every_way_to_it(host_socket, way):
    code = (
        HEAD
        + """
os.symlink(sys.argv[2], "/tmp/link"); os.mkdir("/tmp/d"); os.chdir("/tmp/d"); os.symlink("../link", "link")
try: socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print("connected")
except OSError as error: print(error.errno)"""
    )
    ended = World().run(code, way.format(path=host_socket), host_socket)
    assert ended.output in {"13\n", "40\n"}  # ELOOP: magic links of /proc are never followed
    if ended.output == "13\n":
        assert ended.denials[0].action == "connect"
        assert "resources.sockets" in ended.denials[0].clause


def test_a_path_means_the_sandboxs_file_and_not_the_brokers():
    """The hole: a connect on a duplicated descriptor resolves the path under the broker's root."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/s")
        server.listen(8)
        server.setblocking(False)
        code = (
            HEAD
            + """
try: socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print("connected")
except OSError as error: print(error.errno)
os.mkdir(os.path.dirname(sys.argv[1])); s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print("own")"""
        )
        assert World().run(code, f"{folder}/s").output == "2\nown\n"
        with pytest.raises(BlockingIOError):
            server.accept()


def test_an_abstract_socket_of_the_host_is_out_of_reach():
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0reach-test-{os.getpid()}")
        server.listen(8)
        server.setblocking(False)
        code = (
            HEAD
            + """
try: socket.socket(socket.AF_UNIX).connect("\\0" + sys.argv[1]); print("connected")
except OSError as error: print(error.errno)"""
        )
        assert World().run(code, f"reach-test-{os.getpid()}").output == "111\n"
        reduced = World(tier="reduced").run(code, f"reach-test-{os.getpid()}")
        assert reduced.output == "13\n"
        assert reduced.subjects() == [f"@reach-test-{os.getpid()}"]
        with pytest.raises(BlockingIOError):
            server.accept()


def test_reduced_refuses_what_would_be_the_hosts_loopback():
    with Echo() as server, Echo() as bait:
        code = (
            HEAD
            + """
def attempt(call):
    try: call(); return "ok"
    except OSError as error: return str(error.errno)
granted, bait = int(sys.argv[1]), int(sys.argv[2])
print(attempt(lambda: socket.create_connection(("127.0.0.1", granted), timeout=5)))
print(attempt(lambda: socket.create_connection(("127.0.0.1", bait), timeout=5)))
print(attempt(lambda: socket.create_server(("127.0.0.1", 0))))
n = socket.socket(); n.setblocking(False)
print(n.connect_ex(("127.0.0.1", granted)), n.connect_ex(("127.0.0.1", granted)) in (0, 106, 114))"""
        )
        ended = World([("127.0.0.1", server.port)], tier="reduced").run(code, server.port, bait.port)
        assert bait.count == 0
    assert ended.output == "ok\n13\n1\n115 True\n"
    assert ended.subjects() == [f"127.0.0.1:{bait.port}", "listen"]
