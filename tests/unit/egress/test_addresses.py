"""Addresses: one spelling each, and the ranges that names may never stand for."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.egress import addresses


def kind_of(text: str) -> str:
    address = addresses.parse(text)
    assert address is not None
    return addresses.kind(address)


@pytest.mark.parametrize(
    "text",
    ["2130706433", "0x7f.1", "0x7f000001", "127.1", "0177.0.0.1", "127.0.0.1\0", "::1%lo", "1.2.3.4.", "", "a.b"],
)
def test_other_spellings_are_no_addresses(text: str) -> None:
    assert addresses.parse(text) is None


def test_mapped_addresses_are_ipv4() -> None:
    assert addresses.parse("::ffff:127.0.0.1") == addresses.parse("127.0.0.1")
    assert kind_of("::ffff:169.254.169.254") == "metadata"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("8.8.8.8", "global"),
        ("2606:4700::1111", "global"),
        ("10.1.2.3", "private"),
        ("172.31.255.255", "private"),
        ("172.32.0.1", "global"),
        ("192.168.0.1", "private"),
        ("100.64.0.1", "private"),
        ("fd12:3456::1", "private"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("169.254.169.254", "metadata"),
        ("100.100.100.200", "metadata"),
        ("168.63.129.16", "metadata"),
        ("192.0.0.192", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("0.0.0.0", "never"),
        ("169.254.1.1", "never"),
        ("198.18.0.1", "never"),
        ("198.19.255.255", "never"),
        ("224.0.0.1", "never"),
        ("255.255.255.255", "never"),
        ("192.88.99.1", "never"),
        ("::", "never"),
        ("::127.0.0.1", "never"),
        ("fe80::1", "never"),
        ("ff02::1", "never"),
        ("64:ff9b::7f00:1", "never"),
        ("64:ff9b:1::1", "never"),
        ("2002:7f00:1::", "never"),
        ("2001::1", "never"),
        ("2001:db8::1", "never"),
        ("fd19:8000::c612:100", "never"),
        ("100::1", "never"),
        ("4000::1", "never"),
    ],
)
def test_kinds(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@given(st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16))
def test_nothing_counts_as_global_that_the_standard_library_calls_private(raw: bytes) -> None:
    if addresses.kind(addresses.unmapped(raw)) == "global":
        assert ipaddress.ip_address(addresses.unmapped(raw)).is_global


@given(st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16))
def test_text_and_back(raw: bytes) -> None:
    assert addresses.parse(addresses.text(raw)) == addresses.unmapped(raw)
