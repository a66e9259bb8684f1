"""Where a section of the contract is written, for the clause of a denial."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.model import Contract
    from agent_reach.contract.nodes import Map

_SECTION = "resources."
_OF_FILES = "granted for "


def located(clause: str, contract: Contract, cwd: str) -> str:
    """Add ``(file:line, profile)`` to a clause that names a section.

    Args:
        clause: such as ``not in resources.files``; one that has its place already, or is no part of the contract,
            is returned as it is.
        contract: the contract of the run.
        cwd: working directory of the caller.
    """
    section = _section(clause)
    if not section or clause.endswith(")"):
        return clause
    if not contract.path:
        return f"{clause} (no contract)"
    line = line_of(contract, section)
    place = shorten(contract.path, cwd) + (f":{line}" if line else "")
    return f"{clause} ({place}, profile {contract.profile})" if contract.profile else f"{clause} ({place})"


def _section(clause: str) -> str:
    """Return the section that a clause names, such as ``resources.files``, or nothing."""
    if clause.startswith(_OF_FILES):
        return "resources.files"
    words = (word.rstrip(":;,") for word in clause.split())
    return next((word for word in words if word.startswith(_SECTION)), "")


def line_of(contract: Contract, section: str) -> int:
    """Return the line of a section, in the chosen profile first, or of the nearest part of it that is there.

    The document is read again: this is needed at a denial only, and a contract that has changed meanwhile, or
    came from a descriptor, has no line.
    """
    from agent_reach.contract.nodes import Doc, Map
    from agent_reach.contract.owner import read_owned
    from agent_reach.contract.read import read
    from agent_reach.contract.sink import Refusal, Sink

    try:
        data = read_owned(contract.path)
    except Refusal:
        return 0
    root = read(data, Doc(contract.path, contract.path, os.path.dirname(contract.path)), Sink())
    if not isinstance(root, Map):
        return 0
    best = (0, 0)
    for holder in holders(root, contract.profile) or [root]:
        depth, line = _deepest(holder, section.split("."))
        if depth > best[0]:
            best = (depth, line)
    return best[1]


def holders(root: Map, profile: str) -> list[Map]:
    """Return the mapping of the profile, if the document has it, and the top level.

    Args:
        root: the document.
        profile: name of the profile, empty for none.
    """
    from agent_reach.contract.nodes import Map

    named = root.get("profiles")
    for place in (named, root) if profile else ():
        found = place.get(profile) if isinstance(place, Map) else None
        if isinstance(found, Map):
            return [found, root]
    return [] if profile else [root]


def _deepest(holder: object, names: list[str]) -> tuple[int, int]:
    """Follow names as far as they go; return how far, and the line of the last one."""
    from agent_reach.contract.nodes import Map

    depth = line = 0
    node = holder
    for name in names:
        entry = node.entries.get(name) if isinstance(node, Map) else None
        if entry is None:
            break
        depth, line, node = depth + 1, entry.key.line, entry.value
    return depth, line


def shorten(path: str, cwd: str) -> str:
    """Return a path as a person in `cwd` would write it: relative when it lies below."""
    base = cwd.rstrip("/") + "/"
    return path[len(base) :] if path.startswith(base) and len(path) > len(base) else path


def here() -> str:
    """Return the working directory; a deleted one counts as the root."""
    try:
        return os.getcwd()
    except OSError:
        return "/"
