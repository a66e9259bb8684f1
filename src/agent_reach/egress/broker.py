"""The broker: answers the network calls of one run from outside.

It stands on two feet. In tier ``full`` the sandbox's network namespace is empty, so a call that nobody
notified reaches nothing: the broker only ever adds what a rule grants. And it decides on its own copies: the
address is read once, the socket is taken by descriptor, and what was checked is what is dialled. It never
lets the kernel go on with a connect: the caller's other threads could have changed address or descriptor
since (seccomp_unotify(2)).
"""

from __future__ import annotations

import _socket as socket
import errno
import time

from agent_reach.egress import addresses, tcp
from agent_reach.egress.call import Call
from agent_reach.egress.channel import Channels
from agent_reach.egress.closing import Closer
from agent_reach.egress.denials import Denials
from agent_reach.egress.dial import Dialer
from agent_reach.egress.files import Files, Twins
from agent_reach.egress.inside import Connector
from agent_reach.egress.ledger import Ledger
from agent_reach.egress.loop import READ, Loop
from agent_reach.egress.names import Names
from agent_reach.egress.pending import MOST, Waitlist
from agent_reach.egress.resolve import Resolver
from agent_reach.egress.router import Parts, Router, Side
from agent_reach.egress.stub import Stub
from agent_reach.egress.workers import Workers
from agent_reach.linux import _syscalls
from agent_reach.linux.abi import table
from agent_reach.linux.seccomp import notify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.egress.ledger import Event
    from agent_reach.egress.policy import Policy
    from agent_reach.linux.seccomp.notify import Notification
    from agent_reach.outcome import Connection, Denial

    Handler = Callable[[Call], int | None]

_INSIDE_THREADS = 32


