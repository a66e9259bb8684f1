"""The Python-level guard: turns what the kernel would refuse into an exception that names the contract.

It runs as `sitecustomize` of the user's interpreter. Whatever goes around it meets the kernel, which decides
alone; so it may be simple, and it must be cheap: a bare `print` pays for every line here.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType

_FILES = "not in resources.files"
_HERE = os.path.dirname(os.path.abspath(__file__))
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Guard:
    """An audit hook (PEP 578) that knows what the contract grants.

    Args:
        table: sections ``read``, ``write``, ``granted``, ``append``, ``scratch``, ``hidden``, ``home``, ``library``
            with paths, ``host`` and ``protected`` with names.
    """

    def __init__(self, table: dict[str, tuple[str, ...]]) -> None:
        self._table = table
        self._read = table.get("read", ())
        self._write = table.get("write", ())
        self._wire: ModuleType | None = None
        self._busy = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        """Look at one event; everything but six of them is passed over at once."""
        if event == "open":
            path, mode, flags = arguments
            if isinstance(path, (str, bytes)) and isinstance(flags, int) and not self._busy:
                self._on_open(os.fsdecode(path), flags, by_name=mode is not None)
        elif event == "socket.connect":
            self._on_connect(arguments[1])
        elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
            port = arguments[1] if len(arguments) > 1 else 0
            self._on_lookup(arguments[0], port if isinstance(port, int) else 0)
        elif event == "os.mkdir":
            if isinstance(arguments[0], (str, bytes)) and arguments[2] == -1:
                name = os.fsdecode(arguments[0])
                self._check_name(name, _absolute(name))
        elif event == "os.system":
            self._refuse("call", "os.system", "disabled in restricted context")
            raise SystemError("os.system() is disabled in restricted context")

    def _on_open(self, path: str, flags: int, *, by_name: bool) -> None:
        """Refuse what no grant covers, if the host has it; what it has not stays ENOENT."""
        # A relative name may belong to a directory descriptor (os.open(dir_fd=...)), which the event does not tell.
        if not by_name and not path.startswith("/"):
            return
        text = _absolute(path)
        writing = bool(flags & _WRITING)
        granted = _beneath(text, self._write if writing else self._read)
        if granted and not _beneath(text, self._table.get("hidden", ())):
            if writing:
                self._check_write(path, text, flags)
            return
        private = _beneath(text, self._table.get("home", ()))
        scratch = private or _beneath(text, self._table.get("scratch", ()))
        if not writing and os.path.lexists(text) and (scratch or _beneath(text, self._write)):
            return  # the program's own file; or one granted for writing only, which the kernel says
        there = os.path.lexists(text) or (not private and self._exists(os.path.dirname(text) if writing else text))
        action, mode = ("write", "w") if writing else ("open", "r")
        entry = f"- {{path: {_scalar(text)}, mode: {mode}}}"
        clause = "granted for reading only" if writing and _beneath(text, self._read) else _FILES
        if there:
            self._refuse(action, text, clause, entry)
            raise PermissionError(13, "Permission denied", path)
        self._refuse(action, text, clause, entry, shown=False)

    def _check_write(self, path: str, text: str, flags: int) -> None:
        """Hold what no mount can: append grants, and names that other programs of the host obey."""
        if _beneath(text, self._table.get("append", ())) and (flags & os.O_TRUNC or not flags & os.O_APPEND):
            self._refuse("write", text, "granted for appending only", f"- {{path: {_scalar(text)}, mode: w}}")
            raise PermissionError(13, "Permission denied", path)
        self._check_name(path, text)

    def _check_name(self, path: str, text: str) -> None:
        """Refuse to make a protected name in a writable grant, unless a grant names it exactly."""
        grants = self._table.get("granted", ())
        known = os.path.basename(text) in self._table.get("protected", ())
        if known and text not in grants and _beneath(text, grants) and not os.path.lexists(text):
            clause = "a protected name in a writable grant: other programs would run or obey it"
            self._refuse("write", text, clause, f"- {{path: {_scalar(text)}, mode: w}}")
            raise PermissionError(13, "Permission denied", path)

    def _on_connect(self, address: object) -> None:
        """Say where a connect comes from that the contract may refuse; the supervisor decides."""
        if not isinstance(address, tuple) or len(address) < 2:
            return
        if not str(address[0]).startswith("198.18.") or str(address[1]) not in self._table.get("port", ()):
            wire = self._load()
            import _thread

            self._send(wire.at(_thread.get_native_id(), self._spot()))

    def _on_lookup(self, host: object, port: int) -> None:
        """Say where a name is looked up that no rule names."""
        text = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        if isinstance(text, str) and text and text.lower().rstrip(".") not in self._table.get("host", ()):
            wire = self._load()
            self._send(wire.name(text, port, self._spot()))

    def _refuse(self, action: str, subject: str, clause: str, entry: str = "", *, shown: bool = True) -> None:
        """Report a refusal of our own."""
        wire = self._load()
        report = wire.denied(action, subject, clause, entry=entry, spot=self._spot(), shown=shown)
        self._send(report, settled=shown)

    def _exists(self, path: str) -> bool:
        """Ask whether the host has a path that is not shown inside."""
        wire = self._load()
        try:
            question = wire.exists(path)
        except ValueError:
            return False  # longer than any path of the host, or no text: the kernel will say so
        return self._send(question, answered=True).endswith(wire.YES.encode())

    def _spot(self) -> object:
        """Return the nearest line of the user's own code."""
        wire = self._load()
        library = self._table.get("library", ())
        # Our code was compiled under a path of its own, which in tier `reduced` is not where it lies.
        own = ("<frozen", _HERE, _beneath.__code__.co_filename)
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller's frame
        while frame is not None:
            name = frame.f_code.co_filename
            if not name.startswith(own) and not _beneath(name, library):
                return wire.Spot(name, frame.f_lineno, frame.f_code.co_name)
            frame = frame.f_back
        return wire.Spot()

    def _load(self) -> ModuleType:
        """Import the codec from our own directory, without leaving a name behind."""
        if self._wire is None:
            self._busy = True
            kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "agent_reach"}
            sys.path.insert(0, _HERE)
            try:
                from agent_reach.wire import reports

                self._wire = reports
            finally:
                sys.path.remove(_HERE)
                for name in [name for name in sys.modules if name.split(".")[0] == "agent_reach"]:
                    del sys.modules[name]
                sys.modules.update(kept)
                self._busy = False
        return self._wire

    def _send(self, frame: bytes, *, answered: bool = False, settled: bool = False) -> bytes:
        """Send one frame to the supervisor; without an answer the kernel's refusal has to do."""
        import _socket

        channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._busy = True
        try:
            channel.settimeout(2)
            _socket.socket.connect(channel, self._load().CHANNEL)
            channel.sendall(frame)
            if settled:
                # Closed from outside when the report has been passed on: it then stands before our traceback.
                channel.shutdown(_socket.SHUT_WR)
            return channel.recv(256) if answered or settled else b""
        except OSError:
            return b""
        finally:
            self._busy = False
            channel.close()


