"""Remember what an interpreter answered, as long as nothing that decides the answer has changed."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.host.model import Interpreter

_FORMAT = "1"


def read(cache_dir: str, executable: str) -> Interpreter | None:
    """Return the remembered answer, or None when there is none or it is stale.

    Args:
        cache_dir: directory of mode 0700 that the caller owns; anything else is not trusted.
        executable: absolute path of the interpreter.
    """
    try:
        about = os.stat(cache_dir)
        if about.st_uid != os.geteuid() or about.st_mode & 0o077:
            return None
        with open(_file(cache_dir, executable), "rb") as stream:
            text = stream.read().decode("utf-8", "surrogateescape")
    except OSError:
        return None
    head, _, body = text.partition("\0\0")
    if not body:
        return None
    from agent_reach.host.interpreter import parse

    try:
        known = parse(executable, body.encode("utf-8", "surrogateescape"))
    except (KeyError, ValueError):
        return None
    return known if head == _stamp(known) else None


def write(cache_dir: str, known: Interpreter) -> None:
    """Keep an answer; a cache that cannot be written is no failure."""
    from agent_reach._util.atomic import put

    pairs = [("version", known.version), ("prefix", known.prefix), ("base_prefix", known.base_prefix)]
    pairs += [("stdlib", known.stdlib)]
    pairs += [("search", path) for path in known.search] + [("extra", path) for path in known.extra]
    body = "\0".join(f"{key}={value}" for key, value in pairs)
    try:
        os.makedirs(cache_dir, mode=0o700, exist_ok=True)
        data = (_stamp(known) + "\0\0" + body).encode("utf-8", "surrogateescape")
        put(_file(cache_dir, known.executable), data)
    except OSError:
        return


def _file(cache_dir: str, executable: str) -> str:
    """Name the cache file after the path; a slash cannot stand in a name."""
    return os.path.join(cache_dir, "interpreter" + executable.replace("%", "%25").replace("/", "%")[-200:])


def _stamp(known: Interpreter) -> str:
    """Sum up everything that can change the answer: binary, pyvenv.cfg, directories that hold .pth files."""
    parts = [_FORMAT, known.executable]  # the file's name holds only the end of a long path
    watched = [known.real, os.path.join(known.prefix, "pyvenv.cfg")]
    watched += [path for path in known.search if path.endswith("-packages")]
    for path in watched:
        try:
            about = os.stat(path)
            parts.append(f"{path}:{about.st_ino}:{about.st_mtime_ns}")
        except OSError:
            parts.append(f"{path}:-")
    return "|".join(parts)
