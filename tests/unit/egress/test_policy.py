"""Decisions of the network policy; every refusal beside the connection that is granted."""

from __future__ import annotations

import pytest

from agent_reach.contract.model import NetRule
from agent_reach.egress import addresses
from agent_reach.egress.policy import Policy


def address(text: str) -> bytes:
    parsed = addresses.parse(text)
    assert parsed is not None
    return parsed


def policy(*rules: tuple[str, int]) -> Policy:
    return Policy([NetRule(host, port) for host, port in rules], "reach.yaml:9, profile prod")


def test_an_exact_name_is_granted_on_its_port_alone() -> None:
    rules = policy(("db.example.com", 5432))
    granted = rules.decide_name("DB.Example.com.", 5432)
    assert granted.allowed
    assert granted.name == "db.example.com"
    refused = rules.decide_name("db.example.com", 5433)
    assert not refused.allowed
    assert "only on port 5432" in refused.clause
    assert refused.entry == "- {host: db.example.com, port: 5433, protocol: tcp}"


@pytest.mark.parametrize("name", ["other.example.com", "db.example.com.evil.net", "xdb.example.com", "example.com"])
def test_other_names_are_refused_with_the_clause_and_the_line_to_add(name: str) -> None:
    refused = policy(("db.example.com", 5432)).decide_name(name, 5432)
    assert not refused.allowed
    assert refused.clause == "not in resources.network.allow_outbound (reach.yaml:9, profile prod)"
    assert refused.entry == f"- {{host: {name}, port: 5432, protocol: tcp}}"
    assert refused.subject == f"{name}:5432"


def test_what_is_no_name_is_refused_in_printable_text() -> None:
    refused = policy(("allowed.test", 443)).decide_name("a.test\0.allowed.test\x1b[2J", 443)
    assert not refused.allowed
    assert refused.subject.isprintable()
    assert not refused.entry


def test_a_literal_address_needs_a_rule_for_it() -> None:
    rules = policy(("db.example.com", 5432), ("203.0.114.7", 80), ("2606:4700::1111", 443))
    assert rules.decide_address(address("203.0.114.7"), 80).allowed
    assert rules.decide_address(address("::ffff:203.0.114.7"), 80).allowed
    assert rules.decide_address(address("2606:4700:0::1111"), 443).allowed
    refused = rules.decide_address(address("203.0.114.8"), 5432)
    assert not refused.allowed
    assert "a literal address needs a rule" in refused.clause
    assert rules.decide_address(address("2606:4700::1112"), 443).entry.startswith('- {host: "2606:4700::1112"')
    assert rules.decide_address(address("2606:4700::1112"), 443).subject == "[2606:4700::1112]:443"


def test_localhost_means_both_loopback_addresses_and_no_other() -> None:
    rules = policy(("localhost", 5432))
    assert rules.decide_address(address("127.0.0.1"), 5432).allowed
    assert rules.decide_address(address("::1"), 5432).allowed
    assert rules.decide_name("localhost", 5432).allowed
    assert rules.decide_name("db.localhost", 5432).allowed
    assert not rules.decide_address(address("127.0.0.2"), 5432).allowed
    assert not rules.decide_address(address("127.0.0.1"), 5433).allowed
    assert rules.decide_name("localhost", 5433).entry == "- {host: localhost, port: 5433, protocol: tcp}"


def test_a_rule_for_127_0_0_1_does_not_grant_the_ipv6_loopback() -> None:
    rules = policy(("127.0.0.1", 5432))
    assert rules.decide_address(address("127.0.0.1"), 5432).allowed
    assert not rules.decide_address(address("::1"), 5432).allowed


@pytest.mark.parametrize("host", ["169.254.169.254", "fd00:ec2::254", "100.100.100.200"])
def test_metadata_services_are_refused_even_to_a_rule_that_names_them(host: str) -> None:
    refused = policy((host, 80), ("*", 80)).decide_address(address(host), 80)
    assert not refused.allowed
    assert not refused.entry


def test_link_local_needs_a_rule_by_address() -> None:
    assert policy(("169.254.7.7", 80)).decide_address(address("169.254.7.7"), 80).allowed
    assert not policy(("*", 80)).decide_address(address("169.254.7.7"), 80).allowed


@pytest.mark.parametrize(
    "resolved",
    [
        "169.254.169.254",
        "169.254.1.1",
        "0.0.0.0",
        "198.18.0.9",
        "fe80::1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "224.0.0.1",
    ],
)
def test_a_granted_name_that_turns_to_a_special_address_is_not_dialled(resolved: str) -> None:
    rules = policy(("db.example.com", 80))
    admission = rules.admit(rules.decide_name("db.example.com", 80), [address(resolved)])
    assert admission.addresses == ()
    assert resolved in admission.clause
    assert not admission.entry


def test_an_exact_name_may_stand_for_a_private_address_and_a_star_may_not() -> None:
    exact, star = policy(("db.internal", 80)), policy(("*", 80))
    private, public = address("10.0.0.5"), address("8.8.8.8")
    assert exact.admit(exact.decide_name("db.internal", 80), [private, public]).addresses == (private, public)
    admission = star.admit(star.decide_name("db.internal", 80), [private, public])
    assert admission.addresses == (public,)
    assert admission.entry == "- {host: db.internal, port: 80, protocol: tcp}"


def test_an_exact_rule_beats_a_star_in_any_order() -> None:
    private = address("10.0.0.5")
    rules = policy(("*", 80), ("db.internal", 80))
    assert rules.admit(rules.decide_name("db.internal", 80), [private]).addresses == (private,)


@pytest.mark.parametrize("resolved", ["127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"])
def test_a_name_that_resolves_to_the_loopback_needs_an_address_rule_as_well(resolved: str) -> None:
    rules = policy(("db.example.com", 80))
    admission = rules.admit(rules.decide_name("db.example.com", 80), [address(resolved)])
    assert admission.addresses == ()
    assert "loopback" in admission.clause
    named = admission.entry.split("host: ")[1].split(", port")[0].strip('"')
    both = policy(("db.example.com", 80), (named, 80))
    assert both.admit(both.decide_name("db.example.com", 80), [address(resolved)]).addresses == (address(resolved),)
    other = policy(("db.example.com", 80), (named, 81))
    assert other.admit(other.decide_name("db.example.com", 80), [address(resolved)]).addresses == ()


def test_a_star_reaches_public_names_but_no_special_ones() -> None:
    rules = policy(("*", 443))
    assert rules.decide_name("pypi.org", 443).allowed
    assert not rules.decide_name("pypi.org", 80).allowed
    for name in ("db.internal.invalid", "x.test", "y.onion", "printer.local", "localhost", "1.2.3.4"):
        assert not rules.decide_name(name, 443).allowed
    assert not rules.decide_address(address("8.8.8.8"), 443).allowed


def test_a_special_name_with_a_rule_of_its_own_is_granted() -> None:
    assert policy(("printer.local", 631)).decide_name("printer.local", 631).allowed


@pytest.mark.parametrize("rule", [("*.example.com", 80, "tcp"), ("10.0.0.0/8", 80, "tcp"), ("a.example", 53, "udp")])
def test_rules_of_a_later_kind_are_not_taken_silently(rule: tuple[str, int, str]) -> None:
    with pytest.raises(ValueError, match="no matcher"):
        Policy([NetRule(*rule)])


def test_names_granted_on_any_port_are_known() -> None:
    rules = policy(("db.example.com", 5432), ("10.0.0.1", 80))
    assert rules.grants_name("db.example.com")
    assert not rules.grants_name("10.0.0.1")
    assert not rules.grants_name("example.com")
