"""The names in a template of an environment value; `providers.template` fills them.

A place is ``{NAME}``. Braces around anything else are text, so that JSON can be a template. `str.format` is not used,
because ``{0.__class__}`` reaches attributes of whatever is filled in (CVE-2026-40087).
"""

from __future__ import annotations

_NAME_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")


def is_name(name: str) -> bool:
    """Whether a name can be an environment variable of a shell (POSIX.1-2024, 3.214)."""
    return bool(name) and _NAME_CHARS.issuperset(name) and not name[0].isdigit()


def names_in(template: str) -> tuple[str, ...]:
    """Return the names that a template has places for, in order, each as often as it stands there."""
    names = []
    at = template.find("{")
    while at >= 0:
        end = template.find("}", at)
        name = template[at + 1 : end] if end > 0 else ""
        if is_name(name):
            names.append(name)
            at = end
        at = template.find("{", at + 1)
    return tuple(names)
