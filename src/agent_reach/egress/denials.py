"""Refusals with their reasons: which clause, which line would allow it, and where in the user's source."""

from __future__ import annotations

from agent_reach._util.visible import visible
from agent_reach.egress import reports
from agent_reach.outcome import Denial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.egress.call import Call
    from agent_reach.egress.ledger import Ledger
    from agent_reach.egress.policy import Decision, Policy
    from agent_reach.outcome import Place

# What the C library asks of its own accord: the name service cache and the system log.
_UNASKED = frozenset(("/var/run/nscd/socket", "/run/nscd/socket", "/dev/log", "/run/systemd/journal/socket"))
_UNIX_CLAUSE = "a Unix socket of the host needs `resources.sockets`, which this version does not grant"


class Denials:
    """Takes down refusals.

    Args:
        ledger: counts them.
        policy: says what is missing.
    """

    def __init__(self, ledger: Ledger, policy: Policy) -> None:
        self._ledger, self._policy = ledger, policy
        self._places = reports.Places()
        self.drain: Callable[[], None] = lambda: None

    def take(self, report: reports.At | reports.Lookup | Denial) -> None:
        """Take a report of a guard inside."""
        if isinstance(report, Denial):
            self._ledger.deny(report)
        else:
            self._places.remember(report)

    def connect(self, call: Call, decision: Decision) -> None:
        """Take down a refused connect."""
        place = self._place(call)
        if place is None and decision.name:
            lookup = self._places.lookup(decision.name)
            place = lookup.place if lookup else None
        self._ledger.deny(Denial("connect", decision.subject, decision.clause, decision.entry, place, layer="broker"))

    def unix(self, call: Call, path: str) -> None:
        """Take down a refused connect to a Unix socket."""
        shown = path not in _UNASKED
        self._ledger.deny(
            Denial("connect", visible(path, 200), _UNIX_CLAUSE, "", self._place(call), shown, layer="broker")
        )

    def listen(self, call: Call) -> None:
        """Take down a refused listen of tier ``reduced``."""
        clause = "tier reduced has no loopback of its own: a server would listen on the host"
        self._ledger.deny(Denial("call", "listen", clause, "", self._place(call), layer="broker"))

    def absent(self, name: str, count: int) -> None:
        """Take down a query for a name that is answered with "no such name" and asked of nobody.

        Args:
            name: canonical name, or the raw text where there is none.
            count: 0 for the second query of one lookup, for IPv6 addresses.
        """
        lookup = self._places.lookup(name)
        decision = self._policy.decide_name(name, lookup.port if lookup else 0)
        clause = f"{decision.clause}: no resolver is asked for it" if decision.name else decision.clause
        place = lookup.place if lookup else None
        self._ledger.deny(Denial("resolve", decision.subject, clause, decision.entry, place, layer="broker"), count)

    def fault(self, error: Exception) -> None:
        """Take down a fault in reach that refused a call, or ended a channel or a resolver's connection."""
        self._ledger.deny(Denial("call", "broker", visible(f"a fault in reach: {error!r}", 500), layer="broker"))

    def forget(self, call: Call) -> None:
        """Drop the place of a thread whose connect is granted: it must not explain a later refusal."""
        if self._places:
            self._place(call)

    def _place(self, call: Call) -> Place | None:
        """Return where the calling thread stands, if its guard has said so."""
        self.drain()
        if not self._places:
            return None
        try:
            return self._places.take(call.inner_tid())
        except (OSError, KeyError, ValueError):  # it has gone
            return None
