"""`version`: which format a document is written in."""

from __future__ import annotations

from agent_reach.contract.nodes import Bad, Map, Scalar
from agent_reach.contract.scalars import kind_of
from agent_reach.contract.sink import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.sink import Sink

MAJOR = "1"
NEWEST_MINOR = 0
LINE = 'version: "1.0"'


def check_version(root: Map, sink: Sink) -> None:
    """Note a version that is absent, of another major number, or newer than this reach.

    Args:
        root: the document.
        sink: takes the finding.
    """
    node = root.get("version")
    if node is None:
        sink.add(Bad(root.doc, 1, 1, "version"), "E_VERSION", "`version` is absent", f"add the line: {LINE}")
        return
    if isinstance(node, Bad):
        return
    if not isinstance(node, Scalar) or kind_of(node) not in ("text", "whole", "decimal"):
        sink.add(node, "E_VERSION", "expected a version", f"write: {LINE}")
        return
    major, _dot, minor = node.text.partition(".")
    if major != MAJOR or not (node.text == MAJOR or (minor.isascii() and minor.isdigit())):
        sink.add(node, "E_VERSION", f"the version {shown(node.text)} is unknown", f"this reach knows: {LINE}")
    elif minor and int(minor[:6]) > NEWEST_MINOR:
        from agent_reach import __version__

        message = f"the contract is written in version {node.text}, which needs a reach newer than {__version__}"
        sink.add(node, "E_VERSION", message, "upgrade reach")
