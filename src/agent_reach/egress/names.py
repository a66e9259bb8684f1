"""Fake addresses: how the broker knows, at connect, which name the program had asked for.

The resolver inside answers a granted name with addresses of 198.18.0.0/16 and fd19:8000::/64, and every
other name with one of 198.19.0.0/16, the sinkhole: so the program's connect fails with EACCES where a
person sees it, and the record has the name. Nothing that a program asks leaves the host.
"""

from __future__ import annotations

from agent_reach._util.record import Record
from agent_reach.egress import hostnames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.egress.policy import Policy

GRANTED = "granted"
SINKHOLE = "sinkhole"
ABSENT = "absent"
LOOPBACK = "loopback"

SLOTS = 4  # addresses per name, so that a program's own fail-over over several addresses still works
PREFIX4 = b"\xc6\x12"  # 198.18.0.0/16
SINK4 = b"\xc6\x13"  # 198.19.0.0/16
PREFIX6 = b"\xfd\x19\x80\x00" + bytes(8)  # fd19:8000::/96, the last four bytes are the IPv4 twin

_POOL = 1 << 16
_FIRST = 256  # 198.18.0.x is left free: programs guess low addresses


class Asked(Record):
    """What a fake address stands for.

    Args:
        name: canonical name; empty for a fake address that was never given out, or was forgotten.
        slot: which of the name's addresses it is, 0 to 3.
        granted: whether it came from the granted range.
    """

    name: str
    slot: int = 0
    granted: bool = True


class Names:
    """The names of one run and their fake addresses.

    Args:
        policy: decides which names are granted.
        capacity: most names remembered of each kind; the oldest is forgotten first, so a program that asks for
            names without end only loses its own.
    """

    def __init__(self, policy: Policy, capacity: int = 4096) -> None:
        self._policy = policy
        self._granted = _Pool(SLOTS, min(capacity, (_POOL - _FIRST) // SLOTS - 1))
        self._sunk = _Pool(1, min(capacity, _POOL - _FIRST - 1))

    def treat(self, name: str | None) -> str:
        """Tell how a query is answered.

        Args:
            name: canonical name, None when the query's name has no canonical form.

        Returns:
            ``granted`` (resolve it, then `addresses`), ``sinkhole``, ``absent`` (no such name, and a
            denial to record) or ``loopback`` (RFC 6761 gives localhost a fixed answer).
        """
        if name is None:
            return ABSENT
        if hostnames.is_localhost(name):
            return LOOPBACK
        if self._policy.grants_name(name):
            return GRANTED
        return ABSENT if hostnames.is_special(name) else SINKHOLE

    def addresses(self, name: str, count: int, family6: bool) -> tuple[bytes, ...]:
        """Return the fake addresses of a granted name.

        Args:
            name: canonical name.
            count: how many real addresses it has in this family; at most 4 are mirrored.
            family6: IPv6 instead of IPv4.
        """
        base = self._granted.base(name)
        numbers = [PREFIX4 + (base + slot).to_bytes(2, "big") for slot in range(min(count, SLOTS))]
        return tuple(PREFIX6 + number for number in numbers) if family6 else tuple(numbers)

    def sinkhole(self, name: str) -> bytes:
        """Return the fake IPv4 address of a name that is not granted."""
        return SINK4 + self._sunk.base(name).to_bytes(2, "big")

    def asked(self, address: bytes) -> Asked | None:
        """Return what a canonical address stands for, None when it is no fake address."""
        if len(address) == 16 and address[:12] == PREFIX6:
            address = address[12:]
        if len(address) != 4 or address[:2] not in (PREFIX4, SINK4):
            return Asked("", granted=False) if address[:8] == PREFIX6[:8] else None
        granted = address[:2] == PREFIX4
        name, slot = (self._granted if granted else self._sunk).find(int.from_bytes(address[2:], "big"))
        return Asked(name, slot, granted)


class _Pool:
    """Numbers of one /16, given out in turn to names.

    Args:
        width: consecutive numbers per name.
        capacity: most names; less than the pool holds, so that a number is not used again while its name lives.
    """

    def __init__(self, width: int, capacity: int) -> None:
        self._width, self._capacity = width, capacity
        self._by_name: dict[str, int] = {}
        self._by_base: dict[int, str] = {}
        self._next = _FIRST

    def base(self, name: str) -> int:
        """Return the first number of a name, given out now if it has none."""
        known = self._by_name.get(name)
        if known is not None:
            return known
        while len(self._by_name) >= self._capacity:
            oldest = next(iter(self._by_name))
            del self._by_base[self._by_name.pop(oldest)]
        base = self._next
        self._next += self._width
        if self._next + self._width > _POOL:
            self._next = _FIRST
        self._by_name[name], self._by_base[base] = base, name
        return base

    def find(self, number: int) -> tuple[str, int]:
        """Return name and offset of a number, an empty name when it belongs to none."""
        offset = number % self._width
        name = self._by_base.get(number - offset, "")
        return name, offset
