"""The filter program of a warm run, without the tables, the policy and the compiler.

Building takes 10 to 20 ms, most of it the import of what the policy is made of; reading it back takes 0.1.
"""

from __future__ import annotations

import os
import stat

from agent_reach import __version__
from agent_reach.linux._syscalls import machine as this_machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.linux.seccomp.options import FilterOptions

SOURCES = ("allow_list.py", "bpf.py", "compile.py", "options.py", "policy.py", "rules.py")
LONGEST_PROGRAM = 8 * 4096
CHECK_PRIME = (1 << 61) - 1  # a remainder notices a torn write, and costs no import as a checksum would


def program(options: FilterOptions, directory: str = "", machine: str = "") -> bytes:
    """Return the filter program, from the cache where it has it.

    Args:
        options: what the plan varies.
        directory: cache; used only if it belongs to us and nobody else may enter it, and made if missing.
            Empty: build every time. No sandbox may ever be granted it, or a run could weaken the next.
        machine: ``x86_64`` or ``aarch64``; empty is this one.
    """
    machine = machine or this_machine()
    signature = _signature() if directory and _is_private(directory) else b""
    name = f"seccomp-{machine}-{options.key()}"
    found = _read(os.path.join(directory, name), signature) if signature else b""
    if found:
        return found
    from agent_reach.linux.seccomp.compile import build

    built = build(machine, options)
    if signature:
        _write(directory, name, signature, built)
    return built


def _signature() -> bytes:
    """Return what a cached program depends on: our version and the state of the policy's sources.

    Empty when the sources are no files, as in a zip archive.
    """
    folder = os.path.dirname(__file__)
    parts = [__version__]
    try:
        for source in (*SOURCES, "../abi/syscalls_x86_64.py", "../abi/syscalls_aarch64.py"):
            state = os.stat(f"{folder}/{source}")
            parts.append(f"{state.st_size}.{state.st_mtime_ns}.{state.st_ino}")
    except OSError:
        return b""
    return " ".join(parts).encode()


def _is_private(directory: str) -> bool:
    """Return whether a directory is ours alone, after making it if it is missing."""
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        pass
    except OSError:
        return False
    state = os.lstat(directory)
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and not state.st_mode & 0o077


def _read(path: str, signature: bytes) -> bytes:
    """Return a cached program, or nothing when it is missing, older than the sources, or cut off."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o022:
            return b""
        header, _, body = os.read(descriptor, LONGEST_PROGRAM + 4096).partition(b"\n")
    finally:
        os.close(descriptor)
    return body if header == _header(signature, body) and body else b""


def _write(directory: str, name: str, signature: bytes, body: bytes) -> None:
    """Put a program into the cache in one step; a full or read-only disk is no reason to fail."""
    from agent_reach._util.atomic import put

    try:
        put(os.path.join(directory, name), _header(signature, body) + b"\n" + body)
    except OSError:
        return


def _header(signature: bytes, body: bytes) -> bytes:
    """Return the first line of a cache file."""
    return b"%s %d %x" % (signature, len(body), int.from_bytes(body, "little") % CHECK_PRIME)
