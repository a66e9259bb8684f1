"""Fetch the files whose grants have a `source`, outside the sandbox, checked before anything runs.

What is fetched goes into a file without a name, or into memory, so nothing is left on the host however the run
ends.
"""

from __future__ import annotations

import os

from agent_reach._util.record import Record
from agent_reach._util.visible import visible
from agent_reach.errors import ProviderError
from agent_reach.staging.sources import FetchError, open_source, public_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_reach.contract.model import FileGrant
    from agent_reach.staging.progress import Progress

LIMIT = 1024 * 1024 * 1024
"""Most bytes of one staged file: they end up in the sandbox's private memory."""
_CHUNK = 1024 * 1024


class Staged(Record):
    """One file that was fetched.

    Args:
        fd: descriptor at offset 0, close-on-exec, owned by the caller; -1 when the content was taken.
        size: bytes.
        sha256: hex digest of the content.
        source: where it came from, without query and fragment, for the record.
        path: where it is shown, absolute.
    """

    fd: int
    size: int
    sha256: str
    source: str
    path: str = ""

    def take(self) -> bytes:
        """Return the content and close the descriptor."""
        parts = []
        at = 0
        try:
            while at < self.size and (part := os.pread(self.fd, self.size - at, at)):
                parts.append(part)
                at += len(part)
        finally:
            os.close(self.fd)
        return b"".join(parts)


def stage(
    source: str,
    sha256: str = "",
    *,
    base: str = "/",
    home: str = "/",
    progress: Progress | None = None,
    limit: int = LIMIT,
) -> Staged:
    """Fetch one source.

    Args:
        source: ``https://…``, ``file://…``, or with fsspec ``s3://… gs://… az://…``.
        sha256: digest that the content must have, or empty.
        base: directory for a relative ``file://`` path.
        home: the caller's home directory, for ``file://~/…``.
        progress: told about every chunk, or None.
        limit: most bytes to accept.

    Raises:
        ProviderError: it cannot be had, is too long or has another digest.
    """
    try:
        return _stage(source, sha256, base=base, home=home, progress=progress, limit=limit)
    except FetchError as error:
        raise ProviderError((f"Cannot stage {public_name(source)}: {error}",)) from None


def stage_all(
    grants: Iterable[tuple[int, FileGrant]],
    base: str,
    *,
    home: str = "/",
    progress: Progress | None = None,
) -> tuple[dict[int, bytes], tuple[Staged, ...]]:
    """Fetch the source of every grant that has one.

    Args:
        grants: numbers and grants; one without a source is passed over.
        base: directory for relative paths of a grant that does not name its document.
        home: the caller's home directory.
        progress: told about every chunk, or None.

    Returns:
        Number to content, and what was staged, for the record.

    Raises:
        ProviderError: with every failure.
    """
    contents: dict[int, bytes] = {}
    staged: list[Staged] = []
    problems: list[str] = []
    for number, grant in grants:
        if not grant.source:
            continue
        document = grant.origin.file
        folder = os.path.dirname(document) if os.path.isabs(document) else base
        try:
            file = _stage(grant.source, grant.sha256, base=folder, home=home, progress=progress, limit=LIMIT)
        except FetchError as error:
            problems.append(f"Cannot stage {visible(grant.path)} from {public_name(grant.source)}: {error}")
            continue
        contents[number] = file.take()
        staged.append(file.replace(fd=-1, path=grant.path))
    if problems:
        raise ProviderError(tuple(problems))
    return contents, tuple(staged)


def _stage(source: str, sha256: str, *, base: str, home: str, progress: Progress | None, limit: int) -> Staged:
    """Copy a source into an anonymous file and check it.

    Raises:
        FetchError: it cannot be had, is too long or has another digest.
    """
    import hashlib

    digest = hashlib.sha256()
    size = 0
    name = public_name(source)
    fd = _anonymous_file()
    try:
        with open_source(source, base=base, home=home) as (read, total):
            _within(total, limit)
            while chunk := read(_CHUNK):
                size += len(chunk)
                _within(size, limit)
                digest.update(chunk)
                _write_all(fd, chunk)
                if progress is not None:
                    progress.update(name, size, total)
        _complete(size, total, digest.hexdigest(), sha256.lower())
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise
    finally:
        if progress is not None:
            progress.finish()
    return Staged(fd, size, digest.hexdigest(), name)


def _within(size: int, limit: int) -> None:
    """Refuse what is longer than allowed."""
    if size > limit:
        raise FetchError(f"it is longer than {limit} bytes")


def _complete(size: int, total: int, digest: str, declared: str) -> None:
    """Compare what arrived with what was announced and declared."""
    if total not in (-1, size):
        raise FetchError(f"{size} of {total} bytes arrived")
    if declared and digest != declared:
        raise FetchError(f"the content has sha256 {digest}, but {declared} is declared")


def _anonymous_file() -> int:
    """Return a descriptor of a file that has no name: on disk where the file system can, else in memory."""
    for folder in (os.environ.get("TMPDIR") or "/var/tmp", "/tmp"):  # noqa: S108 - O_TMPFILE makes no name there
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            continue
    return os.memfd_create("reach-staged", os.MFD_CLOEXEC)


def _write_all(fd: int, data: bytes) -> None:
    """Write a chunk.

    Raises:
        FetchError: the disk is full.
    """
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError as error:
        raise FetchError(f"cannot keep the content: {error.strerror}") from None
