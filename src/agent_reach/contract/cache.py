"""Compiled contracts on disk, so that a warm run imports no YAML.

An entry is believed only when its directory and file belong to us and nobody else can write them, its digest fits,
every value has its type, and every document that it was made from is still the same. Anything else is a miss.
"""

from __future__ import annotations

import os
import stat

from agent_reach import __version__
from agent_reach.contract.codec import Mismatch, decode, encode
from agent_reach.contract.digest import digest
from agent_reach.contract.owner import read_owned
from agent_reach.contract.sink import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agent_reach.contract.model import Contract

FORMAT = "1"
_MAX_BYTES = 8 << 20
_MAX_ENTRIES = 256
_DIGEST_CHARS = 64


def entry_key(parts: Iterable[str], data: bytes) -> str:
    """Return the name of an entry: a digest of everything that the result depends on.

    Args:
        parts: profile, targets, path and home, in a fixed order.
        data: content of the document.
    """
    return digest(
        [FORMAT.encode(), __version__.encode(), *(part.encode("utf-8", "surrogateescape") for part in parts), data]
    )


def fetch(place: str, key: str) -> Contract | None:
    """Return a compiled contract, or None.

    Args:
        place: the cache's directory.
        key: from `entry_key`.
    """
    try:
        if not _is_ours(os.lstat(place), stat.S_ISDIR):
            return None
        text = _read(f"{place}/{key}.json")
        value = _parse(text) if text else None
        if not isinstance(value, list) or len(value) != 2 or not _unchanged(value[1]):
            return None
        return decode(value[0])
    except (OSError, Mismatch, ValueError, RecursionError):
        return None


def store(place: str, key: str, contract: Contract, others: Mapping[str, bytes]) -> None:
    """Keep a compiled contract; where that is not possible nothing happens, the next run compiles again.

    Args:
        place: the cache's directory, made with mode 0700 when it is absent.
        key: from `entry_key`.
        contract: the result.
        others: content of the other documents that took part, by absolute path.
    """
    import json

    from agent_reach._util.atomic import put

    body = json.dumps([encode(contract), [[path, digest([data])] for path, data in others.items()]])
    text = f"{digest([body.encode()])}\n{body}"
    try:
        _make(place)
        if not _is_ours(os.lstat(place), stat.S_ISDIR):
            return
        _prune(place)
        put(f"{place}/{key}.json", text.encode())
    except OSError:
        return


def _is_ours(status: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    """Whether something is of that kind, belongs to us, and is closed to everybody else."""
    return is_kind(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _read(path: str) -> str | None:
    """Return the JSON of an entry whose digest fits."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not _is_ours(status, stat.S_ISREG) or status.st_size > _MAX_BYTES:
            return None
        data = os.read(descriptor, _MAX_BYTES)
    finally:
        os.close(descriptor)
    mark, body = data[:_DIGEST_CHARS], data[_DIGEST_CHARS + 1 :]
    return body.decode() if digest([body]).encode() == mark else None


def _parse(text: str) -> object:
    """Read JSON with the C scanner of the `json` package, without the package, which imports `re`."""
    try:
        from _json import make_scanner  # type: ignore[import-not-found, unused-ignore]  # CPython's own
    except ImportError:
        import json

        return json.loads(text)
    try:
        value, end = make_scanner(_Context)(text, 0)  # type: ignore[arg-type]  # any object with these attributes
    except StopIteration:
        raise Mismatch from None
    if end != len(text):
        raise Mismatch
    return value


class _Context:
    """What the C scanner reads from a `json.JSONDecoder`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = None


def _unchanged(others: object) -> bool:
    """Whether the other documents are what they were, by content, and still belong to somebody we trust."""
    if not isinstance(others, list):
        return False
    for other in others:
        if not (isinstance(other, list) and len(other) == 2 and all(isinstance(part, str) for part in other)):
            return False
        try:
            if digest([read_owned(other[0])]) != other[1]:
                return False
        except Refusal:
            return False
    return True


def _make(place: str) -> None:
    if os.path.isdir(place):
        return
    parent = os.path.dirname(place)
    if parent != place:
        _make(parent)
    os.mkdir(place, 0o700)


def _prune(place: str) -> None:
    """Keep the newest entries only."""
    names = [name for name in os.listdir(place) if name.endswith(".json")]
    if len(names) < _MAX_ENTRIES:
        return
    by_age = sorted(names, key=lambda name: os.lstat(f"{place}/{name}").st_mtime)
    for name in by_age[: len(names) - _MAX_ENTRIES // 2]:
        os.unlink(f"{place}/{name}")
