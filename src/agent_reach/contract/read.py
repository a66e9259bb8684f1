"""Bytes of a `reach.yaml` to nodes with positions: one document, no tags, bounded in every direction.

PyYAML delivers events, one at a time and without recursion; its composer is not used, because it recurses, keeps the
last of two duplicate keys in silence, and expands nothing but lets a walker expand everything (a document of 236
bytes becomes 66,430 nodes).
"""

from __future__ import annotations

from agent_reach.contract.nodes import Bad, Doc, Entry, Map, Node, Scalar, Seq
from agent_reach.contract.sink import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from agent_reach.contract.sink import Sink

    class _Mark(Protocol):
        line: int
        column: int

    class _Event(Protocol):
        """The attributes of PyYAML's events that are used; each event has some of them."""

        anchor: str | None
        tag: str | None
        value: str
        style: str | None
        start_mark: _Mark
        end_mark: _Mark


MAX_BYTES = 1 << 20
MAX_NODES = 50_000
MAX_DEPTH = 32
MERGE_KEY = "<<"

# C0 but tab, LF, CR; DEL and C1; line and paragraph separator; bidirectional overrides, which make a contract read
# differently from what it says (CVE-2021-42574); byte order mark inside.
_FORBIDDEN = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"


class Unreadable(Exception):  # noqa: N818 - ends the reading; what is wrong is in the sink
    """The document cannot be read further; the reason is in the sink."""


def read(data: bytes, doc: Doc, sink: Sink) -> Node | None:
    """Return the root node of a document, or None when it cannot be read or is empty.

    Args:
        data: content of the file.
        doc: what it is called.
        sink: takes the findings.
    """
    try:
        text = _decode(data, doc, sink)
        reader = _Reader(doc, sink)
        for event in _events(text, doc, sink):
            reader.take(event)
    except Unreadable:
        return None
    _find_tabs(text, reader, doc, sink)
    return reader.root


def _decode(data: bytes, doc: Doc, sink: Sink) -> str:
    import re

    if len(data) > MAX_BYTES:
        sink.add(_at(doc, 1, 1), "E_SIZE", "the file is larger than 1 MiB")
        raise Unreadable
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        sink.add(_at(doc, line, 1), "E_ENCODING", "the file is not UTF-8", "save it as UTF-8")
        raise Unreadable from None
    found = re.search(_FORBIDDEN, text)
    if found:
        before = text[: found.start()]
        place = _at(doc, before.count("\n") + 1, len(before) - before.rfind("\n"))
        name = f"U+{ord(found.group()):04X}"
        sink.add(place, "E_ENCODING", f"the file holds the character {name}", "in a quoted text it may be escaped")
        raise Unreadable
    return text


def _events(text: str, doc: Doc, sink: Sink) -> Iterator[_Event]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    events: Iterator[_Event] = yaml.parse(text, Loader=loader)  # type: ignore[assignment]  # see _Event
    try:
        yield from events
    except yaml.YAMLError as error:
        _syntax(error, text, doc, sink)
        raise Unreadable from None


