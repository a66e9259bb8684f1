"""Expand the globs of read grants at start, bounded, and never out of their own directory."""

from __future__ import annotations

import os

from agent_reach._util.record import Record
from agent_reach.errors import ContractError, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_reach.contract.model import FileGrant

MAX_MATCHES = 4096
MAX_VISITED = 200_000
_SPECIAL = frozenset("*?[")


class Expansion(Record):
    """What a pattern stands for.

    Args:
        paths: what matched, sorted.
        outside: what matched and is a symbolic link that leads out of the pattern's directory; not granted.
    """

    paths: tuple[str, ...]
    outside: tuple[str, ...] = ()


class TooManyError(Exception):
    """A pattern matches, or has to look at, more than a start can take."""


def expand_grants(grants: Sequence[FileGrant]) -> tuple[tuple[FileGrant, ...], tuple[str, ...]]:
    """Replace each grant with a glob by one grant for each match.

    Args:
        grants: file grants, in order.

    Returns:
        The grants, and the paths that were left out because they lead out of their pattern's directory.

    Raises:
        ContractError: a pattern matches too much, or a required one nothing.
    """
    expanded: list[FileGrant] = []
    outside: list[str] = []
    findings: list[Finding] = []
    for grant in grants:
        if not grant.glob:
            expanded.append(grant)
            continue
        try:
            found = expand(grant.path)
        except TooManyError as error:
            findings.append(_finding(grant, str(error), "name a directory instead"))
            continue
        if grant.required and not found.paths:
            findings.append(_finding(grant, "required, and nothing matches", "correct it, or write `required: false`"))
        outside += found.outside
        expanded += [
            grant.replace(path=path, glob=False, directory=os.path.isdir(path))
            for path in found.paths
            if path not in {other.path for other in grants}
        ]
    if findings:
        raise ContractError(tuple(findings))
    return tuple(expanded), tuple(outside)


def expand(pattern: str, *, matches: int = MAX_MATCHES, visited: int = MAX_VISITED) -> Expansion:
    """Find the paths that a pattern matches.

    ``*`` and ``?`` match inside one name and not a leading dot, ``[a-z]`` one character, ``**`` any number of
    directories. Directories that are symbolic links are not entered.

    Args:
        pattern: absolute path with ``* ? [ ]``.
        matches: most paths to return.
        visited: most directory entries to look at.

    Raises:
        TooManyError: one of the bounds is exceeded.
    """
    parts = pattern.strip("/").split("/")
    fixed = next((index for index, part in enumerate(parts) if not _SPECIAL.isdisjoint(part)), len(parts) - 1)
    root = "/" + "/".join(parts[:fixed])
    border = os.path.realpath(root)
    inside: set[str] = set()
    outside: set[str] = set()
    for path in _walk(root, parts[fixed:], _Budget(visited)):
        real = os.path.realpath(path)
        (inside if real == border or real.startswith(border.rstrip("/") + "/") else outside).add(path)
        if len(inside) > matches:
            raise TooManyError(f"it matches more than {matches} paths")
    return Expansion(tuple(sorted(inside)), tuple(sorted(outside)))


class _Budget:
    """Counts directory entries.

    Args:
        left: entries that may be looked at.
    """

    def __init__(self, left: int) -> None:
        self._total = self._left = left

    def spend(self) -> None:
        """Count one entry.

        Raises:
            TooManyError: none is left.
        """
        self._left -= 1
        if self._left < 0:
            raise TooManyError(f"it has to look at more than {self._total} directory entries")


def _walk(folder: str, parts: list[str], budget: _Budget) -> Iterator[str]:
    """Yield what matches below a folder."""
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _walk(folder, rest or ["*"], budget)
        for name, is_directory in _names(folder, budget):
            if is_directory and not name.startswith("."):
                yield from _walk(os.path.join(folder, name), parts, budget)
        return
    for name, is_directory in _names(folder, budget):
        if not matches_name(part, name):
            continue
        path = os.path.join(folder, name)
        if not rest:
            yield path
        elif is_directory:
            yield from _walk(path, rest, budget)


def _names(folder: str, budget: _Budget) -> list[tuple[str, bool]]:
    """Return the names in a folder and whether each is a real directory; one that cannot be read has none."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                budget.spend()
                found.append((entry.name, entry.is_dir(follow_symlinks=False)))
    except OSError:
        return found
    return found


def matches_name(pattern: str, name: str) -> bool:
    """Say whether one name matches one part of a pattern, in time that grows with the product of their lengths.

    Args:
        pattern: text with ``*``, ``?``, ``[abc]``, ``[a-z]``, ``[!a]``.
        name: file name.
    """
    if name.startswith(".") and not pattern.startswith("."):
        return False
    tokens = _tokens(pattern)
    at = index = 0
    star, retry = -1, 0
    while at < len(name):
        if index < len(tokens) and tokens[index] == "*":
            star, retry = index, at
            index += 1
        elif index < len(tokens) and _one(tokens[index], name[at]):
            index += 1
            at += 1
        elif star >= 0:
            retry += 1
            index, at = star + 1, retry
        else:
            return False
    return all(left == "*" for left in tokens[index:])


def _tokens(pattern: str) -> list[str]:
    """Split a pattern into ``*``, ``?``, ``[…]`` and single characters."""
    tokens = []
    at = 0
    while at < len(pattern):
        end = pattern.find("]", at + 2 + (pattern[at + 1 : at + 2] == "!")) if pattern[at] == "[" else -1
        end = at if end < 0 else end
        tokens.append(pattern[at : end + 1])
        at = end + 1
    return tokens


def _one(part: str, char: str) -> bool:
    """Say whether one part of a pattern matches one character."""
    if part == "?":
        return True
    if len(part) < 3:
        return part == char
    body = part[1:-1]
    negated = body.startswith("!")
    return _in_set(body[negated:], char) != negated


def _in_set(body: str, char: str) -> bool:
    """Say whether a character is in ``abc`` or ``a-z``."""
    at = 0
    while at < len(body):
        if body[at + 1 : at + 2] == "-" and at + 2 < len(body):
            if body[at] <= char <= body[at + 2]:
                return True
            at += 3
        elif body[at] == char:
            return True
        else:
            at += 1
    return False


def _finding(grant: FileGrant, message: str, hint: str) -> Finding:
    """Name the entry."""
    return Finding(
        "E_GLOB",
        f"{grant.path}: {message}",
        file=grant.origin.file,
        line=grant.origin.line,
        key="resources.files",
        hint=hint,
    )
