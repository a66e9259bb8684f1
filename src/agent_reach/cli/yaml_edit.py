"""Add an entry to a YAML document as text, so that comments, order and style of everything else stay.

The place is found by the positions of the nodes. Whoever calls this loads the result and compares: a document
that is written in a way which is not foreseen here is then left alone.
"""

from __future__ import annotations

from agent_reach.contract.nodes import Map, Seq

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.nodes import Entry, Node


class CannotEdit(Exception):  # noqa: N818 - the answer is "do it by hand"
    """The document is written in a way that this module does not change."""


def add(text: str, holder: Map, path: tuple[str, ...], entry: str, *, named: str = "") -> str:
    """Return the text with one entry more in a list, or one key more in a mapping.

    Args:
        text: the document.
        holder: the mapping in it that `path` starts from, freshly read from `text`.
        path: keys, such as ``("resources", "files")``; what is missing of them is written too.
        entry: the new item in one line; with `named`, the value.
        named: the new key, when the last of `path` is a mapping.

    Raises:
        CannotEdit: an alias, a merge or another form stands in the way.
    """
    node: Node = holder
    for depth, name in enumerate(path):
        if not isinstance(node, Map):
            raise CannotEdit
        below = node.entries.get(name)
        if below is None:
            return _into_map(text, node, path[depth:], entry, named)
        _check_own(text, below)
        node = below.value
    if isinstance(node, Map):
        if named:
            return _into_map(text, node, (), entry, named)
        raise CannotEdit
    if not isinstance(node, Seq) or named:
        raise CannotEdit
    return _into_list(text, node, entry)


def _check_own(text: str, entry: Entry) -> None:
    """Refuse a value that is an alias, an anchor or written elsewhere: others would change with it."""
    line = text.split("\n")[entry.key.line - 1]
    behind = line[entry.key.column - 1 :].partition(":")[2].lstrip()
    if behind.startswith(("*", "&", "!")) or entry.value.line < entry.key.line:
        raise CannotEdit


def _into_list(text: str, node: Seq, entry: str) -> str:
    """Put an item in front of the first one, or make an empty ``[]`` a list of lines."""
    lines = text.split("\n")
    index, column = node.line - 1, node.column - 1
    line = lines[index]
    if line[column : column + 1] == "-":
        lines.insert(index, f"{line[:column]}- {entry}")
        return "\n".join(lines)
    if line[column : column + 1] != "[":
        raise CannotEdit
    if node.items:
        lines[index] = f"{line[: column + 1]}{entry}, {line[column + 1 :]}"
        return "\n".join(lines)
    if not line[column:].startswith("[]") or "{" in line[:column] or "[" in line[:column]:
        raise CannotEdit
    indent = len(line) - len(line.lstrip(" "))
    rest = line[column + 2 :].rstrip()
    lines[index] = line[:column].rstrip() + (f"  {rest.lstrip()}" if rest else "")
    lines.insert(index + 1, f"{' ' * (indent + 2)}- {entry}")
    return "\n".join(lines)


def _into_map(text: str, node: Map, path: tuple[str, ...], entry: str, named: str) -> str:
    """Put keys in front of the first one of a mapping; at the top of a document, behind the last line."""
    lines = text.split("\n")
    index, column = node.line - 1, node.column - 1
    if lines[index][column : column + 1] == "{":
        value = f"{{{named}: {entry}}}" if named else f"[{entry}]"
        for name in reversed(path):
            value = f"{{{name}: {value}}}"
        inner = value[1:-1] if path or named else value
        comma = ", " if node.entries else ""
        lines[index] = f"{lines[index][: column + 1]}{inner}{comma}{lines[index][column + 1 :]}"
        return "\n".join(lines)
    if not node.entries:
        raise CannotEdit
    new = [f"{' ' * (column + 2 * depth)}{name}:" for depth, name in enumerate(path)]
    indent = " " * (column + 2 * len(path))
    new.append(f"{indent}{named}: {entry}" if named else f"{indent}- {entry}")
    if column == 0:
        return "\n".join([text.rstrip("\n"), *new, ""])
    if lines[index][:column].strip():
        raise CannotEdit
    return "\n".join([*lines[:index], *new, *lines[index:]])