def _syntax(error: Exception, text: str, doc: Doc, sink: Sink) -> None:
    """Note what the parser did not take; a tab gets its own words."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or "not YAML").replace("'\\t'", "a tab")
    line = mark.line + 1 if mark else 1
    lines = text.splitlines()
    written = lines[line - 1] if line <= len(lines) else ""
    place = _at(doc, line, mark.column + 1 if mark else 1)
    if "\t" in written[: len(written) - len(written.lstrip())]:
        _tab(place, sink)
    else:
        context = getattr(error, "context", None)
        about = f" {context}" if context else ""
        sink.add(place, "E_SYNTAX", f"{problem}{about}")


def _find_tabs(text: str, reader: _Reader, doc: Doc, sink: Sink) -> None:
    """Note lines indented with a tab that the parser took (inside brackets); text over several lines may have them."""
    if "\t" not in text:
        return
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.lstrip()
        indent = line[: len(line) - len(bare)]
        if "\t" in indent and bare and not bare.startswith("#") and number not in reader.text_lines:
            _tab(_at(doc, number, indent.index("\t") + 1), sink)


def _tab(place: Node, sink: Sink) -> None:
    sink.add(place, "E_TAB", "the line is indented with a tab", "YAML indents with spaces: use two")


def _at(doc: Doc, line: int, column: int, key: str = "") -> Bad:
    return Bad(doc, line, column, key)


class _Frame:
    """A list or mapping that is still open."""

    __slots__ = ("anchor", "column", "entries", "is_map", "items", "key", "line", "pending", "size")

    def __init__(self, event: _Event, key: str, *, is_map: bool) -> None:
        self.line, self.column = event.start_mark.line + 1, event.start_mark.column + 1
        self.anchor: str | None = event.anchor
        self.key = key
        self.is_map = is_map
        self.items: list[Node] = []
        self.entries: dict[str, Entry] = {}
        self.pending: Scalar | None = None
        self.size = 1


class _Reader:
    """Builds nodes from events, with its own stack.

    Args:
        doc: the document.
        sink: takes the findings.
    """

    def __init__(self, doc: Doc, sink: Sink) -> None:
        self.root: Node | None = None
        self.text_lines: set[int] = set()
        self._doc, self._sink = doc, sink
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._documents = 0
        self._nodes = 0

    def take(self, event: _Event) -> None:
        """Take one event of the parser."""
        name = type(event).__name__.removesuffix("Event")
        if name == "DocumentStart":
            self._start_document(event)
        elif name == "Alias":
            self._alias(event)
        elif name == "Scalar":
            self._scalar(event)
        elif name in ("SequenceStart", "MappingStart"):
            self._open(event, is_map=name == "MappingStart")
        elif name in ("SequenceEnd", "MappingEnd"):
            self._close()

    def _start_document(self, event: _Event) -> None:
        self._documents += 1
        if self._documents > 1:
            place = self._place(event, "")
            self._sink.add(place, "E_DOCUMENTS", "the file holds more than one document", "a contract is one document")
            raise Unreadable

    def _open(self, event: _Event, *, is_map: bool) -> None:
        key = self._next_key()
        self._no_tag(event, key)
        if len(self._frames) >= MAX_DEPTH:
            self._sink.add(self._place(event, key), "E_SIZE", f"nested deeper than {MAX_DEPTH} levels")
            raise Unreadable
        self._name_anchor(event, key)
        self._frames.append(_Frame(event, key, is_map=is_map))

    def _close(self) -> None:
        frame = self._frames.pop()
        place = (self._doc, frame.line, frame.column, frame.key)
        node: Node = Map(*place, frame.entries) if frame.is_map else Seq(*place, tuple(frame.items))
        self._place_node(node, frame.size, frame.anchor)

    def _scalar(self, event: _Event) -> None:
        key = self._next_key()
        self._no_tag(event, key)
        self._name_anchor(event, key)
        start, end = event.start_mark, event.end_mark
        self.text_lines.update(range(start.line + 2, end.line + 2))
        node = Scalar(self._doc, start.line + 1, start.column + 1, key, event.value, not event.style)
        self._place_node(node, 1, event.anchor)

    def _alias(self, event: _Event) -> None:
        place = self._place(event, self._next_key())
        anchor = event.anchor or ""
        name = shown(anchor)
        if anchor not in self._anchors:
            known = ", ".join(sorted(self._anchors)) or "none"
            self._sink.add(place, "E_ALIAS", f"the alias {name} has no anchor before it", f"anchors so far: {known}")
            self._place_node(place, 1, None)
            return
        anchored = self._anchors[anchor]
        if anchored is None:
            self._sink.add(place, "E_ALIAS", f"the alias {name} stands inside its own anchor")
            raise Unreadable
        self._place_node(*anchored, None, place)

    def _place_node(self, node: Node, size: int, anchor: str | None, alias: Node | None = None) -> None:
        """Put a complete node into the open list or mapping; `size` counts it with its aliases expanded."""
        self._nodes += 1
        if anchor is not None:
            self._anchors[anchor] = (node, size)
        if not self._frames:
            self.root = node
            return
        frame = self._frames[-1]
        frame.size += size
        if self._nodes > MAX_NODES or frame.size > MAX_NODES:
            code = "E_SIZE" if self._nodes > MAX_NODES else "E_ALIAS"
            how = "" if self._nodes > MAX_NODES else " once its aliases are expanded"
            self._sink.add(alias or node, code, f"the contract has more than {MAX_NODES} entries{how}")
            raise Unreadable
        if frame.is_map:
            self._place_in_map(frame, node)
        else:
            frame.items.append(node)

    def _place_in_map(self, frame: _Frame, node: Node) -> None:
        if frame.pending is None:
            frame.pending = self._as_key(node, frame.key)
            return
        key, frame.pending = frame.pending, None
        first = frame.entries.get(key.text)
        if first is None:
            frame.entries[key.text] = Entry(key, node)
        else:
            hint = "merge several with `<<: [*one, *two]`" if key.text == MERGE_KEY else ""
            message = f"{shown(key.text)} is written twice, first on line {first.key.line}"
            self._sink.add(key, "E_DUPLICATE_KEY", message, hint)

    def _as_key(self, node: Node, parent: str) -> Scalar:
        """Return a key with its own dotted path; what cannot be one gets a name that nothing knows."""
        text = node.text if isinstance(node, Scalar) else f"?{node.line}:{node.column}"
        if not isinstance(node, Scalar | Bad):
            self._sink.add(node, "E_TYPE", "a key has to be text")
        return Scalar(node.doc, node.line, node.column, joined(parent, text), text, plain=False)

    def _next_key(self) -> str:
        """Return the dotted path of whatever comes next; a key has the path of its own value."""
        if not self._frames:
            return ""
        frame = self._frames[-1]
        if not frame.is_map:
            return f"{frame.key}[{len(frame.items)}]"
        return joined(frame.key, frame.pending.text) if frame.pending else frame.key

    def _no_tag(self, event: _Event, key: str) -> None:
        if event.tag is not None:
            tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
            self._sink.add(self._place(event, key), "E_TAG", f"the tag {shown(tag)} is used", "contracts have no tags")

    def _name_anchor(self, event: _Event, key: str) -> None:
        if event.anchor is None:
            return
        if event.anchor in self._anchors:
            place = self._place(event, key)
            self._sink.add(place, "E_ALIAS", f"the anchor {shown(event.anchor)} is defined twice")
        self._anchors[event.anchor] = None

    def _place(self, event: _Event, key: str) -> Bad:
        return _at(self._doc, event.start_mark.line + 1, event.start_mark.column + 1, key)


def joined(path: str, name: str) -> str:
    """Return a dotted path with one more name; a name that is no identifier is shown in brackets."""
    clean = name.replace("-", "_").replace("<<", "").replace("*", "")
    if name and (clean.isidentifier() or not clean) and name.isascii():
        return f"{path}.{name}" if path else name
    return f"{path}[{shown(name)[1:-1]!r}]" if path else shown(name)[1:-1]
