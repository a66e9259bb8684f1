"""What the modes of a file grant allow, as sets, so that they can be joined and intersected."""

from __future__ import annotations

READ, CHANGE, APPEND = 1, 2, 4

_MODES = {READ: "r", CHANGE | APPEND: "w", APPEND: "a", READ | CHANGE | APPEND: "rw"}
_RIGHTS = {"r": READ, "w": CHANGE | APPEND, "a": APPEND, "rw": READ | CHANGE | APPEND, "r+": READ | CHANGE | APPEND}


def rights_of(mode: str) -> int:
    """Return the rights of a mode; ``b`` adds none."""
    return _RIGHTS[mode.replace("b", "")]


def mode_of(rights: int) -> str | None:
    """Return the mode with exactly these rights, or None when no mode has them (reading and appending)."""
    return _MODES.get(rights)
