"""Fake addresses: which names get which, and that memory stays bounded."""

from __future__ import annotations

from agent_reach.contract.model import NetRule
from agent_reach.egress import addresses
from agent_reach.egress.names import PREFIX6, Asked, Names
from agent_reach.egress.policy import Policy


def names(*hosts: str, capacity: int = 4096) -> Names:
    return Names(Policy([NetRule(host, 443) for host in hosts]), capacity)


def test_how_queries_are_treated() -> None:
    known = names("api.example.com", "printer.local")
    assert known.treat("api.example.com") == "granted"
    assert known.treat("printer.local") == "granted"
    assert known.treat("evil.example.com") == "sinkhole"
    assert known.treat("db.internal.invalid") == "absent"
    assert known.treat(None) == "absent"
    assert known.treat("localhost") == "loopback"
    assert known.treat("x.localhost") == "loopback"


def test_a_granted_name_has_up_to_four_addresses_that_lead_back_to_it() -> None:
    known = names("api.example.com")
    four = known.addresses("api.example.com", 9, family6=False)
    assert len(set(four)) == 4
    assert [known.asked(address) for address in four] == [Asked("api.example.com", slot) for slot in range(4)]
    six = known.addresses("api.example.com", 2, family6=True)
    assert [known.asked(address) for address in six] == [Asked("api.example.com", slot) for slot in range(2)]
    assert all(addresses.kind(address) == "never" for address in four + six)


def test_a_refused_name_gets_a_sinkhole_address_that_leads_back_to_it() -> None:
    known = names()
    sunk = known.sinkhole("evil.example.com")
    assert known.asked(sunk) == Asked("evil.example.com", 0, granted=False)
    assert known.sinkhole("evil.example.com") == sunk


def test_addresses_that_were_never_given_out_stand_for_nothing() -> None:
    known = names("api.example.com")
    assert known.asked(bytes((198, 18, 200, 1))) == Asked("", 1)
    assert known.asked(bytes((198, 19, 200, 1))) == Asked("", 0, granted=False)
    assert known.asked(PREFIX6[:8] + bytes((1,) * 8)) == Asked("", 0, granted=False)
    assert known.asked(bytes((8, 8, 8, 8))) is None


def test_a_program_that_asks_without_end_loses_its_oldest_names_only() -> None:
    known = names(capacity=10)
    last = [known.sinkhole(f"n{number}.example.com") for number in range(100_000)][-10:]
    assert [known.asked(address) for address in last] == [
        Asked(f"n{number}.example.com", 0, granted=False) for number in range(99_990, 100_000)
    ]
    first = Names(Policy([NetRule("*", 443)]), 10)
    held = [first.addresses(f"n{number}.example.com", 4, family6=False) for number in range(40_000)]
    assert first.asked(held[-1][3]) == Asked("n39999.example.com", 3)
