"""Socket addresses of hostile callers: read exactly, or not at all."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.egress import sockaddr

INET = struct.pack("=H", socket.AF_INET) + struct.pack("!H", 443) + bytes((8, 8, 4, 4)) + bytes(8)
MAPPED = (
    struct.pack("=H", socket.AF_INET6) + struct.pack("!HI", 443, 0) + bytes(10) + b"\xff\xff\x08\x08\x04\x04" + bytes(4)
)


def unix(path: bytes) -> bytes:
    return struct.pack("=H", socket.AF_UNIX) + path


def test_internet_addresses() -> None:
    assert sockaddr.inet(INET) == sockaddr.Inet(socket.AF_INET, bytes((8, 8, 4, 4)), 443)
    assert sockaddr.inet(MAPPED) == sockaddr.Inet(socket.AF_INET6, bytes((8, 8, 4, 4)), 443)
    assert sockaddr.inet(MAPPED[:24]) is not None  # RFC 2133, without the scope


@pytest.mark.parametrize("raw", [INET[:15], MAPPED[:23], unix(b"/x"), bytes(2)])
def test_what_is_no_internet_address(raw: bytes) -> None:
    assert sockaddr.inet(raw) is None


def test_unix_names() -> None:
    assert sockaddr.unix(unix(b"/tmp/s\0garbage")) == sockaddr.Unix(b"/tmp/s", False)
    assert sockaddr.unix(unix(b"/tmp/s")) == sockaddr.Unix(b"/tmp/s", False)
    assert sockaddr.unix(unix(b"\0name\0")) == sockaddr.Unix(b"name\0", True)
    assert sockaddr.unix(unix(b"")) is None
    assert sockaddr.unix(unix(b"a" * 109)) is None
    assert sockaddr.unix(INET) is None


@given(st.binary(min_size=2, max_size=128))
def test_any_bytes_are_read_without_an_exception(raw: bytes) -> None:
    found = sockaddr.inet(raw)
    if found is not None:
        assert len(found.address) in {4, 16}
        assert 0 <= found.port < 1 << 16
    name = sockaddr.unix(raw)
    assert name is None or name.abstract or b"\0" not in name.path


def test_addresses_for_a_socket_of_a_family() -> None:
    assert sockaddr.pack(bytes((8, 8, 4, 4)), 443, socket.AF_INET) == ("8.8.4.4", 443)
    assert sockaddr.pack(bytes((8, 8, 4, 4)), 443, socket.AF_INET6) == ("::ffff:8.8.4.4", 443, 0, 0)
    assert sockaddr.pack(bytes(15) + b"\1", 443, socket.AF_INET6) == ("::1", 443, 0, 0)
    with pytest.raises(ValueError, match="no IPv6"):
        sockaddr.pack(bytes(15) + b"\1", 443, socket.AF_INET)
