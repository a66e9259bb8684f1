"""Layers of sections laid over each other: `<<`, `extends`, targets.

Merging happens on nodes, so that every part keeps the line that it was written on. Mappings merge key by key. The
four lists of `MERGED_LISTS` become a `Stack` of parts, which whoever reads the list merges entry by entry; a `drop`
becomes a part that takes entries away from the parts below it. Everything else is replaced by the nearer layer.
Laying over is associative.
"""

from __future__ import annotations

from agent_reach.contract.nodes import Bad, Drop, Entry, Map, Node, Scalar, Seq, Stack, parts_of
from agent_reach.contract.read import MERGE_KEY
from agent_reach.contract.sink import shown, suggestion
from agent_reach.contract.table import HOLDER, MERGED_LISTS, children

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_reach.contract.sink import Sink

_DROPS = {
    "files": "resources.files",
    "env": "resources.env",
    "allow_outbound": "resources.network.allow_outbound",
    "commands": "resources.commands",
}


def overlay(far: Node, near: Node, sink: Sink, at: str = "") -> Node:
    """Lay a nearer node over a farther one.

    Args:
        far: node of the farther layer, without merge keys (see `flatten`).
        near: node of the nearer layer, without merge keys.
        sink: takes a finding when a mapping is laid over something else, which would be ignored in silence.
        at: dotted path from the holder.
    """
    if at in MERGED_LISTS:
        return Stack(near.doc, near.line, near.column, near.key, (*parts_of(far), *parts_of(near)))
    if isinstance(near, Map) and isinstance(far, Map):
        return _overlay_maps(far, near, sink, at)
    if isinstance(near, Map) and not isinstance(far, Bad):
        sink.add(far, "E_TYPE", f"expected a mapping, because line {near.line} of {near.doc.display} adds keys to it")
    return near


def overlay_all(layers: Iterable[Map], empty: Map, sink: Sink) -> Map:
    """Lay holders over each other, far to near."""
    result = empty
    for layer in layers:
        laid = overlay(result, layer, sink)
        result = laid if isinstance(laid, Map) else result
    return result


def flatten(holder: Map, sink: Sink) -> Map:
    """Return a holder of sections without `<<`, `drop` and aliases of keys.

    Args:
        holder: the top level, a profile or a target as written.
        sink: takes the findings.
    """
    flat = _merged_keys(holder, sink, "")
    if not isinstance(flat, Map):
        return holder
    return _with_drops(_with_alias(flat, sink), sink)


def _overlay_maps(far: Map, near: Map, sink: Sink, at: str) -> Map:
    entries = dict(far.entries)
    for name, entry in near.entries.items():
        below = far.entries.get(name)
        path = f"{at}.{name}" if at else name
        entries[name] = Entry(entry.key, overlay(below.value, entry.value, sink, path)) if below else entry
    return Map(near.doc, near.line, near.column, near.key, entries)


def _merged_keys(node: Node, sink: Sink, at: str) -> Node:
    """Resolve every `<<` in a node, deeply."""
    if isinstance(node, Seq):
        items = tuple(_merged_keys(item, sink, f"{at}[]") for item in node.items)
        return Seq(node.doc, node.line, node.column, node.key, items)
    if not isinstance(node, Map):
        return node
    entries = {
        name: Entry(entry.key, _merged_keys(entry.value, sink, f"{at}.{name}" if at else name))
        for name, entry in node.entries.items()
        if name != MERGE_KEY
    }
    own: Node = Map(node.doc, node.line, node.column, node.key, entries)
    for far in _merge_sources(node, sink):
        own = overlay(_merged_keys(far, sink, at), own, sink, at)
    return own


def _merge_sources(node: Map, sink: Sink) -> list[Map]:
    """Return what `<<` names, near to far: in a list of several, YAML lets the earlier one win."""
    value = node.get(MERGE_KEY)
    if value is None or isinstance(value, Bad):
        return []
    sources = value.items if isinstance(value, Seq) else (value,)
    for source in sources:
        if not isinstance(source, Map | Bad):
            sink.add(value, "E_TYPE", "`<<` takes a mapping or a list of mappings", "write `<<: *name`")
    return [source for source in sources if isinstance(source, Map)]


def _with_alias(holder: Map, sink: Sink) -> Map:
    """Move `allowed_files` to `resources.files`, below what stands there."""
    entry = holder.entries.get("allowed_files")
    if entry is None:
        return holder
    rest = {name: other for name, other in holder.entries.items() if name != "allowed_files"}
    near = Map(holder.doc, holder.line, holder.column, holder.key, rest)
    far = _nested(holder, entry.key, "resources.files", entry.value)
    laid = overlay(far, near, sink)
    return laid if isinstance(laid, Map) else near


def _with_drops(holder: Map, sink: Sink) -> Map:
    """Turn `drop` into parts below the lists of the same layer."""
    entry = holder.entries.get("drop")
    if entry is None:
        return holder
    rest = {name: other for name, other in holder.entries.items() if name != "drop"}
    result = Map(holder.doc, holder.line, holder.column, holder.key, rest)
    if not isinstance(entry.value, Map):
        sink.add(entry.value, "E_TYPE", "expected a mapping", "write `drop: {env: [NAME]}`")
        return result
    for name, dropped in entry.value.entries.items():
        if name not in _DROPS:
            known = children(HOLDER, "drop")
            sink.add(dropped.key, "E_UNKNOWN_KEY", f"{shown(name)} cannot be dropped from", suggestion(name, known))
            continue
        place = dropped.value
        part = Drop(place.doc, place.line, place.column, place.key, place)
        laid = overlay(_nested(holder, dropped.key, _DROPS[name], part), result, sink)
        result = laid if isinstance(laid, Map) else result
    return result


def _nested(holder: Map, key: Scalar, path: str, value: Node) -> Map:
    """Return a mapping that holds a value at a dotted path."""
    node = value
    for name in reversed(path.split(".")):
        node = Map(holder.doc, value.line, value.column, value.key, {name: Entry(key, node)})
    return node if isinstance(node, Map) else holder
