"""Fill ``{NAME}`` places by plain replacement, once; what a value looks like does not matter."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet


def fill(template: str, values: Mapping[str, str], names: AbstractSet[str]) -> tuple[str | None, str]:
    """Replace each ``{NAME}`` by its value.

    Braces around anything but a variable name stay as they are, so JSON can be a template; there is no
    `str.format`, whose ``{0.__class__}`` reads attributes.

    Args:
        template: text with places.
        values: name to value.
        names: names that the contract declares.

    Returns:
        The text and an empty name, or None and the name that has no value.
    """
    out = []
    at = 0
    while True:
        start = template.find("{", at)
        if start < 0:
            out.append(template[at:])
            return "".join(out), ""
        end = template.find("}", start)
        name = template[start + 1 : end] if end > 0 else ""
        if not name.isascii() or not name.isidentifier():
            out.append(template[at : start + 1])
            at = start + 1
            continue
        if name not in values or name not in names:
            return None, name
        out += [template[at:start], values[name]]
        at = end + 1
