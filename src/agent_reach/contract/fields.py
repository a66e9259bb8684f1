"""Values of a mapping, converted and checked by what the table says of each key."""

from __future__ import annotations

from agent_reach.contract.nodes import Bad, Map, Node, Scalar, Seq
from agent_reach.contract.scalars import flag_of, kind_of, whole_of
from agent_reach.contract.sink import shown, suggestion
from agent_reach.contract.table import HOLDER, NOW, TYPES, Key, children

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.contract.sink import Sink

_KINDS = {"null": "nothing", "flag": "a flag", "whole": "a number", "decimal": "a number", "text": "text"}


class Fields:
    """The keys of one mapping that this version knows; what was wrong with them is in the sink.

    Args:
        mapping: the mapping.
        at: dotted path of the mapping from its holder, as in the table.
        sink: takes the findings.
    """

    def __init__(self, mapping: Map, at: str, sink: Sink) -> None:
        self.mapping = mapping
        self._values: dict[str, object] = {}
        known = children(HOLDER, at)
        for name, entry in mapping.entries.items():
            key = known.get(name)
            if key is None:
                hint = suggestion(name, known) or f"the keys are: {', '.join(sorted(known))}"
                sink.add(entry.key, "E_UNKNOWN_KEY", f"{shown(name)} is not a key here", hint)
            elif key.status != NOW:
                sink.add(entry.key, "E_NOT_YET", f"{name} (planned: {key.planned})")
            else:
                self._values[name] = convert(entry.value, key, sink)

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        value = self._values.get(name)
        return value if isinstance(value, str) else default

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a flag."""
        value = self._values.get(name)
        return value if isinstance(value, bool) else default

    def number(self, name: str) -> int | None:
        """Return a whole number, or None."""
        value = self._values.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        value = self._values.get(name)
        return value if isinstance(value, tuple) else ()

    def node(self, name: str) -> Node | None:
        """Return the node of a mapping, a list or a limit; None when it is absent or was refused."""
        value = self._values.get(name)
        return value if isinstance(value, Node) else None

    def has(self, name: str) -> bool:
        """Whether the key is written, right or wrong."""
        return name in self._values

    def usable(self, name: str) -> bool:
        """Whether the key is written and right."""
        return self._values.get(name) is not None

    def place(self, name: str) -> Node:
        """Return where the value of a key is written, or the mapping itself."""
        return self.mapping.get(name) or self.mapping


def mapping_fields(node: Node | None, at: str, sink: Sink) -> Fields | None:
    """Return the fields of a node that should be a mapping; None when it is absent or something else."""
    return Fields(node, at, sink) if isinstance(node, Map) else None


def convert(node: Node, key: Key, sink: Sink) -> object | None:
    """Return the value of a node by the type of its key, or None when it was refused.

    Args:
        node: the value as written.
        key: its key in the table.
        sink: takes the finding.
    """
    if isinstance(node, Bad):
        return None
    converter = _CONVERTERS.get(key.type)
    return converter(node, key, sink) if converter else node


def mistyped(node: Node, expected: str, sink: Sink, hint: str = "") -> None:
    """Note that a node has another type than expected; says how to quote what YAML takes for a number."""
    if isinstance(node, Bad):
        return
    if isinstance(node, Scalar):
        kind = kind_of(node)
        found = f"{_KINDS[kind]} {shown(node.text)}" if node.text else _KINDS[kind] if node.plain else "empty text"
        if expected.startswith("text") and kind not in ("text", "null"):
            hint = hint or f'quote it: "{node.text}"'
    else:
        found = "a mapping" if isinstance(node, Map) else "a list"
    sink.add(node, "E_TYPE", f"expected {expected}, found {found}", hint)


def _text(node: Node, _key: Key, sink: Sink) -> str | None:
    if not isinstance(node, Scalar) or kind_of(node) != "text":
        mistyped(node, "text", sink)
        return None
    if not all(char.isprintable() for char in node.text):
        sink.add(node, "E_VALUE", "the text holds a control character")
        return None
    return node.text


def _value(node: Node, _key: Key, sink: Sink) -> str | None:
    """Take text, and a whole number that can be written in one way only: 5432, but not 007 or +1."""
    if not isinstance(node, Scalar) or not (kind_of(node) == "text" or _has_one_spelling(node)):
        mistyped(node, "text", sink)
        return None
    if "\0" in node.text:
        sink.add(node, "E_VALUE", "an environment variable cannot hold a NUL")
        return None
    return node.text


def _has_one_spelling(node: Scalar) -> bool:
    return kind_of(node) == "whole" and str(whole_of(node.text)) == node.text


def _flag(node: Node, _key: Key, sink: Sink) -> bool | None:
    if isinstance(node, Scalar) and kind_of(node) == "flag":
        return flag_of(node)
    mistyped(node, "true or false", sink)
    return None


def _choice(node: Node, key: Key, sink: Sink) -> str | None:
    text = _text(node, key, sink)
    if text is None or text in key.values:
        return text
    near = suggestion(text, key.values)
    hint = f"{near} " if near else ""
    sink.add(node, "E_VALUE", f"{shown(text)} is not a {key.name}", f"{hint}the values are: {', '.join(key.values)}")
    return None


def _texts(node: Node, key: Key, sink: Sink) -> tuple[str, ...] | None:
    if not isinstance(node, Seq):
        hint = f"write [{node.text}]" if isinstance(node, Scalar) and node.text else ""
        mistyped(node, "a list", sink, hint)
        return None
    texts = [_text(item, key, sink) for item in node.items if not isinstance(item, Bad)]
    return tuple(text for text in texts if text is not None)


def _port(node: Node, _key: Key, sink: Sink) -> int | None:
    if isinstance(node, Seq):
        sink.add(node, "E_NOT_YET", "port lists (planned: network rules)", "write one rule for each port")
        return None
    if isinstance(node, Scalar) and kind_of(node) == "whole" and _has_one_spelling(node):
        number = whole_of(node.text)
        if 1 <= number <= 65535:
            return number
        sink.add(node, "E_VALUE", f"the port {shown(node.text)} is out of range", "a port is 1 to 65535")
    elif isinstance(node, Scalar) and (node.text == "*" or "-" in node.text.strip("-")):
        sink.add(node, "E_NOT_YET", "port ranges (planned: network rules)", "write one rule for each port")
    else:
        digits = isinstance(node, Scalar) and node.text.isdigit()
        mistyped(node, TYPES["port"], sink, "write it without quotes or leading zeros" if digits else "")
    return None


def _mapping(node: Node, _key: Key, sink: Sink) -> Map | None:
    if isinstance(node, Map):
        return node
    mistyped(node, "a mapping", sink)
    return None


_CONVERTERS: dict[str, Callable[[Node, Key, Sink], object | None]] = {
    "choice": _choice,
    "flag": _flag,
    "mapping": _mapping,
    "path": _text,
    "port": _port,
    "text": _text,
    "texts": _texts,
    "value": _value,
}
