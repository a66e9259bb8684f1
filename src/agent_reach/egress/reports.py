"""Reports of the guard inside, read with suspicion: they may explain a refusal and never change a decision."""

from __future__ import annotations

from agent_reach._util.record import Record
from agent_reach._util.visible import visible
from agent_reach.egress import hostnames
from agent_reach.outcome import Denial, Place
from agent_reach.wire import reports as wire
from agent_reach.wire.frames import FrameError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ACTIONS = frozenset(("call", "connect", "exec", "open", "resolve", "write"))
MAX_REMEMBERED = 1024

_MAX_DIGITS = 9


class At(Record):
    """A thread is about to connect: its id in its own pid namespace, and where it stands."""

    tid: int
    place: Place


class Lookup(Record):
    """A name is looked up: the name as given, the port or 0, and where."""

    name: str
    port: int
    place: Place | None


class Existence(Record):
    """The guard asks whether a path exists outside."""

    path: str


Report = At | Lookup | Existence | Denial


def read(fields: dict[str, str]) -> Report:
    """Return the report of a frame.

    Raises:
        FrameError: it is of no known kind, lacks a field, or a field holds what it may not.
    """
    reader = _READERS.get(fields.get("kind", ""))
    if reader is None:
        raise FrameError("a report is of no known kind")
    try:
        return reader(fields)
    except KeyError as missing:
        raise FrameError(f"a report lacks the field {missing}") from None


class Places:
    """Where threads and lookups stand in the user's source, until the refusal they explain."""

    def __init__(self) -> None:
        self._threads: dict[int, Place] = {}
        self._lookups: dict[str, Lookup] = {}

    def __bool__(self) -> bool:
        return bool(self._threads)

    def remember(self, report: At | Lookup) -> None:
        """Keep a place; the oldest is forgotten first."""
        if isinstance(report, At):
            self._threads.pop(report.tid, None)
            self._threads[report.tid] = report.place
            _shrink(self._threads)
            return
        host = hostnames.canonical(report.name)
        if host is not None:
            self._lookups.pop(host, None)
            self._lookups[host] = report
            _shrink(self._lookups)

    def take(self, tid: int) -> Place | None:
        """Return the place of a thread and forget it: it belongs to one connect."""
        return self._threads.pop(tid, None)

    def lookup(self, host: str) -> Lookup | None:
        """Return where a canonical name was looked up; a lookup sends several queries, so it is kept."""
        return self._lookups.get(host)


def _shrink(remembered: dict[int, Place] | dict[str, Lookup]) -> None:
    """Forget the oldest entry beyond the bound."""
    if len(remembered) > MAX_REMEMBERED:
        del remembered[next(iter(remembered))]  # type: ignore[arg-type]  # its own key


def _at(fields: dict[str, str]) -> At:
    """Read `wire.at`."""
    place = _place(fields)
    if place is None:
        raise FrameError("a report of a place names none")
    return At(_number(fields["tid"]), place)


def _lookup(fields: dict[str, str]) -> Lookup:
    """Read `wire.name`."""
    return Lookup(fields["name"], _number(fields["port"]), _place(fields))


def _denied(fields: dict[str, str]) -> Denial:
    """Read `wire.denied`."""
    if fields["action"] not in ACTIONS:
        raise FrameError("a report of a refusal names no known action")
    subject, clause, entry = (visible(fields[key]) for key in ("subject", "clause", "entry"))
    return Denial(fields["action"], subject, clause, entry, _place(fields), fields["shown"] == wire.YES, "python")


def _existence(fields: dict[str, str]) -> Existence:
    """Read `wire.exists`."""
    path = fields["path"]
    if not path.startswith("/") or "\0" in path:
        raise FrameError("a question after a path gives no absolute path")
    return Existence(path)


def _place(fields: dict[str, str]) -> Place | None:
    """Return the place of a report, None for line 0."""
    line = _number(fields["line"])
    return Place(visible(fields["file"]), line, visible(fields["function"]) or "<module>") if line else None


def _number(text: str) -> int:
    """Return a number of at most nine ASCII digits."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise FrameError("a report holds no number where one belongs")
    return int(text)


_READERS: dict[str, Callable[[dict[str, str]], Report]] = {
    wire.AT: _at,
    wire.NAME: _lookup,
    wire.DENIED: _denied,
    wire.EXISTS: _existence,
}
