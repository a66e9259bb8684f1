"""What a source answers, and how one field of it becomes text."""

from __future__ import annotations

from agent_reach._util.visible import visible
from agent_reach.providers.faults import NotFoundError, SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.providers.uri import Ref

    Content = bytes | str | dict[str, object]

MAX_ANSWER = 16 * 1024 * 1024
"""Most bytes that any source may answer."""


def pick(content: Content, ref: Ref, where: str) -> bytes | str:
    """Return the part of an answer that the URI names.

    Args:
        content: whole answer of the source.
        ref: the URI; its field chooses a key.
        where: how messages name the source, such as ``secret/app/db``.

    Raises:
        NotFoundError: there is no such key, or it is null.
        SourceError: the answer has another shape than the URI asks for.
    """
    if not ref.field:
        if isinstance(content, dict):
            raise SourceError(f"`{where}` holds {_keys(content)}; name one of them behind #")
        return content
    fields = content if isinstance(content, dict) else _json_object(content, ref, where)
    if ref.field not in fields:
        raise NotFoundError(f"no key `{visible(ref.field)}` at `{where}`{_near(ref.field, fields)}")
    value = fields[ref.field]
    if value is None:
        raise NotFoundError(f"key `{visible(ref.field)}` at `{where}` is null")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return str(value)
    raise SourceError(f"key `{visible(ref.field)}` at `{where}` is a list or an object, not one value")


def load_json(data: bytes | str) -> object:
    """Parse JSON with every number kept as the text it was written as (``5432``, ``1.50``, ``1e400``).

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    import json

    try:
        return json.loads(data, parse_int=str, parse_float=str, parse_constant=str)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _json_object(content: bytes | str, ref: Ref, where: str) -> dict[str, object]:
    """Read an answer in which the URI names a key."""
    try:
        parsed = load_json(content)
    except ValueError:
        parsed = None  # the parser's own message could quote the content
    if not isinstance(parsed, dict):
        raise SourceError(f"`{where}` is not a JSON object, so #{visible(ref.field)} names nothing in it")
    return parsed


def _keys(fields: dict[str, object], most: int = 5) -> str:
    """List key names, which are not secret, up to `most` of them."""
    names = [f"`{visible(name, 64)}`" for name in sorted(fields)]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"keys {', '.join(names[:most])}{more}" if names else "no keys"


def _near(name: str, fields: dict[str, object]) -> str:
    """Name the key that was probably meant, or nothing."""
    import difflib

    close = difflib.get_close_matches(name, list(fields), n=1)
    return f"; it has `{visible(close[0], 64)}`" if close else ""
