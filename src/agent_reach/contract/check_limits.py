"""`limits`: values with units, and whether best effort will do."""

from __future__ import annotations

from agent_reach.contract import units
from agent_reach.contract.fields import convert, mapping_fields, mistyped
from agent_reach.contract.model import Limit
from agent_reach.contract.nodes import Bad, Map, Node, Scalar
from agent_reach.contract.origin import origin_of
from agent_reach.contract.scalars import kind_of
from agent_reach.contract.sink import Refusal, shown, suggestion
from agent_reach.contract.table import HOLDER, NOW, TYPES, Key, children, key_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.contract.sink import Sink

MAX_COUNT = 2**31 - 1
MAX_CPUS = 8192.0  # NR_CPUS of the largest kernel configuration
_ENFORCED = Key("limits.*.enforced", "flag", "Whether best effort refuses the run.")
_PARTS = ("max", "enforced")


def limits(node: Node | None, sink: Sink) -> tuple[tuple[str, Limit], ...]:
    """Return the limits of a holder by name; a limit that is not written is not there.

    Args:
        node: ``limits``, a mapping.
        sink: takes the findings.
    """
    fields = mapping_fields(node, "limits", sink)
    found: dict[str, Limit] = {}
    for name, key in children(HOLDER, "limits").items() if fields else ():
        value = fields.node(name) if fields else None
        if value is None:
            continue
        if name == "io":
            _rates(value, found, sink)
        else:
            _limit(name, key, value, found, sink)
    return tuple(found.items())


def value_of(name: str, text: str) -> float:
    """Return the value of a limit from its text.

    Args:
        name: such as ``memory`` or ``io_read``.
        text: such as ``512MiB``.

    Raises:
        Refusal: it is not a value of that limit.
    """
    kind = "count" if name == "scratch_inodes" else key_at(f"limits.{name.replace('io_', 'io.')}").type
    return _PARSERS[kind](text, name)


def limit_names() -> tuple[str, ...]:
    """Return the names that a limit may have in a resolved contract."""
    names = [name for name, key in children(HOLDER, "limits").items() if key.status == NOW and name != "io"]
    return (*names, "scratch_inodes", "io_read", "io_write")


def _rates(node: Node, found: dict[str, Limit], sink: Sink) -> None:
    fields = mapping_fields(node, "limits.io", sink)
    for name, key in children(HOLDER, "limits.io").items() if fields else ():
        value = fields.node(name) if fields else None
        if value is not None:
            _limit(f"io_{name}", key, value, found, sink)


def _limit(name: str, key: Key, node: Node, found: dict[str, Limit], sink: Sink) -> None:
    parts = (*_PARTS, "inodes") if name == "scratch" else _PARTS
    if not isinstance(node, Map):
        value = _number(name, key.type, node, sink)
        if value is not None:
            found[name] = Limit(value, enforced=False, origin=origin_of(node))
        return
    for part, entry in node.entries.items():
        if part not in parts:
            hint = suggestion(part, parts) or f"the keys are: {', '.join(parts)}"
            sink.add(entry.key, "E_UNKNOWN_KEY", f"{shown(part)} is not a key here", hint)
    if not any(part in node.entries for part in parts if part != "enforced"):
        sink.add(node, "E_MISSING", "`max` is absent", f"write {{max: {_EXAMPLES[key.type]}, enforced: true}}")
    flag = node.get("enforced")
    enforced = flag is not None and convert(flag, _ENFORCED, sink) is True
    for part, target, kind in (("max", name, key.type), ("inodes", "scratch_inodes", "count")):
        value = _number(target, kind, node.get(part), sink) if part in parts else None
        if value is not None:
            found[target] = Limit(value, enforced=enforced, origin=origin_of(node))


def _number(name: str, kind: str, node: Node | None, sink: Sink) -> float | None:
    if node is None or isinstance(node, Bad):
        return None
    if not isinstance(node, Scalar) or kind_of(node) in ("null", "flag"):
        mistyped(node, TYPES[kind], sink, f"write {_EXAMPLES[kind]}")
        return None
    try:
        return _PARSERS[kind](node.text, name)
    except Refusal as refusal:
        sink.refuse(node, refusal)
        return None


def _count(text: str, _name: str) -> float:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:12]) <= MAX_COUNT and len(text) <= 10):
        raise Refusal("E_VALUE", f"{shown(text)} is not a count", "write a whole number from 1")
    return int(text)


def _cpus(text: str, _name: str) -> float:
    whole, dot, fraction = text.partition(".")
    digits = whole.isascii() and whole.isdigit() and (not dot or (fraction.isascii() and fraction.isdigit()))
    number = float(text) if digits and len(text) <= 16 else 0.0
    if not 0 < number <= MAX_CPUS:
        raise Refusal("E_VALUE", f"{shown(text)} is not a number of processors", "write a number such as 0.5 or 2")
    return number


_EXAMPLES = {"duration": "60s", "size": "512MiB", "rate": "10MiB/s", "count": "64", "cpus": "0.5", "mapping": "{…}"}
_PARSERS: dict[str, Callable[[str, str], float]] = {
    "count": _count,
    "cpus": _cpus,
    "duration": lambda text, _name: units.duration(text),
    "rate": lambda text, _name: units.rate(text),
    "size": lambda text, name: units.size(text, zero=name == "swap"),
}
