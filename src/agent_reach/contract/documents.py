"""The documents that take part in one contract: what is a profile, and what each one builds on."""

from __future__ import annotations

import os
import posixpath

from agent_reach.contract.merge import flatten, overlay_all
from agent_reach.contract.nodes import Bad, Doc, Map, Node, Scalar, Seq
from agent_reach.contract.owner import read_owned
from agent_reach.contract.read import read
from agent_reach.contract.scalars import kind_of
from agent_reach.contract.sink import Refusal, shown, suggestion
from agent_reach.contract.table import DOCUMENT, FREE_PREFIXES, HOLDER, PROFILE_SECTIONS, children
from agent_reach.contract.version import check_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.sink import Sink

MAX_HOLDERS = 64
MAX_FILES = 32
_NAME_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class Document:
    """One document: its top level, profiles, free blocks and targets, each without merge keys.

    Args:
        doc: what it is called.
        root: its root mapping.
        sink: takes the findings.
    """

    def __init__(self, doc: Doc, root: Map, sink: Sink) -> None:
        self.doc = doc
        self.profiles: dict[str, Map] = {}
        self.free: dict[str, Map] = {}
        self.targets: dict[str, Map] = {}
        self._sink = sink
        check_version(root, sink)
        self.root = self._resolve_root(root)
        self.top = self._top(self.root)
        self._collect(self.root)

    def text(self, name: str) -> Scalar | None:
        """Return a scalar of the top level, or None; another type is reported."""
        node = self.root.get(name)
        if node is None or isinstance(node, Bad):
            return None
        if isinstance(node, Scalar) and kind_of(node) == "text":
            return node
        self._sink.add(node, "E_TYPE", "expected text")
        return None

    def _resolve_root(self, root: Map) -> Map:
        if "<<" not in root.entries:
            return root
        entries = {"<<": root.entries["<<"]}
        merged = flatten(Map(root.doc, root.line, root.column, root.key, entries), self._sink)
        return Map(root.doc, root.line, root.column, root.key, {**merged.entries, **root.entries})

    def _top(self, root: Map) -> Map:
        names = ("<<", *PROFILE_SECTIONS)
        entries = {name: entry for name, entry in root.entries.items() if name in names}
        return flatten(Map(root.doc, root.line, root.column, root.key, entries), self._sink)

    def _collect(self, root: Map) -> None:
        known = {*children(DOCUMENT, ""), *PROFILE_SECTIONS, "<<"}
        for name, entry in root.entries.items():
            if name in known:
                continue
            if name.startswith(FREE_PREFIXES):
                if isinstance(entry.value, Map):
                    self.free[name] = entry.value
            elif isinstance(entry.value, Map) and _is_profile(entry.value):
                self._hold(self.profiles, entry.key, entry.value)
            elif not isinstance(entry.value, Bad):
                self._unknown(entry.key, entry.value, known)
        for kind, holders in (("profiles", self.profiles), ("targets", self.targets)):
            self._named(root, kind, holders)
        self._not_yet(root)

    def _named(self, root: Map, kind: str, holders: dict[str, Map]) -> None:
        node = root.get(kind)
        if node is None or isinstance(node, Bad):
            return
        if not isinstance(node, Map):
            self._sink.add(node, "E_TYPE", "expected a mapping", f"write `{kind}: {{dev: {{resources: …}}}}`")
            return
        for entry in node.entries.values():
            if isinstance(entry.value, Map):
                self._hold(holders, entry.key, entry.value)
            elif not isinstance(entry.value, Bad):
                self._sink.add(entry.value, "E_TYPE", "expected a mapping")

    def _hold(self, holders: dict[str, Map], key: Scalar, value: Map) -> None:
        name = key.text
        if name in holders:
            self._sink.add(key, "E_DUPLICATE_KEY", f"the profile {shown(name)} is written twice")
        elif not name or not _NAME_CHARS.issuperset(name):
            self._sink.add(key, "E_VALUE", f"{shown(name)} is not a name", "use letters, digits, `-` and `_`")
        elif len(holders) >= MAX_HOLDERS:
            self._sink.add(key, "E_SIZE", f"the contract has more than {MAX_HOLDERS} profiles or targets")
        else:
            holders[name] = flatten(value, self._sink)

    def _unknown(self, key: Scalar, value: Node, known: set[str]) -> None:
        below = children(HOLDER, "resources")
        hint = suggestion(key.text, (*known, *below))
        if hint and hint.split("`")[1] not in known:
            hint = hint.replace("`", "`resources.", 1)
        if not hint:
            empty = isinstance(value, Map) and not value.entries
            why = "is empty" if empty else "holds other keys than those of a profile"
            hint = f"a profile is a mapping of {', '.join(PROFILE_SECTIONS[2:4])} and so on; this {why}"
            hint += "; anchors may stand in `x-…` and `base_…`"
        self._sink.add(key, "E_UNKNOWN_KEY", f"{shown(key.text)} is not a key of a contract", hint)

    def _not_yet(self, root: Map) -> None:
        for name, key in children(DOCUMENT, "").items():
            entry = root.entries.get(name)
            if entry and key.planned:
                self._sink.add(entry.key, "E_NOT_YET", f"{name} (planned: {key.planned})")


