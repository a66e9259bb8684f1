"""Templates of environment values: text with ``{NAME}`` places.

`str.format` is not used, because ``{0.__class__}`` reaches attributes of whatever is filled in (CVE-2026-40087).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")


def is_name(name: str) -> bool:
    """Whether a name can be an environment variable of a shell (POSIX.1-2024, 3.214)."""
    return bool(name) and _NAME_CHARS.issuperset(name) and not name[0].isdigit()


def names_in(template: str) -> list[str]:
    """Return the names in a template, in order, each as often as it stands there.

    Raises:
        ValueError: it is not a template: a brace that is neither doubled nor around a name.
    """
    return [text for text, is_place in _parts(template) if is_place]


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its places filled; what is filled in is not looked at again.

    Args:
        template: the text.
        values: a value for every name in it.

    Raises:
        ValueError: it is not a template.
        KeyError: a name has no value.
    """
    return "".join(values[text] if is_place else text for text, is_place in _parts(template))


def _parts(template: str) -> list[tuple[str, bool]]:
    """Return literal texts and names (True), left to right; doubled braces are read as one."""
    parts: list[tuple[str, bool]] = []
    at = 0
    while at < len(template):
        char = template[at]
        if template[at : at + 2] in ("{{", "}}"):
            parts.append((char, False))
            at += 2
        elif char == "{":
            end = template.find("}", at)
            name = template[at + 1 : end] if end > 0 else ""
            if not is_name(name):
                raise ValueError(f"not a template: {template!r}")
            parts.append((name, True))
            at = end + 1
        elif char == "}":
            raise ValueError(f"not a template: {template!r}")
        else:
            parts.append((char, False))
            at += 1
    return parts
