"""Socket addresses as the kernel takes them: bytes of the caller, read once, to values (ip(7), ipv6(7), unix(7))."""

from __future__ import annotations

import sys
from _socket import AF_INET, AF_INET6, AF_UNIX

from agent_reach._util.record import Record
from agent_reach.egress import addresses

SMALLEST = 2
LARGEST = 128  # struct sockaddr_storage; connect(2) gives EINVAL beyond it

_INET_BYTES = 16
_INET6_BYTES = 24  # RFC 2133, without the scope
_UNIX_BYTES = 110
_FAMILY = 2


class Inet(Record):
    """An Internet address.

    Args:
        family: AF_INET or AF_INET6, as written by the caller.
        address: canonical, so 4 bytes for an IPv4 address written as IPv6.
        port: port in host order.
    """

    family: int
    address: bytes
    port: int


class Unix(Record):
    """The name of a Unix domain socket.

    Args:
        path: path, or name behind the leading null byte.
        abstract: whether it is a name of the abstract namespace.
    """

    path: bytes
    abstract: bool


def family(raw: bytes) -> int:
    """Return the address family of an address of at least two bytes."""
    return int.from_bytes(raw[:_FAMILY], sys.byteorder)


def inet(raw: bytes) -> Inet | None:
    """Return an Internet address, None when it is too short or of another family."""
    found = family(raw)
    if found == AF_INET and len(raw) >= _INET_BYTES:
        address = raw[4:8]
    elif found == AF_INET6 and len(raw) >= _INET6_BYTES:
        address = addresses.unmapped(raw[8:24])
    else:
        return None
    return Inet(found, address, int.from_bytes(raw[2:4], "big"))


def unix(raw: bytes) -> Unix | None:
    """Return the name of a Unix domain socket, None when it is empty, too long or of another family."""
    if family(raw) != AF_UNIX or not _FAMILY < len(raw) <= _UNIX_BYTES:
        return None
    name = raw[_FAMILY:]
    if name[0] == 0:
        return Unix(name[1:], True)
    return Unix(name.partition(b"\0")[0], False)


def pack(address: bytes, port: int, as_family: int) -> tuple[str, int] | tuple[str, int, int, int]:
    """Return an address as `socket.connect` takes it for a socket of this family.

    Raises:
        ValueError: an IPv6 address for an AF_INET socket. Its file would answer getpeername with an address that
            the program's AF_INET code cannot read.
    """
    if as_family == AF_INET:
        if len(address) != 4:
            raise ValueError("an AF_INET socket reaches no IPv6 address")
        return addresses.text(address), port
    return addresses.text(address if len(address) == 16 else addresses.MAPPED + address), port, 0, 0