class Broker:
    """Serves one listener. Single-threaded: everything happens in `run_once`, of whoever polls `epoll_fd`.

    Args:
        listener: descriptor of the filter's listener; it stays the caller's to close.
        policy: the network rules of the run.
        report: called with each denial and connection at its first occurrence, before the program learns of it.
        tier: ``full`` or ``reduced``.
        netns_cookie: in tier ``full``, cookie of the run's network namespace (SO_NETNS_COOKIE of any of its
            sockets); 0 takes it from `dns_sockets`.
        resolver: the host's resolution, ours if None.
        dns_sockets: in tier ``full``, a bound UDP and a listening TCP socket of the run's namespace, ours to
            close.
        private_devices: st_dev of the run's own file systems, whose Unix sockets it may connect to.
        resolv_nameservers: in tier ``reduced``, addresses whose port 53 is answered by the resolver inside.
        path_exists: answers the guards whether an undeclared path exists on the host.
        handlers: further notified calls, by number; a handler returns an error number, or None when it has
            answered by itself.
        notify_socket: whether the filter notifies socket(2), since pidfd_getfd is not to be had (tier ``reduced``).
        file_uid: uid to look up paths of Unix sockets as, None for our own.
        poll_listener: whether the listener is polled here; else the caller feeds `handle`.
    """

    def __init__(
        self,
        listener: int,
        policy: Policy,
        report: Callable[[Event], None],
        *,
        tier: str = "full",
        netns_cookie: int = 0,
        resolver: Resolver | None = None,
        dns_sockets: tuple[int, int] | None = None,
        private_devices: frozenset[int] = frozenset(),
        resolv_nameservers: tuple[str, ...] = (),
        path_exists: Callable[[str], bool] | None = None,
        handlers: dict[int, Handler] | None = None,
        poll_listener: bool = True,
        file_uid: int | None = None,
        notify_socket: bool = False,
    ) -> None:
        if notify_socket and tier == "full":  # twins are made in our network namespace, not in the run's
            raise ValueError("tier 'full' needs pidfd_getfd")
        self.ended = False
        self._listener = listener if poll_listener else -1
        self._source = listener
        self._ledger = Ledger(report)
        self._denials = denials = Denials(self._ledger, policy)
        self._loop = Loop(denials.fault)
        self._waitlist = Waitlist(denials.fault)
        self._workers = Workers(_INSIDE_THREADS, denials.fault)
        self._resolver = resolver or Resolver()
        names = Names(policy)
        self._channels = Channels(self._loop, denials.take, path_exists, time.monotonic)
        denials.drain = self._channels.drain
        self._stub = Stub(self._loop, names, self._resolver, denials.absent)
        if dns_sockets is not None:
            netns_cookie = netns_cookie or _cookie_of(dns_sockets[0])
            self._stub.listen(*dns_sockets)
        closer = Closer(self._workers)
        self._files = Twins(closer.release_fd, self._loop) if notify_socket else Files(closer.release_fd)
        side = _side(tier, netns_cookie, resolv_nameservers)
        parts = Parts(
            policy,
            names,
            self._resolver,
            self._stub,
            self._channels,
            Dialer(self._loop, self._waitlist, self._files, closer.release),
            Connector(self._workers, self._waitlist, private_devices if side.full else frozenset(), file_uid),
            self._waitlist,
            self._files,
            closer,
            self._ledger,
            denials,
        )
        self._router = Router(side, parts)
        numbers = table(_syscalls.machine())
        own = {numbers["connect"]: self._router.connect, numbers["listen"]: self._router.listen}
        if isinstance(self._files, Twins):
            own[numbers["socket"]] = self._files.create
        self._handlers: dict[int, Handler] = {**(handlers or {}), **own}
        self._polled = False
        for workers in (self._workers, self._resolver.workers):
            self._loop.watch(workers.fd, READ, lambda _mask, workers=workers: workers.collect())  # type: ignore[misc]
        self._poll_listener()

    @property
    def epoll_fd(self) -> int:
        """A descriptor to poll for reading: when it is ready, call `run_once`."""
        return self._loop.fileno()

    def timeout(self) -> int:
        """Return after how many milliseconds `run_once` is due even when nothing is ready, -1 for never."""
        return self._waitlist.timeout()

    def run_once(self, timeout: int = 0) -> None:
        """Do what is to be done.

        Args:
            timeout: most milliseconds to wait for something, -1 for no bound.
        """
        due = self._waitlist.timeout()
        self._loop.run(timeout if due < 0 else due if timeout < 0 else min(timeout, due))
        self._waitlist.tick()
        self._poll_listener()

    def handle(self, notification: Notification) -> None:
        """Answer one call, now or later; for callers that receive by themselves."""
        call = Call(self._source, notification)
        handler = self._handlers.get(call.nr)
        try:
            # A caller that has no id here is of a pid namespace that we do not oversee.
            error = errno.EPERM if handler is None or call.tid <= 0 else handler(call)
        except OSError as failure:
            error = failure.errno or errno.EACCES
        except Exception as fault:  # noqa: BLE001 - a fault of ours refuses one call and must not end the run
            self._denials.fault(fault)
            error = errno.EACCES
        if error is not None:
            call.answer(error)

    def has_room(self) -> bool:
        """Tell whether further calls may be received; while not, let them wait in the kernel."""
        return len(self._waitlist) < MOST

    def denials(self) -> tuple[Denial, ...]:
        """Return the refusals so far, with their counts."""
        self._channels.drain()
        return self._ledger.denials()

    def connections(self) -> tuple[Connection, ...]:
        """Return the allowed connections so far, with their counts."""
        return self._ledger.connections()

    def close(self) -> None:
        """Let go of everything. Calls under way stay unanswered: they end with the listener."""
        self._waitlist.close()
        self._stub.close()
        self._channels.close()
        self._files.close()
        self._workers.close()
        self._resolver.close()
        self._loop.close()

    def _poll_listener(self) -> None:
        """Watch the listener while there is room for more calls under way."""
        wanted = self._listener >= 0 and not self.ended and self.has_room()
        if wanted and not self._polled:
            self._loop.watch(self._listener, READ, self._receive)
        elif self._polled and not wanted:
            self._loop.forget(self._listener)
        self._polled = wanted

    def _receive(self, mask: int) -> None:
        """Receive one call: it blocks when there is none, so never more than the poll has promised."""
        if not mask & READ:  # nobody is left under the filter
            self.ended = True
            return
        notification = notify.receive(self._listener)
        if notification is not None:
            self.handle(notification)


def _side(tier: str, netns_cookie: int, nameservers: tuple[str, ...]) -> Side:
    """Return the side of a run.

    Raises:
        ValueError: a tier without what it needs.
    """
    if tier == "reduced":
        parsed = (addresses.parse(server) for server in nameservers)
        return Side(0, frozenset(address for address in parsed if address is not None))
    if tier != "full" or not netns_cookie:
        raise ValueError(f"tier {tier!r} with network namespace {netns_cookie}")
    return Side(netns_cookie)


def _cookie_of(fd: int) -> int:
    """Return the cookie of the network namespace of a descriptor that stays open."""
    sock = socket.socket(fileno=fd)
    try:
        return tcp.netns_cookie(sock)
    finally:
        sock.detach()