def _absolute(path: str) -> str:
    """Return a path in the one form that the table has; POSIX lets two slashes at the start stand."""
    text = os.path.abspath(path)
    return text[1:] if text.startswith("//") else text


def _scalar(text: str) -> str:
    """Write a path as YAML: plain where that is safe, else in double quotes."""
    if all(letter.isalnum() or letter in "/._-+@%=~" for letter in text) and text.isascii():
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _beneath(path: str, roots: tuple[str, ...]) -> bool:
    """Say whether a path is one of the roots or lies below one."""
    return any(path == root or path.startswith(root if root[-1] == "/" else root + "/") for root in roots)


def _table() -> dict[str, tuple[str, ...]]:
    """Read what the plan wrote: one ``section value`` a line, line ends escaped."""
    table: dict[str, list[str]] = {}
    with open(os.path.join(_HERE, "grants"), encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream.read().split("\n"):
            section, _, value = line.partition(" ")
            if value:
                parts = (part.replace("\\n", "\n") for part in value.split("\\\\"))
                table.setdefault(section, []).append("\\".join(parts))
    return {section: tuple(values) for section, values in table.items()}


def _leave_no_trace() -> None:
    """Take our directory off the search path and the environment, and let the real sitecustomize run."""
    sys.path[:] = [entry for entry in sys.path if entry != _HERE]
    rest = [entry for entry in os.environ.pop("PYTHONPATH", "").split(":") if entry and entry != _HERE]
    if rest:
        os.environ["PYTHONPATH"] = ":".join(rest)
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401 - the one that we stand in for
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    if ours is not None:
        sys.modules.setdefault("sitecustomize", ours)


class _StartMethod:
    """Sets the start method of multiprocessing when the program imports it (options.multiprocessing_start_method)."""

    def __init__(self, method: str) -> None:
        self._method = method

    def find_spec(self, name: str, *_where: object) -> None:
        """Import the real module, set its method, and let the search go on: it is in `sys.modules` by then."""
        if name == "multiprocessing" and self in sys.meta_path:
            sys.meta_path.remove(self)
            import multiprocessing

            multiprocessing.set_start_method(self._method)


def install() -> None:
    """Put the guard in place."""
    table = _table()
    guard = Guard(table)
    _leave_no_trace()
    for method in table.get("start", ()):
        sys.meta_path.insert(0, _StartMethod(method))
    sys.addaudithook(guard)


if __name__ == "sitecustomize":
    install()
