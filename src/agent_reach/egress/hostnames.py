"""One canonical form of a host name: every check and every answer uses it, so no two of them can differ."""

from __future__ import annotations

LOCALHOST = "localhost"

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_MAX_NAME = 253
_MAX_LABEL = 63
# RFC 6761, 6762, 7686: names that no public resolver knows. Asking one for them tells it about the inside.
_SPECIAL = frozenset(("invalid", "test", "onion", "local"))


def canonical(name: str) -> str | None:
    """Return a host name in lower case, without trailing dot, in ASCII; None when it is no host name.

    Refused are null bytes and anything else that is no letter, digit, ``-`` or ``_`` (user:password@,
    ports, blanks), labels beyond RFC 1035, and names that end in a number: some resolvers read
    ``2130706433``, ``0x7f.1`` or ``127.1`` as an address, so they must never pass as a name.
    """
    if len(name) > 4 * _MAX_NAME:
        return None
    if not name.isascii():
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    name = name.lower().removesuffix(".")
    labels = name.split(".")
    if not name or len(name) > _MAX_NAME:
        return None
    if any(not 1 <= len(label) <= _MAX_LABEL or not _LETTERS.issuperset(label) for label in labels):
        return None
    return None if _is_number(labels[-1]) else name


def is_localhost(name: str) -> bool:
    """Tell whether a canonical name means the loopback by RFC 6761: ``localhost`` and everything below it."""
    return name == LOCALHOST or name.endswith(".localhost")


def is_special(name: str) -> bool:
    """Tell whether a canonical name belongs to a domain that exists on no public resolver."""
    return name.rpartition(".")[2] in _SPECIAL


def _is_number(label: str) -> bool:
    """Tell whether a label reads as a number, decimal or hexadecimal."""
    if label.isdigit():
        return True
    return label.startswith("0x") and all(letter in "0123456789abcdef" for letter in label[2:])
