"""What happened in a run, once each: refusals and connections, counted, within bounds."""

from __future__ import annotations

from agent_reach.outcome import Connection, Denial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.outcome import Place

    Event = Denial | Connection

OVERFLOW = Denial("more", "", "too many different refusals to keep apart", shown=False, layer="broker")


class Ledger:
    """Counts events; a program that provokes refusals without end costs bounded memory.

    Args:
        report: called with an event at its first occurrence.
        capacity: most different events of each kind; the rest is one count.
    """

    def __init__(self, report: Callable[[Event], None], capacity: int = 1000) -> None:
        self._report = report
        self._capacity = capacity
        self._denials: dict[tuple[str, str, Place | None], tuple[Denial, int]] = {}
        self._connections: dict[tuple[str, str, int], int] = {}
        self._beyond = self._connections_beyond = 0

    def deny(self, denial: Denial, count: int = 1) -> None:
        """Take down a refusal.

        Args:
            denial: the refusal.
            count: 0 when it is only another side of one that was counted.
        """
        key = (denial.action, denial.subject, denial.place)
        known = self._denials.get(key)
        if known is not None:
            self._denials[key] = (known[0], known[1] + count)
        elif len(self._denials) < self._capacity:
            self._denials[key] = (denial, 1)
            self._report(denial)
        else:
            self._beyond += 1

    def connect(self, host: str, address: str, port: int) -> None:
        """Take down an allowed connection that is dialled now."""
        key = (host, address, port)
        if key in self._connections:
            self._connections[key] += 1
        elif len(self._connections) < self._capacity:
            self._connections[key] = 1
            self._report(Connection(host, address, port))
        else:
            self._connections_beyond += 1

    def denials(self) -> tuple[Denial, ...]:
        """Return the refusals so far with their counts, in order of first occurrence."""
        kept = tuple(denial.replace(count=count) for denial, count in self._denials.values())
        return (*kept, OVERFLOW.replace(count=self._beyond)) if self._beyond else kept

    def connections(self) -> tuple[Connection, ...]:
        """Return the connections so far with their counts, in order of first occurrence."""
        kept = tuple(Connection(*key, count) for key, count in self._connections.items())
        beyond = self._connections_beyond
        return (*kept, Connection("(more, too many to keep apart)", "", 0, beyond)) if beyond else kept
