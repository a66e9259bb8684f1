"""Frames between the guard inside the sandbox and the broker outside: text fields, length before content.

A frame is two bytes of length and that many bytes of fields. A field is one byte of length and a key of
ASCII letters, then two bytes of length and a value in UTF-8; file names that are not UTF-8 travel as
surrogate escapes. All lengths are big-endian. Nothing of a frame is ever evaluated: the reading side takes
it for hostile input, whatever side that is.

This module runs under Python 3.9 and imports nothing.
"""

from __future__ import annotations

MAX_FRAME = 4096
MAX_FIELDS = 16
MAX_KEY = 32
KEY_LETTERS = b"abcdefghijklmnopqrstuvwxyz_"


class FrameError(ValueError):
    """The bytes are no frame, or one beyond the limits; the stream cannot be read any further."""


def encode(fields: dict[str, str]) -> bytes:
    """Return one frame.

    Args:
        fields: at most 16; keys of 1 to 32 small ASCII letters and underscores.

    Raises:
        FrameError: a key, or the whole, is beyond the limits.
    """
    if len(fields) > MAX_FIELDS:
        raise FrameError(f"a frame holds at most {MAX_FIELDS} fields, not {len(fields)}")
    parts = []
    for key, value in fields.items():
        name = key.encode()
        text = value.encode("utf-8", "surrogateescape")
        _check_key(name)
        if len(text) > MAX_FRAME:
            raise FrameError(f"field {key!r} takes {len(text)} bytes, more than a frame")
        parts.append(len(name).to_bytes(1, "big") + name + len(text).to_bytes(2, "big") + text)
    body = b"".join(parts)
    if len(body) > MAX_FRAME:
        raise FrameError(f"a frame takes at most {MAX_FRAME} bytes, not {len(body)}")
    return len(body).to_bytes(2, "big") + body


def clip(text: str, size: int = 1024) -> str:
    """Return a text cut to so many bytes of UTF-8, for values of any length that go into a frame."""
    raw = text.encode("utf-8", "surrogateescape")
    return text if len(raw) <= size else raw[:size].decode("utf-8", "ignore")


def decode(body: bytes) -> dict[str, str]:
    """Return the fields of one frame.

    Args:
        body: the frame without its two bytes of length.

    Raises:
        FrameError: it is cut short, too long, names a key twice, or holds no UTF-8.
    """
    if len(body) > MAX_FRAME:
        raise FrameError(f"a frame takes at most {MAX_FRAME} bytes, not {len(body)}")
    fields: dict[str, str] = {}
    at = 0
    while at < len(body):
        if len(fields) == MAX_FIELDS:
            raise FrameError(f"a frame holds at most {MAX_FIELDS} fields")
        key, at = _take(body, at, 1)
        value, at = _take(body, at, 2)
        _check_key(key)
        name = key.decode()
        if name in fields:
            raise FrameError(f"field {name!r} stands twice")
        fields[name] = value.decode("utf-8", "surrogateescape")
    return fields


class Decoder:
    """Cuts a stream of bytes into frames; holds at most one frame and what one `feed` brought."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[dict[str, str]]:
        """Return the frames that are complete now.

        Raises:
            FrameError: the stream broke the rules; it cannot be read any further.
        """
        buffer = self._rest + data
        frames = []
        at = 0
        while len(buffer) - at >= 2:
            size = int.from_bytes(buffer[at : at + 2], "big")
            if size > MAX_FRAME:
                raise FrameError(f"a frame takes at most {MAX_FRAME} bytes, not {size}")
            if len(buffer) - at - 2 < size:
                break
            frames.append(decode(buffer[at + 2 : at + 2 + size]))
            at += 2 + size
        self._rest = buffer[at:]
        return frames


def _take(body: bytes, at: int, width: int) -> tuple[bytes, int]:
    """Return the bytes behind a length of so many bytes, and where they end."""
    start = at + width
    end = start + int.from_bytes(body[at:start], "big")
    if start > len(body) or end > len(body):
        raise FrameError("a frame is cut short")
    return body[start:end], end


def _check_key(key: bytes) -> None:
    """Refuse a key that is not made of small letters."""
    if not 1 <= len(key) <= MAX_KEY or key.strip(KEY_LETTERS):
        raise FrameError("a key is not made of 1 to 32 small letters")