class Library:
    """All documents of one contract, read once each.

    Args:
        main: the document that was asked for.
        sink: takes the findings.
    """

    def __init__(self, main: Document, sink: Sink) -> None:
        self.main = main
        self.parts: dict[str, bytes] = {}
        self._documents: dict[str, Document | None] = {main.doc.path: main}
        self._root = repository_root(main.doc.directory)
        self._sink = sink

    def layers(self, document: Document, name: str) -> list[Map]:
        """Return what a profile is made of, far to near.

        Args:
            document: the document that holds it.
            name: the profile, or empty for the top level alone.
        """
        walk = _Walk()
        self._visit(document, "", walk)
        if name:
            self._visit(document, name, walk)
        return walk.layers

    def whole(self, document: Document, name: str) -> Map:
        """Return a profile with everything that it builds on, as one holder."""
        return self.laid(document, self.layers(document, name))

    def target(self, document: Document, name: str) -> Map:
        """Return a target with everything that it builds on, as one holder, without the top level."""
        walk = _Walk()
        self._add(document, document.targets[name], walk)
        return self.laid(document, walk.layers)

    def laid(self, document: Document, layers: list[Map]) -> Map:
        """Lay holders over each other, the last on top."""
        return overlay_all(layers, Map(document.doc, 1, 1, "", {}), self._sink)

    def _visit(self, document: Document, name: str, walk: _Walk) -> None:
        mark = (document.doc.path, name)
        if mark in walk.done:
            return
        walk.open.append(mark)
        self._add(document, _holder(document, name, self._sink), walk)
        walk.open.pop()
        walk.done.add(mark)

    def _add(self, document: Document, holder: Map, walk: _Walk) -> None:
        """Add what a holder builds on, then the holder."""
        for reference in self._extends(holder):
            self._follow(document, reference, walk)
        rest = {key: entry for key, entry in holder.entries.items() if key != "extends"}
        walk.layers.append(Map(holder.doc, holder.line, holder.column, holder.key, rest))

    def _follow(self, document: Document, reference: Scalar, walk: _Walk) -> None:
        path, mark, name = reference.text.partition("#")
        is_file = bool(mark) or "/" in path or path.endswith((".yaml", ".yml"))
        other = self._open(document, path, reference) if is_file else document
        target = name if is_file else path
        if other is None:
            return
        known = {**other.profiles, **other.free}
        if target and target not in known:
            hint = suggestion(target, known) or f"it has: {', '.join(sorted(other.profiles)) or 'none'}"
            self._sink.add(reference, "E_EXTENDS", f"there is no profile {shown(target)} in {other.doc.display}", hint)
            return
        steps = (["", target] if target else [""]) if is_file else [target]
        if any((other.doc.path, step) in walk.open for step in steps if step or other is not document):
            self._sink.add(reference, "E_EXTENDS", f"{shown(reference.text)} builds on itself")
            return
        for step in steps:
            if (other.doc.path, step) not in walk.open:
                self._visit(other, step, walk)

    def _extends(self, holder: Map) -> list[Scalar]:
        node = holder.get("extends")
        if node is None:
            return []
        items = node.items if isinstance(node, Seq) else (node,)
        for item in items:
            if not isinstance(item, Bad) and not (isinstance(item, Scalar) and kind_of(item) == "text" and item.text):
                self._sink.add(item, "E_TYPE", "expected the name of a profile, or `file.yaml#profile`")
        return [item for item in items if isinstance(item, Scalar) and kind_of(item) == "text" and item.text]

    def _open(self, document: Document, written: str, reference: Scalar) -> Document | None:
        """Read another document, inside the repository, once."""
        path = posixpath.normpath(posixpath.join(document.doc.directory, written))
        if not _inside(os.path.realpath(path), os.path.realpath(self._root)):
            hint = f"the repository is {self._root}"
            self._sink.add(reference, "E_EXTENDS", f"{shown(written)} leads out of the repository", hint)
            return None
        if path in self._documents:
            return self._documents[path]
        self._documents[path] = None
        if len(self._documents) > MAX_FILES:
            self._sink.add(reference, "E_SIZE", f"the contract is spread over more than {MAX_FILES} files")
            return None
        try:
            data = read_owned(path)
        except Refusal as refusal:
            self._sink.refuse(reference, refusal)
            return None
        self.parts[path] = data
        display = posixpath.normpath(posixpath.join(posixpath.dirname(document.doc.display), written))
        self._documents[path] = parse(data, Doc(display, path, posixpath.dirname(path)), self._sink)
        return self._documents[path]


class _Walk:
    """State of one walk along `extends`: what is open (a cycle), what is done, and the layers so far."""

    def __init__(self) -> None:
        self.open: list[tuple[str, str]] = []
        self.done: set[tuple[str, str]] = set()
        self.layers: list[Map] = []


def parse(data: bytes, doc: Doc, sink: Sink) -> Document | None:
    """Read a document and sort out its profiles; None when it is not a mapping.

    Args:
        data: content.
        doc: what it is called.
        sink: takes the findings.
    """
    before = len(sink.findings)
    root = read(data, doc, sink)
    if isinstance(root, Map) and root.entries:
        return Document(doc, root, sink)
    if root is None or (isinstance(root, Scalar) and kind_of(root) == "null") or isinstance(root, Map):
        if len(sink.findings) == before:
            sink.add(Bad(doc, 1, 1, ""), "E_EMPTY", "the contract is empty", 'the first line is `version: "1.0"`')
    elif not isinstance(root, Bad):
        sink.add(root, "E_TYPE", "expected a mapping at the top of the contract")
    return None


def repository_root(directory: str) -> str:
    """Return the directory upward that holds `.git`, or the directory itself."""
    here = directory
    while not os.path.lexists(posixpath.join(here, ".git")):
        above = posixpath.dirname(here)
        if above == here:
            return directory
        here = above
    return here


def _holder(document: Document, name: str, sink: Sink) -> Map:
    if not name:
        return document.top
    return document.profiles.get(name) or flatten(document.free[name], sink)


def _is_profile(node: Map) -> bool:
    """Whether a mapping is a profile: one section among its keys makes the others typos in a profile."""
    sections = set(children(HOLDER, "")) | {"<<"}
    return any(name in sections for name in node.entries)


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
