"""Our code inside, compiled once by the very interpreter that will run it: compiling costs it 4 ms each time."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.host.model import Interpreter

# A .pyc: magic number, flags (checked against nothing), eight bytes that nobody looks at without a source beside it.
_COMPILE = """
import importlib.util, marshal, sys
with open(sys.argv[1], encoding="utf-8") as stream:
    code = compile(stream.read(), sys.argv[2], "exec", dont_inherit=True)
sys.stdout.buffer.write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
"""
_LIMIT = 1 << 20
_SEPARATOR = b"\0\0"


def compiled(cache_dir: str, known: Interpreter, source: str, shown_as: str) -> bytes | None:
    """Return a ``.pyc`` of a source for an interpreter, or None when there is none to be had.

    The bytes only ever go into a sandbox: nothing out here loads them.

    Args:
        cache_dir: private directory of the caller's.
        known: the interpreter.
        source: path of our source.
        shown_as: path in tracebacks.
    """
    stamp = _stamp(known, source)
    place = os.path.join(cache_dir, f"guard-{known.version}{known.real.replace('/', '%')[-120:]}")
    found = _read(place, stamp)
    if found is None:
        from agent_reach.host.interpreter import ask

        try:
            found = ask(known.executable, ("-I", "-S", "-c", _COMPILE, source, shown_as), _LIMIT)
        except OSError:
            return None
        if found:
            _write(place, stamp + _SEPARATOR + found)
    return found or None


def _stamp(known: Interpreter, source: str) -> bytes:
    """Sum up what decides the result: the binary and the source."""
    parts = []
    for path in (known.real, source):
        about = os.stat(path)
        parts.append(f"{path}:{about.st_ino}:{about.st_size}:{about.st_mtime_ns}")
    return os.fsencode("|".join(parts))


def _read(place: str, stamp: bytes) -> bytes | None:
    """Read a cached result that is still right."""
    try:
        with open(place, "rb", buffering=0) as stream:
            data = stream.read(_LIMIT)
    except OSError:
        return None
    head, _, body = data.partition(_SEPARATOR)
    return body if head == stamp and body else None


def _write(place: str, data: bytes) -> None:
    """Keep a result; a cache that cannot be written is no failure."""
    from agent_reach._util.atomic import put

    try:
        put(place, data)
    except OSError:
        return
