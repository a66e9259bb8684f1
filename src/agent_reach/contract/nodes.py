"""The document as nodes with positions, independent of the YAML library that read it."""

from __future__ import annotations

from agent_reach._util.record import Record


class Doc(Record):
    """One document.

    Args:
        display: its path as the user wrote it, for messages.
        path: its absolute path, for origins.
        directory: absolute path that relative paths in it start from.
    """

    display: str
    path: str
    directory: str


class Node(Record):
    """Something written in a document.

    Args:
        doc: the document.
        line: 1-based line.
        column: 1-based column.
        key: dotted path of the place where it is written, such as ``dev.resources.env[1]``.
    """

    doc: Doc
    line: int
    column: int
    key: str


class Scalar(Node):
    """Text; `plain` when it is not quoted, so that it may also be read as a number, a flag or null."""

    text: str
    plain: bool


class Seq(Node):
    """A list."""

    items: tuple[Node, ...]


class Entry(Record):
    """One key of a mapping, with the position of the key, and its value."""

    key: Scalar
    value: Node


class Map(Node):
    """A mapping in written order. A duplicate key was reported; the first one is kept."""

    entries: dict[str, Entry]

    def get(self, name: str) -> Node | None:
        """Return the value of a key, or None."""
        entry = self.entries.get(name)
        return entry.value if entry else None


class Bad(Node):
    """A place that was reported already; nothing more is said about it."""


class Drop(Node):
    """What a nearer layer takes away from the farther parts of a `Stack`."""

    names: Node


class Stack(Node):
    """Parts of one list from several layers, far to near, merged entry by entry by whoever reads it."""

    parts: tuple[Node, ...]


def parts_of(node: Node) -> tuple[Node, ...]:
    """Return the layers of a list: those of a `Stack`, or the node itself."""
    return node.parts if isinstance(node, Stack) else (node,)
