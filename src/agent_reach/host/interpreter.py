"""Find the Python that runs the user's code and ask it, once, what it is made of."""

from __future__ import annotations

import os
import sys

from agent_reach.errors import Unavailable
from agent_reach.host.commands import interpreters
from agent_reach.host.model import Interpreter
from agent_reach.host.paths import beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Asked in the interpreter itself. Editable installs are found in two ways: a plain path in a .pth file is
# already in sys.path; a finder (`__editable___*`) keeps a MAPPING of names to directories.
_QUESTION = """
import os, sys, sysconfig
out = [("version", "%d.%d" % sys.version_info[:2]), ("prefix", sys.prefix), ("base_prefix", sys.base_prefix),
       ("stdlib", sysconfig.get_path("stdlib"))]
out += [("search", p) for p in sys.path if p and os.path.exists(p)]
for name, module in list(sys.modules.items()):
    if name.startswith("__editable__") and isinstance(getattr(module, "MAPPING", None), dict):
        out += [("extra", os.path.dirname(p) if os.path.isfile(p) else p) for p in module.MAPPING.values()]
sys.stdout.buffer.write(b"\\0".join((k + "=" + v).encode("utf-8", "surrogateescape") for k, v in out))
"""
_OLDEST = (3, 9)
_LIMIT = 1 << 20


def discover(
    *, asked: str, script: str, project_root: str, environ: Mapping[str, str], cache_dir: str | None
) -> Interpreter:
    """Choose an interpreter by the order of CONTRACT section 3 and describe it.

    Args:
        asked: path or name given by ``--python`` or the contract's ``python``, or empty.
        script: absolute path of the script, or empty.
        project_root: where the search for ``.venv`` ends.
        environ: the caller's environment.
        cache_dir: where answers are kept, or None.

    Raises:
        Unavailable: nothing usable was found, or it is older than 3.9.
    """
    executable, why = _choose(asked, script, project_root, environ)
    from agent_reach.host import interpreter_cache

    known = interpreter_cache.read(cache_dir, executable) if cache_dir else None
    if known is None:
        known = _describe(executable)
        if cache_dir:
            interpreter_cache.write(cache_dir, known)
    if tuple(int(part) for part in known.version.split(".")) < _OLDEST:
        raise Unavailable(f"Python {known.version}", needed="3.9 or newer", found=executable, fix="--python PATH")
    return known.replace(chosen_by=why)


def _choose(asked: str, script: str, project_root: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the path of the interpreter and the reason."""
    if asked:
        found = asked if "/" in asked else _on_path(asked, environ)
        if not found or not os.access(found, os.X_OK):
            raise Unavailable("interpreter", needed=asked, found="no such executable", fix="--python PATH")
        return os.path.abspath(found), "python"
    candidates = (
        (_shebang(script, environ), "shebang"),
        (_in_environment(environ.get("VIRTUAL_ENV", "")), "VIRTUAL_ENV"),
        (_dot_venv(script, project_root), ".venv"),
        (_in_environment(environ.get("CONDA_PREFIX", "")), "CONDA_PREFIX"),
        (_on_path("python3", environ), "PATH"),
    )
    for path, why in candidates:
        if path:
            return path, why
    return sys.executable, "reach's own"


def _in_environment(root: str) -> str:
    """Return the interpreter of a virtual environment, or nothing."""
    path = os.path.join(root, "bin", "python") if root else ""
    return path if path and os.access(path, os.X_OK) else ""


def _dot_venv(script: str, project_root: str) -> str:
    """Look for ``.venv`` from the script's directory up to the project root."""
    if not project_root:
        return ""
    place = os.path.dirname(script) if script else project_root
    while beneath(place, project_root):
        found = _in_environment(os.path.join(place, ".venv"))
        if found or place == "/":
            return found
        place = os.path.dirname(place)
    return ""


def _on_path(name: str, environ: Mapping[str, str]) -> str:
    """Return the first real executable of that name; version-manager shims are shell scripts and are passed over."""
    for directory in environ.get("PATH", "/usr/bin:/bin").split(":"):
        path = os.path.join(directory or ".", name)
        if os.path.isfile(path) and os.access(path, os.X_OK) and not _is_text(path):
            return os.path.abspath(path)
    return ""


def _is_text(path: str) -> bool:
    """Say whether the file starts like a script: it would have to be resolved by running it."""
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read(2) == b"#!"
    except OSError:
        return True


def _shebang(script: str, environ: Mapping[str, str]) -> str:
    """Return the interpreter named in the first line of an executable script."""
    if not script or not os.access(script, os.X_OK):
        return ""
    try:
        with open(script, "rb", buffering=0) as stream:
            first = stream.read(256).split(b"\n", 1)[0]
    except OSError:
        return ""
    if not first.startswith(b"#!"):
        return ""
    words = interpreters(first[2:].decode("utf-8", "replace").split())
    if not words or "python" not in os.path.basename(words[-1]):
        return ""
    if len(words) > 1 and "/" not in words[1]:
        return _on_path(words[1], environ)
    return words[-1] if os.access(words[-1], os.X_OK) else ""


def _describe(executable: str) -> Interpreter:
    """Run the interpreter once and take its answers.

    Raises:
        Unavailable: it cannot be run or answers nothing.
    """
    try:
        answer = ask(executable, ("-E", "-c", _QUESTION), _LIMIT)
    except OSError as error:
        raise Unavailable("interpreter", needed=executable, found=error.strerror or "", fix="--python PATH") from error
    if not answer:
        raise Unavailable("interpreter", needed=executable, found="it ended with an error", fix="--python PATH")
    return parse(executable, answer)


def ask(executable: str, arguments: tuple[str, ...], limit: int) -> bytes:
    """Run an interpreter and return what it writes, nothing when it fails.

    Args:
        executable: its path.
        arguments: behind the name.
        limit: most bytes to take.

    Raises:
        OSError: it cannot be started.
    """
    read, write = os.pipe()
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    try:
        pid = os.posix_spawn(
            executable,
            [executable, *arguments],
            # The caller's environment can change what `sys.path` says; HOME decides the user site.
            {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, write, 1),
                (os.POSIX_SPAWN_DUP2, null, 2),
            ],
        )
    except OSError:
        os.close(read)
        raise
    finally:
        os.close(write)
        os.close(null)
    with open(read, "rb") as stream:
        answer = stream.read(limit)
    _, status = os.waitpid(pid, 0)
    return b"" if status else answer


def parse(executable: str, answer: bytes) -> Interpreter:
    """Turn ``key=value`` strings, separated by NUL, into the record."""
    single: dict[str, str] = {}
    lists: dict[str, list[str]] = {"search": [], "extra": []}
    for item in answer.decode("utf-8", "surrogateescape").split("\0"):
        key, _, value = item.partition("=")
        if key in lists:
            lists[key].append(value)
        else:
            single[key] = value
    return Interpreter(
        executable=executable,
        real=os.path.realpath(executable),
        version=single["version"],
        prefix=single["prefix"],
        base_prefix=single["base_prefix"],
        stdlib=single["stdlib"],
        search=tuple(lists["search"]),
        extra=tuple(lists["extra"]),
    )
