"""`resources.files`: paths, modes, sources."""

from __future__ import annotations

from agent_reach.contract import paths
from agent_reach.contract.fields import Fields
from agent_reach.contract.lists import maps_of, merge_list
from agent_reach.contract.model import FileGrant
from agent_reach.contract.origin import origin_of
from agent_reach.contract.sink import Refusal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_reach.contract.nodes import Map, Node
    from agent_reach.contract.sink import Sink

READ_ONLY = ("r", "rb")
_HINT = "write `- {path: /data/in.csv, mode: r}`"
_SHA256_DIGITS = 64
_MODES = {"rb+": "r+b"}  # two spellings of open(); everything behind this sees one


def files(node: Node | None, home: str, sink: Sink, *, complete: bool) -> tuple[FileGrant, ...]:
    """Return the file grants of a holder.

    Args:
        node: ``resources.files``, or the stack of its layers.
        home: the caller's home.
        sink: takes the findings.
        complete: whether every layer is there.
    """

    def read(part: Node) -> Iterator[tuple[str, FileGrant, Node]]:
        for entry in maps_of(part, sink, _HINT):
            grant = _grant(entry, home, sink)
            if grant is not None:
                yield grant.path, grant, entry

    def named(name: str, place: Node) -> Callable[[str], bool]:
        path = paths.resolve(name, place.doc.directory, home)
        return lambda key: key == path

    return merge_list(node, read, named, sink, complete=complete)


def _grant(entry: Map, home: str, sink: Sink) -> FileGrant | None:
    fields = Fields(entry, "resources.files[]", sink)
    written = fields.text("path")
    if not fields.has("path"):
        sink.add(entry, "E_MISSING", "`path` is absent", _HINT)
    if not fields.usable("path"):
        return None
    mode = _MODES.get(fields.text("mode", "r"), fields.text("mode", "r"))
    try:
        path = paths.resolve(written, entry.doc.directory, home)
    except Refusal as refusal:
        sink.refuse(fields.place("path"), refusal)
        return None
    glob = paths.is_glob(written)
    if glob and mode not in READ_ONLY:
        hint = "grant the directory, with a trailing `/`"
        sink.add(fields.place("path"), "E_PATH", f"{shown(written)} is a pattern, and patterns are read-only", hint)
    return FileGrant(
        path=path,
        mode=mode,
        required=fields.flag("required"),
        directory=paths.is_directory(written),
        source=_source(fields, mode, glob=glob, sink=sink),
        sha256=_sha256(fields, sink),
        glob=glob,
        origin=origin_of(entry),
    )


def _source(fields: Fields, mode: str, *, glob: bool, sink: Sink) -> str:
    source = fields.text("source")
    if not fields.usable("source"):
        return ""
    place = fields.place("source")
    scheme, mark, rest = source.partition("://")
    if not mark or not rest or not scheme.replace("+", "").replace("-", "").isalnum():
        sink.add(place, "E_VALUE", f"{shown(source)} is not a URI", "write scheme://…, such as https://… or file://./x")
    elif scheme == "http":
        sink.add(place, "E_VALUE", "http:// content can be changed on the way", "write https://…")
    elif "${" in source:
        sink.add(place, "E_VALUE", f"{shown(source)} holds a variable; nothing is expanded in a source")
    elif mode not in READ_ONLY:
        hint = "what is written there would be lost: use mode `r`"
        sink.add(place, "E_VALUE", "a file with a `source` can only be read", hint)
    elif glob or paths.is_directory(fields.text("path")):
        sink.add(place, "E_VALUE", "a `source` is one file", "write the path of a file")
    return source


def _sha256(fields: Fields, sink: Sink) -> str:
    digest = fields.text("sha256").lower()
    if fields.usable("sha256"):
        place = fields.place("sha256")
        if len(digest) != _SHA256_DIGITS or any(char not in "0123456789abcdef" for char in digest):
            sink.add(place, "E_VALUE", f"{shown(digest)} is not a SHA-256 digest", "it has 64 hexadecimal digits")
        elif not fields.has("source"):
            sink.add(place, "E_VALUE", "`sha256` checks the content of a `source`, and there is none")
    return digest
