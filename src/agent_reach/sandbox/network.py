"""Couples the egress broker to the supervisor's loop; imported at the first connect of a run."""

from __future__ import annotations

import gc
import os

from agent_reach.egress.broker import Broker
from agent_reach.egress.policy import Policy
from agent_reach.outcome import Connection, Denial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.linux.seccomp.notify import Notification
    from agent_reach.plan.model import SandboxPlan

    Report = Callable[[dict[str, str]], None]

_MILLISECONDS = 1000
_LONG = 600
_SHORT = 300


def preload() -> None:
    """Load what the resolver imports at its first use, while root's files can still be read."""
    "reach".encode("idna")


class Network:
    """The broker of one run.

    Args:
        plan: rules and tier.
        listener: descriptor of the seccomp listener.
        handed: ``st_dev`` of the private tmpfs, then (``full``) the resolver's datagram and stream sockets.
        report: gets each event as fields.
        run_uid: uid of the sandbox on the host where it is not ours, or None.
    """

    def __init__(
        self, plan: SandboxPlan, listener: int, handed: tuple[int, ...], report: Report, run_uid: int | None
    ) -> None:
        gc.enable()  # a program that connects may run for days
        device, *stub = handed
        self._report = report
        self._broker = Broker(
            listener,
            Policy(plan.network),
            self._take,
            tier=plan.tier,
            dns_sockets=(stub[0], stub[1]) if stub else None,
            private_devices=frozenset((device,)) if device else frozenset(),
            resolv_nameservers=_nameservers() if plan.tier != "full" else (),
            path_exists=os.path.lexists,
            poll_listener=False,
            file_uid=run_uid,
            notify_socket=plan.notify_socket,
        )

    def descriptors(self) -> tuple[int, ...]:
        """Return what the supervisor has to poll for us."""
        return (self._broker.epoll_fd,)

    def has_room(self) -> bool:
        """Say whether another call may be taken; those that wait are bounded."""
        return self._broker.has_room()

    def take(self, call: Notification) -> None:
        """Answer one call, now or later."""
        self._broker.handle(call)

    def handle(self) -> None:
        """Do what is due."""
        self._broker.run_once(0)

    def timeout(self) -> list[float]:
        """Return the seconds until we want to be called, if we do."""
        milliseconds = self._broker.timeout()
        return [] if milliseconds < 0 else [milliseconds / _MILLISECONDS]

    def close(self) -> None:
        """Report what came last and the final counts, and let go of everything."""
        for denial in self._broker.denials():
            if denial.count > 1:
                self._report(denial_fields(denial) | {"kind": "count"})
        for connection in self._broker.connections():
            if connection.count > 1:
                self._report(connection_fields(connection) | {"kind": "count"})
        self._broker.close()

    def _take(self, event: Denial | Connection) -> None:
        """Pass an event on."""
        self._report(denial_fields(event) if isinstance(event, Denial) else connection_fields(event))


def _nameservers() -> tuple[str, ...]:
    """Return the resolver's addresses of the host, which the sandbox asks in tier ``reduced``."""
    found = []
    try:
        with open("/etc/resolv.conf", encoding="ascii", errors="replace") as stream:
            for line in stream:
                words = line.split()
                if len(words) > 1 and words[0] == "nameserver":
                    found.append(words[1].partition("%")[0])
    except OSError:
        found = []
    return tuple(found) or ("127.0.0.1",)


def denial_fields(denial: Denial) -> dict[str, str]:
    """Turn a denial into the fields of a frame."""
    place = denial.place
    return {
        "kind": "denial",
        "action": denial.action,
        "subject": denial.subject[:_LONG],
        "clause": denial.clause[:_LONG],
        "entry": denial.entry[:_LONG],
        "file": place.file[:_LONG] if place else "",
        "line": str(place.line) if place else "0",
        "function": place.function[:_SHORT] if place else "",
        "shown": str(int(denial.shown)),
        "layer": denial.layer,
        "count": str(denial.count),
    }


def connection_fields(connection: Connection) -> dict[str, str]:
    """Turn a connection into the fields of a frame."""
    return {
        "kind": "connection",
        "host": connection.host,
        "address": connection.address,
        "port": str(connection.port),
        "count": str(connection.count),
    }
