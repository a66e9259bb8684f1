"""The lists that merge entry by entry: files, env, allow_outbound, commands."""

from __future__ import annotations

from agent_reach.contract.fields import mistyped
from agent_reach.contract.nodes import Bad, Drop, Map, Node, Scalar, Seq, parts_of
from agent_reach.contract.scalars import kind_of
from agent_reach.contract.sink import Refusal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from typing import TypeVar

    from agent_reach.contract.sink import Sink

    Key = TypeVar("Key", bound=Hashable)
    Value = TypeVar("Value")


def merge_list(
    node: Node | None,
    read: Callable[[Node], Iterable[tuple[Key, Value, Node]]],
    named: Callable[[str, Node], Callable[[Key], bool]],
    sink: Sink,
    *,
    complete: bool,
) -> tuple[Value, ...]:
    """Return the entries of a list, the nearer layer's in the place of the farther one's.

    Args:
        node: the list, or the stack of its layers.
        read: gives the entries of one layer, with merge key and place; what is wrong it reports and leaves out.
        named: gives, for a name in a `drop`, whether a merge key is meant by it.
        sink: takes the findings.
        complete: whether every layer is there, so that a `drop` without effect is a mistake.
    """
    entries: dict[Key, Value] = {}
    for part in parts_of(node) if node is not None else ():
        if isinstance(part, Drop):
            for name in _names(part.names, sink):
                _drop(entries, name, named, sink, complete=complete)
            continue
        seen: dict[Key, Node] = {}
        for key, value, place in read(part):
            if key in seen:
                sink.add(place, "E_DUPLICATE_ENTRY", f"the entry is in the list twice, first on line {seen[key].line}")
                continue
            seen[key] = place
            entries[key] = value
    return tuple(entries.values())


def items_of(node: Node, sink: Sink, hint: str) -> tuple[Node, ...]:
    """Return the items of a list; anything else is reported."""
    if isinstance(node, Seq):
        return tuple(item for item in node.items if not isinstance(item, Bad))
    mistyped(node, "a list", sink, hint)
    return ()


def maps_of(node: Node, sink: Sink, hint: str) -> list[Map]:
    """Return the mappings of a list; anything else is reported."""
    maps = []
    for item in items_of(node, sink, hint):
        if isinstance(item, Map):
            maps.append(item)
        else:
            mistyped(item, "a mapping", sink, hint)
    return maps


def _names(node: Node, sink: Sink) -> list[Scalar]:
    names = []
    for item in items_of(node, sink, "write `drop: {env: [NAME]}`"):
        if isinstance(item, Scalar) and kind_of(item) == "text":
            names.append(item)
        else:
            mistyped(item, "text", sink)
    return names


def _drop(
    entries: dict[Key, Value],
    name: Scalar,
    named: Callable[[str, Node], Callable[[Key], bool]],
    sink: Sink,
    *,
    complete: bool,
) -> None:
    try:
        meant = named(name.text, name)
    except Refusal as refusal:
        sink.refuse(name, refusal)
        return
    found = [key for key in entries if meant(key)]
    for key in found:
        del entries[key]
    if not found and complete:
        sink.add(name, "E_VALUE", f"{shown(name.text)} is not there, so that nothing is dropped")
