"""The parts of this host's file system that every Python needs and that hold no secret."""

from __future__ import annotations

import os

from agent_reach._util.record import Record

# No directory of executables is among them: a command is visible only when the contract grants it.
_DIRECTORIES = (
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libx32",
    "/usr/share",
    "/usr/local/lib",
    "/usr/local/share",
)
_TOP = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_CONFIGURATION = (
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/pki",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/timezone",
)


class SystemFact(Record):
    """What of the system this host has.

    Args:
        directories: real directories to show, read-only.
        links: top-level symlinks such as ``/lib`` and what they say.
        empty: top-level directories of executables, to be made without content.
        files: files and directories of /etc, by name and real path; a directory ends with a slash.
    """

    directories: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    empty: tuple[str, ...]
    files: tuple[tuple[str, str], ...]


def look_at_system() -> SystemFact:
    """Gather the facts; a merged /usr and a split one both work."""
    directories = [path for path in _DIRECTORIES if os.path.isdir(path) and not os.path.islink(path)]
    links: list[tuple[str, str]] = []
    empty: list[str] = []
    for path in _TOP:
        if os.path.islink(path):
            links.append((path, os.readlink(path)))
        elif path in {"/bin", "/sbin"}:
            empty.append(path)
        elif os.path.isdir(path):
            directories.append(path)
    files: list[tuple[str, str]] = []
    for path in _CONFIGURATION:
        real = os.path.realpath(path)
        if os.path.isdir(real):
            files.append((path + "/", real))
        elif os.path.isfile(real):
            files.append((path, real))
    return SystemFact(tuple(directories), tuple(links), tuple(empty), tuple(files))
