"""Resolve granted commands on the caller's PATH, at plan time."""

from __future__ import annotations

import os

from agent_reach.host.model import CommandFact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# The kernel follows `#!` from script to script so many times, then says ELOOP (execve(2), Linux 5.1).
_MOST_INTERPRETERS = 5


def find_command(name: str, helpers: tuple[str, ...], environ: Mapping[str, str]) -> CommandFact:
    """Say which files a grant of `name` makes visible.

    Args:
        name: file name, or absolute path.
        helpers: further names, or directories with a trailing slash.
        environ: the caller's environment.
    """
    found = _which(name, environ)
    files: list[tuple[str, str]] = []
    directories: list[str] = []
    for item in (name, *helpers):
        if item.endswith("/"):
            directories.append(os.path.normpath(item))
            continue
        files += _with_interpreter(_which(item, environ), environ)
    return CommandFact(name=name, found=found, files=tuple(dict.fromkeys(files)), directories=tuple(directories))


def _which(name: str, environ: Mapping[str, str]) -> str:
    """Return the first executable of that name on PATH, or nothing."""
    if "/" in name:
        return name if os.access(name, os.X_OK) and os.path.isfile(name) else ""
    for directory in environ.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":"):
        path = os.path.join(directory, name)
        if directory.startswith("/") and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def _with_interpreter(path: str, environ: Mapping[str, str], depth: int = 0) -> list[tuple[str, str]]:
    """Return the file under the name it was found by and under its real name, and its ``#!`` interpreter."""
    if not path or depth > _MOST_INTERPRETERS:
        return []
    real = os.path.realpath(path)
    # The name that was found may be a link (alternatives, busybox): both names must work inside.
    named = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    files = [(named, real), (real, real)]
    try:
        with open(real, "rb", buffering=0) as stream:
            first = stream.read(256).split(b"\n", 1)[0]
    except OSError:
        return files
    if first.startswith(b"#!"):
        for word in interpreters(first[2:].decode("utf-8", "replace").split()):
            pairs = _with_interpreter(_which(word, environ), environ, depth + 1)
            files += [pair for pair in pairs if pair not in files]
    return files


def interpreters(words: list[str]) -> list[str]:
    """Return what a ``#!`` line starts: its first word and, when that is env(1), the program that env looks for."""
    if not words or os.path.basename(words[0]) != "env":
        return words[:1]
    return words[:1] + [word for word in words[1:] if not word.startswith("-") and "=" not in word][:1]
