"""The canonical host: every spelling of a name is one name, and what is no name is none (NW-08)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.egress import hostnames


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Example.TEST", "example.test"),
        ("example.test.", "example.test"),
        ("db_1.internal", "db_1.internal"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("EXAMPLE。test", "example.test"),
        ("localhost", "localhost"),
    ],
)
def test_spellings_of_one_name(written: str, name: str) -> None:
    assert hostnames.canonical(written) == name


@pytest.mark.parametrize(
    "written",
    [
        "",
        ".",
        "a..b",
        "example.test..",
        "a.test\0.allowed.test",
        "user@example.test",
        "example.test:443",
        "example.test/",
        "exa mple.test",
        "2130706433",
        "0x7f.1",
        "127.1",
        "a.0x7f",
        "1.2.3.4",
        "*.example.test",
        "a" * 64 + ".test",
        ".".join(["a" * 60] * 5),
        "\ud800.test",
        "x" * 100_000,
    ],
)
def test_what_is_no_host_name(written: str) -> None:
    assert hostnames.canonical(written) is None


@given(st.text(max_size=80))
def test_canonical_is_a_fixed_point_and_never_raises(written: str) -> None:
    name = hostnames.canonical(written)
    if name is not None:
        assert hostnames.canonical(name) == name
        assert hostnames.canonical(name.upper() + ".") == name


def test_special_and_local_names() -> None:
    assert hostnames.is_special("db.internal.invalid")
    assert hostnames.is_special("printer.local")
    assert not hostnames.is_special("invalid.example.org")
    assert hostnames.is_localhost("a.localhost")
    assert not hostnames.is_localhost("localhost.example.org")
