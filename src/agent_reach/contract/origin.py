"""Where a grant was written, from its node."""

from __future__ import annotations

from agent_reach.contract.model import Origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.nodes import Node

_GROUPS = ("profiles", "targets")


def origin_of(node: Node) -> Origin:
    """Return file, line and holder (a profile, a target or a free block) of a node."""
    return Origin(node.doc.path, node.line, holder_of(node.key))


def holder_of(key: str) -> str:
    """Return the profile, target or free block that a dotted path begins with, empty for the top level."""
    from agent_reach.contract.table import PROFILE_SECTIONS

    parts = key.split(".", 2)
    first = parts[0].partition("[")[0]
    if first in _GROUPS:
        return parts[1].partition("[")[0] if len(parts) > 1 else ""
    return "" if first in PROFILE_SECTIONS else first
