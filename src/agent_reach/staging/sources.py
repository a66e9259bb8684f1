"""Open a source for reading: ``file`` and ``https`` built in, object stores through fsspec."""

from __future__ import annotations

import os
from contextlib import contextmanager

from agent_reach._util.visible import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Opened = tuple[Callable[[int], bytes], int]

STORES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}
"""Schemes of object stores, and the package that fsspec needs for each."""


class FetchError(Exception):
    """A source cannot be had; the text says why and holds no credentials."""


@contextmanager
def open_source(source: str, *, base: str, home: str) -> Iterator[Opened]:
    """Open a source and give a function that reads it, and its length, -1 when that is unknown.

    Args:
        source: URI.
        base: directory for a relative ``file://`` path.
        home: the caller's home directory.

    Raises:
        FetchError: it cannot be opened or read.
    """
    scheme, mark, rest = source.partition("://")
    if not mark or not rest or not source.isprintable() or "${" in source:
        raise FetchError("a source is written scheme://path, and nothing in it is expanded")
    if scheme == "file":
        with _open_file(rest, base, home) as opened:
            yield opened
    elif scheme == "https":
        from agent_reach.staging.https import open_https

        with open_https(source) as opened:
            yield opened
    elif scheme in STORES:
        with _open_store(source, STORES[scheme]) as opened:
            yield opened
    else:
        raise FetchError(f"no fetcher for {visible(scheme)}://; reach knows file, https, {', '.join(STORES)}")


def public_name(source: str) -> str:
    """Return a source without user name, query and fragment: signed URLs carry their signature there."""
    scheme, mark, rest = source.partition("://")
    if scheme == "file":
        return visible(source)
    place = rest.partition("?")[0].partition("#")[0]
    host, slash, path = place.partition("/")
    return visible(f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}")


@contextmanager
def _open_file(path: str, base: str, home: str) -> Iterator[Opened]:
    """Open a regular file of the caller."""
    from urllib.parse import unquote

    from agent_reach._util.regular import open_regular

    path = unquote(path)
    if path.startswith("~/"):
        path = home + path[1:]
    path = os.path.normpath(os.path.join(base, path))
    try:
        fd, about = open_regular(path)
    except FileNotFoundError:
        raise FetchError(f"no such file: {visible(path)}") from None
    except (OSError, ValueError) as error:
        raise FetchError(f"{visible(path)}: {getattr(error, 'strerror', None) or error}") from None

    def read(size: int) -> bytes:
        try:
            return os.read(fd, size)
        except OSError as error:
            raise FetchError(f"{visible(path)}: {error.strerror}") from None

    try:
        yield read, about.st_size or -1
    finally:
        os.close(fd)


@contextmanager
def _open_store(source: str, package: str) -> Iterator[Opened]:
    """Open an object of a store through fsspec, which has its own ways to find credentials."""
    import importlib

    try:
        fsspec = importlib.import_module("fsspec")
    except ImportError:
        hint = f"pip install 'agent-reach-runtime[fsspec]' {package}"
        raise FetchError(f"the fsspec package is missing; {hint}") from None
    try:
        file = fsspec.open(source, "rb").open()
    except FileNotFoundError:
        raise FetchError("there is no such object") from None
    except ImportError:
        raise FetchError(f"fsspec needs the package {package}; pip install {package}") from None
    except Exception as error:  # noqa: BLE001 - each store raises its own, and texts can quote signed requests
        raise FetchError(f"the store refused ({type(error).__name__})") from None

    def read(size: int) -> bytes:
        try:
            data: bytes = file.read(size)
        except Exception as error:  # noqa: BLE001 - as above
            raise FetchError(f"the store failed while reading ({type(error).__name__})") from None
        return data

    with file:
        yield read, file.size if isinstance(getattr(file, "size", None), int) else -1
