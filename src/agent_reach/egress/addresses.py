"""IP addresses as bytes, and which of them a rule may ever reach.

An address is `bytes` of length 4 or 16 in network order. IPv4 written as IPv6 (``::ffff:a.b.c.d``) is the
IPv4 address, everywhere: a check that knows two spellings of one address is passed by the other.
Ranges follow the IANA special-purpose registries (RFC 6890 and its updates).
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_ntop, inet_pton

MAPPED = bytes(10) + b"\xff\xff"

GLOBAL = "global"
PRIVATE = "private"
LOOPBACK = "loopback"
METADATA = "metadata"
NEVER = "never"

# Cloud metadata services hand out credentials to whoever can connect: refused even to a rule that names them.
_METADATA = (
    "169.254.169.254/32",  # AWS, Azure, Google Cloud, DigitalOcean, OpenStack
    "169.254.170.2/32",  # AWS task role credentials
    "169.254.170.23/32",  # AWS pod identity
    "100.100.100.200/32",  # Alibaba Cloud
    "168.63.129.16/32",  # Azure wire server
    "192.0.0.192/32",  # Oracle Cloud
    "fd00:ec2::/32",  # AWS over IPv6
)
_NEVER = (
    "0.0.0.0/8",
    "169.254.0.0/16",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",  # 6to4 relays
    "198.18.0.0/15",  # our own fake addresses
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "fd19:8000::/64",  # our own fake addresses
    "2001::/23",  # Teredo and other protocol assignments
    "2001:db8::/32",
    "2002::/16",  # 6to4 carries an IPv4 address
    "3fff::/20",
)
_PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
_LOOPBACK = ("127.0.0.0/8", "::1/128")


def parse(text: str) -> bytes | None:
    """Return the address that a text spells, or None.

    Only the canonical spellings are taken: four decimal numbers, or RFC 4291 text without a zone.
    ``0x7f.1``, ``2130706433`` and ``127.1`` are no addresses.
    """
    family = AF_INET6 if ":" in text else AF_INET
    try:
        return unmapped(inet_pton(family, text))
    except (OSError, ValueError):  # ValueError: the text holds a null byte or a lone surrogate
        return None


def unmapped(address: bytes) -> bytes:
    """Return an address as IPv4 when it is IPv4 written as IPv6."""
    return address[12:] if len(address) == 16 and address[:12] == MAPPED else address


def text(address: bytes) -> str:
    """Return the usual spelling of an address."""
    return inet_ntop(AF_INET if len(address) == 4 else AF_INET6, address)


def is_loopback(address: bytes) -> bool:
    """Tell whether packets to it stay on the machine by definition."""
    return kind(address) == LOOPBACK


def is_unspecified(address: bytes) -> bool:
    """Tell whether it is 0.0.0.0 or ``::``, which Linux connects to the loopback."""
    return not any(address)


def kind(address: bytes) -> str:
    """Return ``global``, ``private``, ``loopback``, ``metadata`` or ``never`` for a canonical address."""
    number = int.from_bytes(address, "big")
    for shift, prefix, name in _tables()[len(address)]:
        if number >> shift == prefix:
            return name
    # Outside 2000::/3 IANA has given out nothing that is routed: IPv4-compatible, NAT64, link-local, multicast.
    return GLOBAL if len(address) == 4 or address[0] >> 5 == 1 else NEVER


def _tables() -> dict[int, list[tuple[int, int, str]]]:
    """Return for each length of an address: bits below the prefix, prefix, kind; built once, the narrow ones first."""
    built: dict[int, list[tuple[int, int, str]]] | None = getattr(_tables, "memo", None)
    if built is None:
        built = {4: [], 16: []}
        for name, lines in ((METADATA, _METADATA), (NEVER, _NEVER), (LOOPBACK, _LOOPBACK), (PRIVATE, _PRIVATE)):
            for line in lines:
                network, bits = line.split("/")
                prefix = inet_pton(AF_INET6 if ":" in network else AF_INET, network)
                shift = 8 * len(prefix) - int(bits)
                built[len(prefix)].append((shift, int.from_bytes(prefix, "big") >> shift, name))
        _tables.memo = built  # type: ignore[attr-defined]  # a memo, as linux._syscalls keeps one
    return built
