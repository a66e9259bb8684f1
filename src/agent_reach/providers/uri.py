"""Read ``scheme://path[?option=value][#field]``, strictly, and once.

Nothing is expanded: no ``${…}``, no ``str.format``, no reference inside a reference. A value that happens to
look like a URI stays a value.
"""

from __future__ import annotations

from agent_reach._util.record import Record

MAX_LENGTH = 4096
_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz")
_SCHEME = _LOWER | frozenset("0123456789+-.")
_HEX = frozenset("0123456789abcdefABCDEF")


class UriError(ValueError):
    """The text is not a provider URI."""


class Ref(Record):
    """One parsed provider URI.

    Args:
        uri: the text as written in the contract.
        scheme: lower-case scheme.
        path: everything between ``://`` and ``?`` or ``#``, percent escapes decoded.
        options: the pairs behind ``?``, in order.
        field: the text behind ``#``, empty when there is none.
    """

    uri: str
    scheme: str
    path: str
    options: tuple[tuple[str, str], ...] = ()
    field: str = ""


def parse(uri: str) -> Ref:
    """Take a provider URI apart.

    Args:
        uri: text of a ``source:`` key.

    Raises:
        UriError: the text is malformed; the message says where.
    """
    if len(uri) > MAX_LENGTH:
        raise UriError(f"the URI is longer than {MAX_LENGTH} characters")
    scheme, mark, rest = uri.partition("://")
    if not mark:
        raise UriError("a source is written scheme://path, such as env://NAME or vault://MOUNT/PATH#FIELD")
    if not scheme or scheme[0] not in _LOWER or not _SCHEME.issuperset(scheme):
        raise UriError("the scheme before :// is lower-case letters, digits, +, - and .")
    if not uri.isprintable() or uri != uri.strip():
        raise UriError("control characters and spaces at the ends are not part of a URI")
    if "${" in uri:
        raise UriError("${…} is not expanded; write the name itself")
    body, has_field, field = rest.partition("#")
    path, has_options, query = body.partition("?")
    if not path:
        raise UriError("there is no path behind ://")
    if has_field and not field:
        raise UriError("there is no field behind #")
    if has_options and not query:
        raise UriError("there is no option behind ?")
    options = tuple(_option(pair) for pair in query.split("&")) if query else ()
    return Ref(uri, scheme, _decode(path), options, _decode(field))


def _option(pair: str) -> tuple[str, str]:
    """Split ``name=value`` of the query."""
    name, mark, value = pair.partition("=")
    if not name or not mark:
        raise UriError("options behind ? are written name=value, joined by &")
    return _decode(name), _decode(value)


def _decode(text: str) -> str:
    """Decode ``%XX`` escapes as UTF-8; a lone ``%`` is refused rather than guessed at."""
    if "%" not in text:
        return text
    head, *escapes = text.split("%")
    out = bytearray(head.encode())
    for part in escapes:
        if len(part) < 2 or not _HEX.issuperset(part[:2]):
            raise UriError("% starts an escape of two hex digits; write %25 for the sign itself")
        out.append(int(part[:2], 16))
        out += part[2:].encode()
    try:
        decoded = out.decode()
    except UnicodeDecodeError:
        raise UriError("the % escapes are not UTF-8") from None
    if "\0" in decoded:
        raise UriError("a NUL byte is not part of a path or name")
    return decoded
