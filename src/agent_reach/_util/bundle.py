"""The modules of a warm run from one file: a hundred imports cost 20 ms one by one and 8 ms from here.

The file holds compiled code and what it was compiled from (path, size, time of change); one source that differs
and all of it is passed over. It lies in the caller's private cache, is written after a run by rename, and is
never trusted beyond what a ``.pyc`` beside the source would be: same owner, nobody else may write.
"""

from __future__ import annotations

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import CodeType, ModuleType
    from typing import Any

    # Path, is a package, size, time of change in nanoseconds, code as marshal writes it.
    Entry = tuple[str, bool, int, int, bytes]
    Entries = dict[str, Entry]

_PACKAGE = "agent_reach"
_FEW = 4
_LARGEST = 16 << 20


class Finder:
    """A meta path finder that serves modules from a bundle.

    Args:
        entries: what the bundle holds.
    """

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def find_spec(self, name: str, *_where: object) -> Any:  # noqa: ANN401 - importlib's own type costs an import
        """Return the spec of a module in the bundle, or None."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        path, is_package, *_ = entry
        kind: Any = type(sys.__spec__)  # importlib.machinery.ModuleSpec, without importing importlib
        spec = kind(name, self, origin=path, is_package=is_package)
        spec.has_location = True
        if is_package and spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(os.path.dirname(path))
        return spec

    def create_module(self, _spec: object) -> None:
        """Let importlib make an ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module."""
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102 - our own compiled modules

    def get_code(self, name: str) -> CodeType:
        """Return the code of a module; only those that are imported are decoded."""
        code: CodeType = marshal.loads(self._entries[name][4])  # noqa: S302 - our own file, as a .pyc is
        return code

    def names(self) -> Iterable[str]:
        """Return the names of the modules."""
        return self._entries.keys()


def install(environ: Mapping[str, str]) -> str:
    """Serve our modules from the bundle, if there is a current one.

    Args:
        environ: the caller's environment.

    Returns:
        Path of the bundle, for `refresh`; empty where there is no private cache.
    """
    place = _place(environ)
    if not place:
        return ""
    file = os.path.join(place, f"modules-{sys.implementation.cache_tag}{'-O' * sys.flags.optimize}")
    entries = _read(file)
    if entries and all(_same(entry) for entry in entries.values()):
        sys.meta_path.insert(0, Finder(entries))
    return file


def refresh(file: str) -> None:
    """Write the bundle anew when several modules of this run were not in it.

    Args:
        file: from `install`.
    """
    served = next((set(item.names()) for item in sys.meta_path if isinstance(item, Finder)), set())
    loaded = {name for name in sys.modules if name.partition(".")[0] == _PACKAGE}
    if not file or len(loaded - served) < _FEW:
        return
    entries: Entries = {}
    for name in sorted(loaded | served):
        module = sys.modules.get(name) or __import__(name, fromlist=["_"])
        path = module.__file__
        if path is None or not path.endswith(".py"):
            return  # from a zip archive, or frozen: nothing to gain
        try:
            about = os.stat(path)
            with open(path, "rb") as stream:
                code = marshal.dumps(compile(stream.read(), path, "exec", dont_inherit=True))
        except (OSError, SyntaxError):
            return
        entries[name] = (path, hasattr(module, "__path__"), about.st_size, about.st_mtime_ns, code)
    _write(file, entries)


def _place(environ: Mapping[str, str]) -> str:
    """Return the cache directory, if it is ours alone."""
    base = environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        home = environ.get("HOME", "")
        if not home.startswith("/"):
            return ""
        base = f"{home}/.cache"
    place = f"{base}/reach"
    try:
        about = os.stat(place)
    except OSError:
        return ""
    return place if about.st_uid == os.geteuid() and not about.st_mode & 0o077 else ""


def _read(file: str) -> Entries | None:
    """Read a bundle of ours; anything else counts as none."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb", buffering=0) as stream:
        about = os.fstat(descriptor)
        if about.st_uid != os.geteuid() or about.st_mode & 0o077 or about.st_size > _LARGEST:
            return None
        data = stream.read(_LARGEST)
    try:
        entries: Entries = marshal.loads(data)  # noqa: S302 - our own file, as a .pyc is
    except (EOFError, ValueError, TypeError):
        return None
    return entries if isinstance(entries, dict) else None


def _same(entry: Entry) -> bool:
    """Say whether a source is still what the code was compiled from."""
    path, _, size, changed, _ = entry
    try:
        about = os.stat(path)
    except OSError:
        return False
    return about.st_size == size and about.st_mtime_ns == changed


def _write(file: str, entries: Entries) -> None:
    """Write by rename: a reader sees the old bundle or the new one."""
    temporary = f"{file}.{os.getpid()}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as stream:
            stream.write(marshal.dumps(entries))
        os.rename(temporary, file)
    except OSError:
        return
