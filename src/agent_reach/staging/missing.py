"""Create writable grants that do not exist yet, and take back what stayed unused."""

from __future__ import annotations

import os

from agent_reach._util.record import Record
from agent_reach.errors import ContractError, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_reach.contract.model import Contract, FileGrant
    from agent_reach.host.model import PathFact


class Made(Record):
    """A file that was created empty, with the identity that tells whether it is still the same."""

    path: str
    inode: int
    changed: int


def make(contract: Contract, facts: Sequence[PathFact]) -> tuple[Made | None, ...]:
    """Create what is missing: directories with the caller's umask, files empty.

    Returns:
        One entry for each thing created; a directory, which stays, is None. Empty when nothing was missing.

    Raises:
        ContractError: a required path is missing, or a parent directory is.
    """
    findings: list[Finding] = []
    made: list[Made | None] = []
    for grant, fact in zip(contract.files, facts, strict=True):
        if grant.source or fact.kind not in {"missing", "symlink"}:
            continue
        if fact.kind == "symlink":
            findings.append(_finding(grant, f"a symbolic link to {fact.real}, which does not exist"))
        elif grant.required:
            findings.append(_finding(grant, "required, and it does not exist"))
        elif grant.mode.rstrip("b") != "r":
            try:
                made.append(_create(grant))
            except OSError as error:
                findings.append(_finding(grant, f"cannot be created: {error.strerror}"))
    if findings:
        remove(tuple(made))
        raise ContractError(tuple(findings))
    return tuple(made)


def _finding(grant: FileGrant, message: str) -> Finding:
    """Name the entry that cannot be granted."""
    return Finding(
        "E_FILE_MISSING",
        f"{grant.path}: {message}",
        file=grant.origin.file,
        line=grant.origin.line,
        key="resources.files",
        hint="create it, correct the path, or write `required: false`" if grant.required else "",
    )


def _create(grant: FileGrant) -> Made | None:
    """Create one directory, or one empty file."""
    if grant.directory:
        os.makedirs(grant.path, exist_ok=True)
        return None
    descriptor = os.open(grant.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    about = os.fstat(descriptor)
    os.close(descriptor)
    return Made(grant.path, about.st_ino, about.st_mtime_ns)


def remove(made: Sequence[Made | None]) -> None:
    """Remove the files that are still as empty as they were made."""
    for item in made:
        if item is None:
            continue
        try:
            about = os.lstat(item.path)
            if about.st_size == 0 and (about.st_ino, about.st_mtime_ns) == (item.inode, item.changed):
                os.unlink(item.path)
        except OSError:
            continue
