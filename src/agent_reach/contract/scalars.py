"""What a plain YAML scalar is under the core schema of YAML 1.2.2, chapter 10.3.

PyYAML resolves by YAML 1.1, where ``no`` is false, ``1:30`` is 90 and ``010`` is 8; contracts say what they say.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.nodes import Scalar

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_SPECIAL = frozenset((".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"))
_MAX_DIGITS = 18
_HUGE = 1_000_000_000_000_000_000
_BASES = {"0x": (16, "0123456789abcdefABCDEF"), "0o": (8, "01234567")}


def kind_of(node: Scalar) -> str:
    """Return ``text``, ``null``, ``flag``, ``whole`` (number) or ``decimal``."""
    text = node.text
    if not node.plain:
        return "text"
    if text in _NULL:
        return "null"
    if text in _TRUE or text in _FALSE:
        return "flag"
    if _is_whole(text):
        return "whole"
    return "decimal" if _is_decimal(text) else "text"


def flag_of(node: Scalar) -> bool:
    """Return the value of a scalar whose kind is ``flag``."""
    return node.text in _TRUE


def whole_of(text: str) -> int:
    """Return the value of a whole number; one of more than 18 digits counts as 10^18."""
    if len(text.lstrip("+-")) > _MAX_DIGITS:
        return -_HUGE if text.startswith("-") else _HUGE
    base = _BASES.get(text[:2])
    return int(text[2:], base[0]) if base else int(text)


def _is_whole(text: str) -> bool:
    base = _BASES.get(text[:2])
    if base:
        return len(text) > len("0x") and all(char in base[1] for char in text[2:])
    return _is_digits(text.removeprefix("-" if text.startswith("-") else "+"))


def _is_decimal(text: str) -> bool:
    bare = text[1:] if text[:1] in ("-", "+") else text
    if bare in _SPECIAL:
        return True
    mantissa, mark, exponent = bare.replace("E", "e").partition("e")
    whole, dot, fraction = mantissa.partition(".")
    if not (_is_digits(whole) or (dot and not whole and _is_digits(fraction))):
        return False
    if fraction and not _is_digits(fraction):
        return False
    return not mark or _is_digits(exponent[1:] if exponent[:1] in ("-", "+") else exponent)


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()
