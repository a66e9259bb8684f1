"""One way to write a value as JSON, and one hash, without the imports of `json` and `hashlib`.

The launcher writes the record when the program has ended and the user waits for the prompt; `json` costs 8 ms
and `hashlib` 4 ms of import, the C functions below them nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


def dumps(value: Json) -> str:
    r"""Write JSON with sorted keys, no blanks and nothing but printable ASCII: one value, one text, one line.

    Every control character, U+2028 and bidirectional mark becomes a ``\u`` escape. A lone surrogate, which a file
    name that is not UTF-8 decodes to, becomes the four characters ``\xff`` of its byte: strict readers refuse
    half a surrogate pair even when it is escaped.

    Raises:
        TypeError: a value has no JSON form.
    """
    out: list[str] = []
    _write(value, out.append, _quoter())
    return "".join(out)


def sha256(data: bytes) -> str:
    """Return the hex digest of SHA-256."""
    try:
        from _sha2 import sha256 as function  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            from _sha256 import sha256 as function  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            from hashlib import sha256 as function
    digest: str = function(data).hexdigest()
    return digest


def _quoter() -> Callable[[str], str]:
    """Return the C function that quotes a string for JSON in ASCII."""
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii


def _write(value: Json, put: Callable[[str], None], quote: Callable[[str], str]) -> None:
    """Write one value."""
    if isinstance(value, str):
        put(quote(_whole(value)))
    elif value is None:
        put("null")
    elif isinstance(value, bool):
        put("true" if value else "false")
    elif isinstance(value, int):
        put(int.__repr__(value))
    elif isinstance(value, float):
        # NaN and infinities have no JSON form
        put(float.__repr__(value) if value - value == 0 else "null")
    elif isinstance(value, dict):
        _write_object(value, put, quote)
    elif isinstance(value, (list, tuple)):
        put("[")
        for index, item in enumerate(value):
            put("," if index else "")
            _write(item, put, quote)
        put("]")
    else:
        raise TypeError(f"{type(value).__name__} has no JSON form")


def _write_object(value: dict[str, Json], put: Callable[[str], None], quote: Callable[[str], str]) -> None:
    """Write an object with its keys in order."""
    put("{")
    for index, key in enumerate(sorted(value)):
        put("," if index else "")
        put(quote(_whole(key)) + ":")
        _write(value[key], put, quote)
    put("}")


def _whole(text: str) -> str:
    """Replace lone surrogates by a visible escape."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape" if _only_bytes(text) else "backslashreplace").decode(
            "utf-8", "backslashreplace"
        )
    return text


def _only_bytes(text: str) -> bool:
    """Say whether every surrogate stands for a byte (PEP 383)."""
    return not any("\ud800" <= char < "\udc80" or "\udcff" < char <= "\udfff" for char in text)
