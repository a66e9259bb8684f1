"""`resources.network`: where connections may go."""

from __future__ import annotations

from agent_reach.contract import hosts
from agent_reach.contract.fields import Fields, mapping_fields
from agent_reach.contract.lists import maps_of, merge_list
from agent_reach.contract.model import NetRule
from agent_reach.contract.nodes import Map, Scalar
from agent_reach.contract.origin import origin_of
from agent_reach.contract.sink import Refusal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_reach.contract.nodes import Node
    from agent_reach.contract.sink import Sink

_AT = "resources.network.allow_outbound[]"
_HINT = "write `- {host: db.internal, port: 5432}`"
_Key = tuple[str, int, str]


def network(node: Node | None, sink: Sink, *, complete: bool) -> tuple[NetRule, ...]:
    """Return the network rules of a holder.

    Args:
        node: ``resources.network``, a mapping.
        sink: takes the findings.
        complete: whether every layer is there.
    """
    fields = mapping_fields(node, "resources.network", sink)
    if fields is None:
        return ()

    def read(part: Node) -> Iterator[tuple[_Key, NetRule, Node]]:
        for entry in maps_of(part, sink, _HINT):
            rule = _rule(entry, sink)
            if rule is not None:
                yield (rule.host, rule.port, rule.protocol), rule, entry

    def named(name: str, _place: Node) -> Callable[[_Key], bool]:
        host, colon, port = name.rpartition(":")
        if not colon or not port.isdigit():
            raise Refusal("E_VALUE", f"{shown(name)} is not a rule", "write host:port")
        wanted = hosts.canonical(host)
        return lambda key: key[0] == wanted and str(key[1]) == port

    return merge_list(fields.node("allow_outbound"), read, named, sink, complete=complete)


def _rule(entry: Map, sink: Sink) -> NetRule | None:
    if _is_udp(entry, sink):
        return None
    fields = Fields(entry, _AT, sink)
    for name in ("host", "port"):
        if not fields.has(name):
            sink.add(entry, "E_MISSING", f"`{name}` is absent", _HINT)
    host, port = None, fields.number("port")
    if fields.usable("host"):
        try:
            host = hosts.canonical(fields.text("host"))
        except Refusal as refusal:
            sink.refuse(fields.place("host"), refusal)
    if host is None or port is None:
        return None
    return NetRule(host, port, fields.text("protocol", "tcp"), origin_of(entry))


def _is_udp(entry: Map, sink: Sink) -> bool:
    protocol = entry.get("protocol")
    if isinstance(protocol, Scalar) and protocol.text == "udp":
        sink.add(protocol, "E_NOT_YET", "the protocol udp (planned: network rules)")
        return True
    return False
