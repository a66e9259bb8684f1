"""The resolver inside, without a sandbox: what each kind of name is answered with."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from agent_reach.contract.model import NetRule
from agent_reach.egress import dns
from agent_reach.egress.loop import Loop
from agent_reach.egress.names import Names
from agent_reach.egress.policy import Policy
from agent_reach.egress.resolve import Resolved, Resolver
from agent_reach.egress.stub import MOST_STREAMS, Stub

if TYPE_CHECKING:
    from collections.abc import Iterator


class World:
    def __init__(self) -> None:
        self.absent: list[str] = []
        self.asked: list[str] = []
        self.faults: list[Exception] = []
        self.loop = Loop(self.faults.append)
        self.resolver = Resolver(self.look_up)
        policy = Policy(
            [NetRule("db.example.com", 5432), NetRule("gone.example.com", 1), NetRule("bad.example.com", 1)]
        )
        self.stub = Stub(self.loop, Names(policy), self.resolver, lambda name, _count: self.absent.append(name))
        self.loop.watch(self.resolver.workers.fd, 1, lambda _mask: self.resolver.workers.collect())

    def look_up(self, name: str) -> Resolved:
        self.asked.append(name)
        if name == "db.example.com":
            return Resolved((bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)), bytes(15) + b"\1"))
        return Resolved((), absent=name == "gone.example.com")

    def ask(self, name: str, kind: int = dns.A) -> tuple[int, int]:
        """Return the answer's code and number of addresses."""
        replies: list[bytes] = []
        self.stub.answer(question(name, kind), replies.append)
        while not replies:
            self.loop.run(10_000)
        return replies[0][3] & 15, replies[0][7]


def question(name: str, kind: int) -> bytes:
    labels = b"".join(bytes((len(label),)) + label.encode() for label in name.split(".") if label)
    return bytes((0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)) + labels + b"\0" + kind.to_bytes(2, "big") + b"\0\1"


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.stub.close()
    made.resolver.close()
    made.loop.close()


def test_a_granted_name_mirrors_the_number_of_its_addresses(world: World) -> None:
    assert world.ask("DB.example.com.", dns.A) == (dns.NOERROR, 2)
    assert world.ask("db.example.com", dns.AAAA) == (dns.NOERROR, 1)
    assert world.ask("db.example.com", 16) == (dns.NOERROR, 0)
    assert world.ask("gone.example.com") == (dns.NXDOMAIN, 0)
    assert world.ask("bad.example.com") == (dns.SERVFAIL, 0)


@pytest.mark.parametrize(
    ("name", "code", "count", "absent"),
    [
        ("evil.example.com", dns.NOERROR, 1, []),
        ("db.internal.invalid", dns.NXDOMAIN, 0, ["db.internal.invalid"]),
        ("2130706433", dns.NXDOMAIN, 0, ["2130706433"]),
        ("localhost", dns.NOERROR, 1, []),
        ("1.18.198.in-addr.arpa", dns.NXDOMAIN, 0, []),
        ("", dns.NXDOMAIN, 0, []),
    ],
)
def test_no_other_name_is_ever_resolved(world: World, name: str, code: int, count: int, absent: list[str]) -> None:
    assert world.ask(name) == (code, count)
    assert world.asked == []
    assert world.absent == absent


def test_streams_are_served_in_order_and_bounded(world: World) -> None:
    ends = []
    for _ in range(MOST_STREAMS + 1):
        ours, theirs = socket.socketpair()
        world.stub.serve(ours)
        ends.append(theirs)
    query = question("evil.example.com", dns.A)
    ends[-1].sendall(dns.framed(query)[:5])
    world.loop.run(1000)
    ends[-1].sendall(dns.framed(query)[5:])
    world.loop.run(1000)
    ends[-1].settimeout(10)
    assert ends[-1].recv(512)[2:4] == query[:2]
    ends[0].settimeout(10)
    assert ends[0].recv(1) == b""  # the oldest has given way
    ends[1].sendall(b"\xff\xff")
    world.loop.run(1000)
    ends[1].settimeout(10)
    assert ends[1].recv(1) == b""
    for end in ends:
        end.close()
