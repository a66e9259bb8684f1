"""Text of unknown origin made safe for one line of a terminal or a log."""

from __future__ import annotations


def visible(text: str, limit: int = 4096) -> str:
    r"""Show every character that a terminal could act on as an escape.

    Control characters, ANSI sequences, bidirectional marks, line separators and lone surrogates could forge a
    second line, hide text or drive the terminal. They appear as ``\x1b`` or ``\u202e``.

    Args:
        text: anything, also text decoded with ``surrogateescape``.
        limit: most characters to show; the rest is counted.
    """
    head = text[:limit]
    shown = head if head.isprintable() else "".join(map(_escape, head))
    return shown if len(text) <= limit else f"{shown}… ({len(text) - limit} more)"


def _escape(char: str) -> str:
    """Return a printable character itself, any other as the escape that a byte or code point has."""
    if char.isprintable():
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8, PEP 383
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
