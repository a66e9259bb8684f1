"""Hosts of a network rule: one canonical spelling each.

``0x7f.1``, ``2130706433`` and ``127.1`` are all 127.0.0.1 to inet_aton(3), and other things to other programs; a rule
that two programs read differently is no rule. A name whose last label is a number is never a name (WHATWG URL, host
parsing, "ends in a number").
"""

from __future__ import annotations

from agent_reach.contract.sink import Refusal, shown

_MAX_NAME = 253
_MAX_LABEL = 63
_LABEL_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_PLANNED = "(planned: network rules)"


def canonical(written: str) -> str:
    """Return a host in lower case, without trailing dot.

    Args:
        written: the host as written in the contract.

    Raises:
        Refusal: it is not a name or an IPv4 address, or not written in the one way.
    """
    _refuse_forms(written)
    host = written.lower().removesuffix(".")
    if not host.isascii():
        raise Refusal("E_HOST", f"{shown(written)} is not ASCII", _ascii_hint(host))
    if _ends_in_number(host):
        return _ipv4(written, host)
    labels = host.split(".")
    if len(host) > _MAX_NAME or not all(_is_label(label) for label in labels):
        raise Refusal("E_HOST", f"{shown(written)} is not a host name", "a name is labels of a-z, 0-9 and - with dots")
    return host


def _refuse_forms(written: str) -> None:
    """Refuse what is more or less than a host, with the way to write it."""
    if not written:
        raise Refusal("E_HOST", "the host is empty")
    if "*" in written:
        raise Refusal("E_NOT_YET", f"the host {shown(written)}: wildcards {_PLANNED}", "write each name")
    if "://" in written or "@" in written or "?" in written or "#" in written:
        raise Refusal("E_HOST", f"{shown(written)} is more than a host", "write the host alone, and the port in `port`")
    if "/" in written:
        raise Refusal("E_NOT_YET", f"the host {shown(written)}: address ranges {_PLANNED}", "write each address")
    if written.startswith("[") or written.count(":") > 1:
        raise Refusal("E_NOT_YET", f"the host {shown(written)}: IPv6 rules {_PLANNED}", "write a name")
    if ":" in written:
        host, _colon, port = written.partition(":")
        raise Refusal("E_HOST", f"{shown(written)} holds a port", f"write {{host: {host}, port: {port or '…'}}}")


def _ends_in_number(host: str) -> bool:
    last = host.rpartition(".")[2]
    return last.isdigit() or (last.startswith("0x") and all(char in "0123456789abcdef" for char in last[2:]))


def _ipv4(written: str, host: str) -> str:
    """Return a dotted address of four decimal parts."""
    parts = host.split(".")
    plain = len(parts) == 4 and all(part.isdigit() and str(int(part)) == part and int(part) <= 255 for part in parts)
    if not plain or written.endswith("."):
        meant = _loose_address(parts)
        hint = f"did you mean `{meant}`?" if meant else "an address is four numbers from 0 to 255"
        raise Refusal("E_HOST", f"{shown(written)} is not an address in its one spelling", hint)
    if parts[0] == "0":
        raise Refusal("E_HOST", f"{shown(written)} is this host under another name", "write `localhost`")
    return host


def _loose_address(parts: list[str]) -> str:
    """Return what inet_aton(3) would take the parts for, or an empty string."""
    numbers = [_loose_number(part) for part in parts if part]
    if not numbers or len(numbers) > 4 or None in numbers:
        return ""
    *high, last = [number for number in numbers if number is not None]
    room = 256 ** (4 - len(high))
    if last >= room or any(number > 255 for number in high):
        return ""
    value = last
    for place, number in enumerate(high):
        value += number << (8 * (3 - place))
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))


def _loose_number(part: str) -> int | None:
    base, digits = (16, part[2:]) if part.startswith("0x") else (8, part) if part.startswith("0") else (10, part)
    allowed = "0123456789abcdef"[:base]
    if len(digits) > 16 or any(char not in allowed for char in digits):
        return None
    return int(digits or "0", base)


def _is_label(label: str) -> bool:
    return 0 < len(label) <= _MAX_LABEL and _LABEL_CHARS.issuperset(label) and label[0] != "-" != label[-1]


def _ascii_hint(host: str) -> str:
    try:
        return f"write `{host.encode('idna').decode()}`"
    except UnicodeError:
        return "write its ASCII form (xn--…)"
