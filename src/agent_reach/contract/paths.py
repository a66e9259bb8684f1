"""Paths of a contract: one canonical meaning each, nothing expanded but `~`."""

from __future__ import annotations

import posixpath

from agent_reach.contract.sink import Refusal, shown

_MAX_PATH = 4095  # PATH_MAX of <linux/limits.h> without the final NUL
_MAX_NAME = 255  # NAME_MAX
GLOB_CHARS = frozenset("*?[")


def resolve(written: str, directory: str, home: str) -> str:
    """Return the absolute path that is meant, without trailing slash.

    Args:
        written: the path in the contract.
        directory: absolute directory of the file that holds it.
        home: the caller's home, for a leading ``~``.

    Raises:
        Refusal: it is empty, too long, or holds what could be meant in two ways.
    """
    _refuse_ambiguous(written)
    path = written
    if path == "~" or path.startswith("~/"):
        if not home.startswith("/"):
            raise Refusal("E_PATH", f"{shown(written)} needs a home directory, and the caller has none")
        path = home + path[1:]
    elif path.startswith("~"):
        raise Refusal("E_PATH", f"{shown(written)} names another user's home", "write the absolute path")
    joined = posixpath.normpath(posixpath.join(directory, path))
    # normpath(3p) keeps a leading `//`; on Linux it means `/`.
    resolved = "/" + joined.lstrip("/")
    if len(resolved.encode()) > _MAX_PATH or any(len(part.encode()) > _MAX_NAME for part in resolved.split("/")):
        raise Refusal("E_PATH", f"{shown(written)} is longer than a path may be")
    return resolved


def is_directory(written: str) -> bool:
    """Whether a path is written as a directory: with a trailing slash, or as `.`, `..` or `~`."""
    return written.endswith("/") or written.rpartition("/")[2] in (".", "..") or written == "~"


def is_glob(written: str) -> bool:
    """Whether a path holds a pattern."""
    return not GLOB_CHARS.isdisjoint(written)


def _refuse_ambiguous(written: str) -> None:
    if not written:
        raise Refusal("E_PATH", "the path is empty", "the directory of the contract is `.`")
    if "${" in written or (written.startswith("$") and written[1:2].isidentifier()):
        raise Refusal("E_PATH", f"{shown(written)} holds a variable; nothing is expanded in a path", "write it out")
    if "://" in written:
        raise Refusal("E_PATH", f"{shown(written)} is a URI", "a URI stands in `source`, the path in `path`")
    if not all(char.isprintable() for char in written):
        raise Refusal("E_PATH", f"{shown(written)} holds a control character")
