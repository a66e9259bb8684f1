"""Durations, sizes and counts as people write them; one unit, no guessing."""

from __future__ import annotations

from agent_reach.contract.sink import Refusal, shown

DURATIONS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
SIZES = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
MAX_SECONDS = 366 * 24 * 3600.0
MAX_BYTES = 2**62
_MAX_TEXT = 32


def duration(text: str) -> float:
    """Return seconds.

    Args:
        text: a number and one of ``ms s m h``, such as ``90s`` or ``1.5h``.

    Raises:
        Refusal: no or another unit, zero, or more than 366 days.
    """
    number, unit = _split(text)
    if number is None or unit not in DURATIONS:
        raise Refusal("E_UNIT", f"{shown(text)} is not a duration", _duration_hint(text, number, unit))
    seconds = number * DURATIONS[unit]
    if not 0 < seconds <= MAX_SECONDS:
        raise Refusal("E_VALUE", f"{shown(text)} is out of range", "a duration is more than 0 and at most 366 days")
    return seconds


def size(text: str, *, zero: bool = False) -> int:
    """Return bytes.

    Args:
        text: a number and one of ``KB MB GB KiB MiB GiB``, such as ``512MiB``.
        zero: whether nothing at all (``0``) may be said.

    Raises:
        Refusal: no or another unit, zero where it means nothing, or more than 4 EiB.
    """
    if zero and text == "0":
        return 0
    number, unit = _split(text)
    if number is None or unit not in SIZES:
        raise Refusal("E_UNIT", f"{shown(text)} is not a size", _size_hint(number, unit))
    amount = int(number * SIZES[unit])
    if not (0 if zero else 1) <= amount <= MAX_BYTES:
        raise Refusal("E_VALUE", f"{shown(text)} is out of range", "a size is more than 0 and at most 4 EiB")
    return amount


def rate(text: str) -> int:
    """Return bytes per second; ``10MiB`` and ``10MiB/s`` mean the same."""
    return size(text.removesuffix("/s"))


def _split(text: str) -> tuple[float | None, str]:
    """Return the leading decimal number, if there is one, and what follows it."""
    end = 0
    while end < len(text) and text[end] in "0123456789.":
        end += 1
    number, unit = text[:end], text[end:]
    whole, dot, fraction = number.partition(".")
    if len(text) > _MAX_TEXT or not whole.isdigit() or (dot and not fraction.isdigit()):
        return None, text
    return float(number), unit


def _duration_hint(text: str, number: float | None, unit: str) -> str:
    if number is None:
        return "write a number and a unit: 500ms, 30s, 5m, 2h"
    short = {"": "s", "sec": "s", "min": "m", "hour": "h"}
    word = unit.strip().lower()
    found = next((short[name] for name in ("sec", "min", "hour") if word.startswith(name)), word or "s")
    digits = text[: len(text) - len(unit)]
    return f"did you mean `{digits}{found}`?" if found in DURATIONS else "the units are ms, s, m, h"


def _size_hint(number: float | None, unit: str) -> str:
    letter = unit.strip()[:1].upper()
    if number is not None and letter in ("K", "M", "G") and letter:
        return f"did you mean `{number:g}{letter}iB` (1024) or `{number:g}{letter}B` (1000)?"
    return "write a number and a unit: 512MiB, 1GiB, 200MB (KB MB GB count by 1000, KiB MiB GiB by 1024)"
