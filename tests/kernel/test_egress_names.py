"""Names: what programs inside learn from their resolver, in both tiers, and that no query leaves the host."""

from __future__ import annotations

import pytest

from egress_world import Echo, World

HEAD = "import os, socket, struct, sys\n"
HOSTS = {
    "db.example.com": ["127.0.0.1"],
    "both.example.com": ["127.0.0.1", "::1"],
    "six.example.com": ["::1"],
    "gone.example.com": [],
}
RULES = [(name, 5432) for name in HOSTS]
LOOK_UP = (
    HEAD
    + """
for name in sys.argv[1:]:
    try: print(name, sorted({a[4][0] for a in socket.getaddrinfo(name, 5432)}))
    except OSError as error: print(name, type(error).__name__, error.errno)"""
)
REDUCED = {"PATH": "/usr/bin:/bin", "RES_OPTIONS": "use-vc attempts:1 timeout:3"}


def test_granted_names_get_fake_addresses_as_many_as_they_have_real_ones():
    output = World(RULES, HOSTS).run(LOOK_UP, "db.example.com", "DB.Example.COM", "both.example.com").output
    lines = output.splitlines()
    assert lines[0] == "db.example.com ['198.18.1.0']"
    assert lines[1] == "DB.Example.COM ['198.18.1.0']"
    assert lines[2] == "both.example.com ['198.18.1.4', 'fd19:8000::c612:104']"


def test_a_name_with_ipv6_alone_and_one_that_does_not_exist():
    ended = World(RULES, HOSTS).run(LOOK_UP, "six.example.com", "gone.example.com")
    assert ended.output == "six.example.com ['fd19:8000::c612:100']\ngone.example.com gaierror -2\n"
    assert ended.denials == ()


def test_other_names_lead_to_the_sinkhole_and_the_host_never_hears_of_them():
    asked = []
    world = World(RULES, lambda name: asked.append(name) or [])
    ended = world.run(LOOK_UP, "c2VjcmV0.evil.example", "db.internal.invalid", "printer.local", "a.onion", "localhost")
    assert ended.output.splitlines() == [
        "c2VjcmV0.evil.example ['198.19.1.0']",
        "db.internal.invalid gaierror -2",
        "printer.local gaierror -2",
        "a.onion gaierror -2",
        "localhost ['127.0.0.1', '::1']",
    ]
    assert asked == []
    assert ended.subjects() == ["db.internal.invalid", "printer.local", "a.onion"]
    assert ended.denials[0].action == "resolve"


def test_queries_over_tcp_and_of_other_types():
    code = (
        HEAD
        + """
def query(name, kind):
    labels = b"".join(bytes((len(l),)) + l for l in name.encode().split(b"."))
    message = struct.pack("!6H", 7, 256, 1, 0, 0, 0) + labels + b"\\0" + struct.pack("!2H", kind, 1)
    s = socket.create_connection(("127.0.0.53", 53), timeout=5); s.sendall(struct.pack("!H", len(message)) + message)
    size, = struct.unpack("!H", s.recv(2)); answer = s.recv(size); return answer[3] & 15, answer[7]
for kind in (1, 28, 16): print(*query("db.example.com", kind))
for name, kind in (("evil.example", 16), ("localhost", 1), ("1.0.18.198.in-addr.arpa", 12)):
    print(*query(name, kind))"""
    )
    ended = World(RULES, HOSTS).run(code)
    assert ended.output == "0 1\n0 0\n0 0\n0 0\n0 1\n3 0\n"
    assert ended.denials == ()


def test_garbage_is_survived():
    code = (
        HEAD
        + """
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for size in range(0, 600, 7): u.sendto(os.urandom(size), ("127.0.0.53", 53))
for _ in range(100):
    s = socket.create_connection(("127.0.0.53", 53), timeout=5); s.sendall(os.urandom(50)); s.close()
held = [socket.create_connection(("127.0.0.53", 53), timeout=5) for _ in range(100)]
print(socket.gethostbyname("db.example.com"))"""
    )
    assert World(RULES, HOSTS).run(code).output == "198.18.1.0\n"


@pytest.mark.parametrize("nameserver", ["127.0.0.53", "192.0.2.53"])
def test_reduced_hands_the_resolver_in_when_the_c_library_connects_to_a_nameserver(nameserver, tmp_path):
    """The C library asks over TCP (RES_OPTIONS=use-vc); the connect to port 53 is answered with our own resolver."""
    servers = tuple(nameservers() | {nameserver})
    with Echo() as server:
        rules = [("db.example.com", server.port), ("127.0.0.1", server.port)]
        code = LOOK_UP + "\ns = socket.create_connection(('db.example.com', int(sys.argv[1])), timeout=5)\n"
        code += "s.sendall(b'x'); print(s.recv(1))"
        world = World(rules, HOSTS, tier="reduced", resolv_nameservers=servers)
        ended = world.run(
            code.replace("sys.argv[1:]", "sys.argv[2:]"),
            server.port,
            "db.example.com",
            "a.invalid",
            "evil.example",
            env=REDUCED,
        )
    assert ended.output == ("db.example.com ['198.18.1.0']\na.invalid gaierror -2\nevil.example ['198.19.1.0']\nb'x'\n")
    assert ended.subjects() == ["a.invalid"]


def nameservers():
    with open("/etc/resolv.conf") as file:
        words = [line.split() for line in file]
    return {one[1] for one in words if len(one) > 1 and one[0] == "nameserver"} or {"127.0.0.1"}


def test_reduced_does_not_let_port_53_of_other_hosts_through():
    code = (
        HEAD
        + """
try: socket.create_connection(("192.0.2.77", 53), timeout=5); print("connected")
except OSError as error: print(error.errno)"""
    )
    ended = World(tier="reduced", resolv_nameservers=("192.0.2.53",)).run(code)
    assert (ended.output, ended.subjects()) == ("13\n", ["192.0.2.77:53"])


SPELLINGS = (
    HEAD
    + """
for spelling in sys.argv[2:]:
    try: socket.create_connection((spelling, int(sys.argv[1])), timeout=5); print("connected")
    except OSError as error: print(type(error).__name__)
    except UnicodeError: print("no name")"""
)


def test_every_spelling_of_a_granted_name_is_that_name_and_no_other_is():
    with Echo() as server, Echo() as bait:
        rules = [("allowed.example", server.port), ("127.0.0.1", server.port)]
        world = World(rules, {"allowed.example": ["127.0.0.1"], "evil.example": ["127.0.0.1"]})
        granted = world.run(SPELLINGS, server.port, "allowed.example", "ALLOWED.Example", "allowed.example.")
        assert granted.output == "connected\n" * 3
        others = ("evil.example", "allowed.example.evil.example", "xallowed.example", "user@allowed.example", "a b")
        refused = world.run(SPELLINGS, server.port, *others)
        assert set(refused.output.split()) <= {"PermissionError", "gaierror"}
        assert server.count == 3
        # The other port of the same address, by every way of writing the address: the sandbox's own loopback.
        numbers = ("127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "localhost")
        inside = world.run(SPELLINGS, bait.port, *numbers)
        assert set(inside.output.split()) == {"ConnectionRefusedError"}
        assert bait.count == 0


def test_the_real_address_of_a_granted_name_needs_a_rule_of_its_own():
    world = World([("allowed.example", 443)], {"allowed.example": ["10.9.8.7"]})
    assert world.run(SPELLINGS, 443, "10.9.8.7").output == "PermissionError\n"
