from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.contract.hosts import canonical
from agent_reach.contract.sink import Refusal


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("db.internal", "db.internal"),
        ("DB.Internal", "db.internal"),
        ("db.internal.", "db.internal"),
        ("localhost", "localhost"),
        ("_sip._tcp.example.com", "_sip._tcp.example.com"),
        ("a-b.c1", "a-b.c1"),
        ("1a.2b", "1a.2b"),
        ("0xzz", "0xzz"),
        ("xn--mnchen-3ya.de", "xn--mnchen-3ya.de"),
        ("127.0.0.1", "127.0.0.1"),
        ("10.0.0.255", "10.0.0.255"),
        ("a" * 63 + ".x", "a" * 63 + ".x"),
    ],
)
def test_one_spelling(written: str, host: str) -> None:
    assert canonical(written) == host


@pytest.mark.parametrize(
    ("written", "code", "hint"),
    [
        # inet_aton(3) takes these for addresses.
        ("0x7f.1", "E_HOST", "`127.0.0.1`"),
        ("2130706433", "E_HOST", "`127.0.0.1`"),
        ("127.1", "E_HOST", "`127.0.0.1`"),
        ("0177.0.0.1", "E_HOST", "`127.0.0.1`"),
        ("10.0.0.010", "E_HOST", "`10.0.0.8`"),
        ("0x7f000001", "E_HOST", "`127.0.0.1`"),
        ("127.0.0.1.", "E_HOST", "`127.0.0.1`"),
        ("256.0.0.1", "E_HOST", "0 to 255"),
        ("1.2.3.4.5", "E_HOST", "0 to 255"),
        ("example.1", "E_HOST", ""),
        ("0.0.0.0", "E_HOST", "`localhost`"),
        ("0", "E_HOST", ""),
        ("https://example.com", "E_HOST", "the host alone"),
        ("user@example.com", "E_HOST", "the host alone"),
        ("example.com:443", "E_HOST", "{host: example.com, port: 443}"),
        ("example.com#x", "E_HOST", ""),
        ("", "E_HOST", ""),
        (".", "E_HOST", ""),
        ("a..b", "E_HOST", ""),
        (".a", "E_HOST", ""),
        ("a..", "E_HOST", ""),
        ("-a.b", "E_HOST", ""),
        ("a-.b", "E_HOST", ""),
        ("a b", "E_HOST", ""),
        ("a\0.example.com", "E_HOST", ""),
        ("a\n.example.com", "E_HOST", ""),
        ("a%00", "E_HOST", ""),
        ("a" * 64, "E_HOST", ""),
        ("a." * 127 + "a", "E_HOST", ""),
        ("münchen.de", "E_HOST", "xn--mnchen-3ya.de"),
        ("ｌocalhost", "E_HOST", "localhost"),  # noqa: RUF001 - a full-width letter is the point
        ("*", "E_NOT_YET", ""),
        ("*.example.com", "E_NOT_YET", ""),
        ("a*", "E_NOT_YET", ""),
        ("10.0.0.0/8", "E_NOT_YET", ""),
        ("::1", "E_NOT_YET", ""),
        ("[::1]", "E_NOT_YET", ""),
        ("::ffff:127.0.0.1", "E_NOT_YET", ""),
    ],
)
def test_every_other_spelling_is_refused(written: str, code: str, hint: str) -> None:
    with pytest.raises(Refusal) as caught:
        canonical(written)
    assert caught.value.code == code
    assert hint in caught.value.hint


def outcome(written: str) -> str:
    """Return the canonical host, or the code of the refusal."""
    try:
        return canonical(written)
    except Refusal as refusal:
        return refusal.code


@given(st.text(alphabet="0123456789abcdefx.-", min_size=1, max_size=20))
def test_what_inet_aton_takes_is_canonical_or_refused(written: str) -> None:
    try:
        packed = socket.inet_aton(written)
    except OSError:
        return
    assert outcome(written) in (socket.inet_ntoa(packed), "E_HOST")
    assert outcome(written) in (written, "E_HOST")


@given(st.text(max_size=30))
def test_canonical_is_idempotent(written: str) -> None:
    try:
        host = canonical(written)
    except Refusal:
        return
    assert canonical(host) == host
    assert host.isascii()
    assert host == host.lower()
