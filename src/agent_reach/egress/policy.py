"""Which connections the contract grants: pure decisions over names, addresses and ports.

A rule is compiled to a matcher by what its host is: ``localhost``, an address, ``*``, or an exact name.
Wildcards, networks and deeper protocols come as further matchers; nothing else in the package looks at the
text of a rule.
"""

from __future__ import annotations

from agent_reach._util.record import Record
from agent_reach._util.visible import visible
from agent_reach.egress import addresses, hostnames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_reach.contract.model import NetRule

SECTION = "resources.network.allow_outbound"

_TCP_PROTOCOLS = ("tcp", "http", "https")
_LOOPBACKS = (b"\x7f\x00\x00\x01", bytes(15) + b"\x01")


class Decision(Record):
    """What the contract says about one connection.

    Args:
        allowed: whether it is granted.
        host: canonical name or address that was asked for; the raw text where there is no canonical form.
        port: port that was asked for.
        rule: the rule that grants it, or None.
        clause: why it is refused, empty when it is not.
        entry: the YAML line that would grant it, empty when nothing can.
        name: canonical name when it was asked for by name, else empty.
    """

    allowed: bool
    host: str
    port: int
    rule: NetRule | None = None
    clause: str = ""
    entry: str = ""
    name: str = ""

    @property
    def subject(self) -> str:
        """Render ``host:port``, an IPv6 address in brackets, and the host alone for port 0."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if self.port else host


class Admission(Record):
    """Which of the addresses that a granted name resolved to may be dialled.

    Args:
        addresses: those that may, in the resolver's order.
        clause: why the first of the others may not, or empty.
        entry: the YAML line that would grant that one, or empty.
    """

    addresses: tuple[bytes, ...]
    clause: str = ""
    entry: str = ""


class _NameMatcher:
    """An exact name. It may stand for a private address, as internal names do; for the loopback never."""

    kinds: tuple[str, ...] = (addresses.GLOBAL, addresses.PRIVATE)

    def __init__(self, rule: NetRule, host: str) -> None:
        self.rule, self.host = rule, host

    def has_name(self, name: str) -> bool:
        """Tell whether the rule is about this name."""
        return name == self.host

    def has_address(self, address: bytes) -> bool:  # noqa: ARG002 - one interface for all matchers
        """Tell whether the rule is about this literal address: a name never is."""
        return False


class _AnyMatcher(_NameMatcher):
    """``*``: every public name, and only where it resolves to the public Internet."""

    kinds = (addresses.GLOBAL,)

    def has_name(self, name: str) -> bool:
        """Tell whether the rule is about this name; special-use names and the loopback need a rule of their own."""
        return not hostnames.is_special(name) and not hostnames.is_localhost(name)


class _AddressMatcher(_NameMatcher):
    """One literal address."""

    kinds = ()

    def __init__(self, rule: NetRule, matched: tuple[bytes, ...]) -> None:
        super().__init__(rule, rule.host)
        self.matched = matched

    def has_name(self, name: str) -> bool:  # noqa: ARG002 - one interface for all matchers
        """Tell whether the rule is about this name: an address never is."""
        return False

    def has_address(self, address: bytes) -> bool:
        """Tell whether the rule is about this literal address."""
        return address in self.matched


class Policy:
    """The network rules of one run.

    Args:
        rules: rules of the contract.
        place: where they stand, such as ``reach.yaml:9, profile prod``; ends every clause.

    Raises:
        ValueError: a rule is of a kind that this version does not enforce; the contract layer refuses it
            before, so this is a fault in reach.
    """

    def __init__(self, rules: Iterable[NetRule], place: str = "") -> None:
        # `*` comes last: what an exact name grants, such as a private address, must not depend on the order.
        self._matchers = tuple(sorted((_compile(rule) for rule in rules), key=lambda one: one.rule.host == "*"))
        self._place = f" ({place})" if place else ""

    def grants_name(self, name: str) -> bool:
        """Tell whether some port of a canonical name is granted: only such names are ever resolved."""
        return any(matcher.has_name(name) for matcher in self._matchers)

    def decide_name(self, name: str, port: int) -> Decision:
        """Decide on a connection by name, before the name is resolved; `admit` decides on what it resolves to."""
        host = hostnames.canonical(name)
        if host is None:
            return Decision(False, visible(name, 100), port, None, f"{visible(name, 100)} is no host name", "")
        if hostnames.is_localhost(host):
            answers = [self.decide_address(address, port) for address in _LOOPBACKS]
            best = next((answer for answer in answers if answer.allowed), answers[0])
            return best.replace(host=host, name=host, entry=best.entry and _entry(hostnames.LOCALHOST, port))
        matching = [matcher for matcher in self._matchers if matcher.has_name(host)]
        for matcher in matching:
            if matcher.rule.port == port:
                return Decision(True, host, port, matcher.rule, name=host)
        return Decision(False, host, port, None, self._clause(host, matching), _entry(host, port), host)

    def decide_address(self, address: bytes, port: int) -> Decision:
        """Decide on a connection to a literal address.

        Args:
            address: canonical, see `addresses.unmapped`.
            port: port in host order.
        """
        host = addresses.text(address)
        if addresses.kind(address) == addresses.METADATA:
            return Decision(False, host, port, None, f"{host} is a cloud metadata service, which no rule opens")
        matching = [matcher for matcher in self._matchers if matcher.has_address(address)]
        for matcher in matching:
            if matcher.rule.port == port:
                return Decision(True, host, port, matcher.rule)
        clause = self._clause(host, matching)
        if not matching and addresses.kind(address) != addresses.LOOPBACK:
            clause = f"{clause}; a literal address needs a rule for that address"
        return Decision(False, host, port, None, clause, _entry(host, port))

    def admit(self, decision: Decision, resolved: Iterable[bytes]) -> Admission:
        """Sort out the addresses that a granted name may stand for.

        An attacker who controls a name, or its resolver, lets it point to the inside (DNS rebinding). So an
        exact name reaches public and private addresses, ``*`` public ones; the loopback only where an address
        rule grants that very address as well; metadata services and special ranges never.
        """
        kinds = next((matcher.kinds for matcher in self._matchers if matcher.rule is decision.rule), ())
        admitted, clause, entry = [], "", ""
        for address in map(addresses.unmapped, resolved):
            kind = addresses.kind(address)
            if kind in kinds or (kind == addresses.LOOPBACK and self.decide_address(address, decision.port).allowed):
                admitted.append(address)
            elif not clause:
                clause, entry = _refusal(decision, addresses.text(address), kind)
        return Admission(tuple(admitted), clause, entry)

    def _clause(self, host: str, matching: list[_NameMatcher]) -> str:
        """Say what is missing: the host, or only the port."""
        if not matching:
            return f"not in {SECTION}{self._place}"
        ports = ", ".join(str(port) for port in sorted({matcher.rule.port for matcher in matching}))
        return f"{SECTION} grants {host} only on port {ports}{self._place}"


def _compile(rule: NetRule) -> _NameMatcher:
    """Return the matcher of a rule, by what its host is."""
    if rule.protocol not in _TCP_PROTOCOLS:
        raise ValueError(f"protocol {rule.protocol!r} has no matcher")
    if rule.host == "*":
        return _AnyMatcher(rule, rule.host)
    address = addresses.parse(rule.host)
    if address is not None:
        return _AddressMatcher(rule, (address,))
    host = hostnames.canonical(rule.host)
    if host is None:
        raise ValueError(f"host {rule.host!r} has no matcher")
    if host == hostnames.LOCALHOST:
        return _AddressMatcher(rule, _LOOPBACKS)
    return _NameMatcher(rule, host)


def _refusal(decision: Decision, address: str, kind: str) -> tuple[str, str]:
    """Return clause and entry for a name that resolved to an address of this kind."""
    found = f"{decision.host} resolves to {address}"
    if kind == addresses.LOOPBACK:
        return (
            f"{found}: a name reaches this machine's loopback only together with a rule for that address",
            _entry(address, decision.port),
        )
    if kind == addresses.PRIVATE:
        return f"{found}, a private address: `*` reaches public ones only", _entry(decision.host, decision.port)
    if kind == addresses.METADATA:
        return f"{found}, a cloud metadata service, which no rule opens", ""
    return f"{found}, a special address that no name may stand for", ""


def _entry(host: str, port: int) -> str:
    """Return the YAML line that grants a host and port; without a port it leaves a place for one."""
    quoted = f'"{host}"' if ":" in host else host
    return f"- {{host: {quoted}, port: {port or 'PORT'}, protocol: tcp}}"
