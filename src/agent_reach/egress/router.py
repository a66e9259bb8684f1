"""Where a connect goes: to the host by a rule, to the sandbox's own side, or nowhere."""

from __future__ import annotations

import _socket as socket
import errno
import os

from agent_reach._util.record import Record
from agent_reach.egress import addresses, sockaddr, tcp
from agent_reach.egress.dial import Target
from agent_reach.egress.pending import Waiting
from agent_reach.egress.policy import Decision
from agent_reach.linux import sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.egress.call import Call
    from agent_reach.egress.channel import Channels
    from agent_reach.egress.closing import Closer
    from agent_reach.egress.denials import Denials
    from agent_reach.egress.dial import Dialer
    from agent_reach.egress.files import Files
    from agent_reach.egress.inside import Connector, Outcome
    from agent_reach.egress.ledger import Ledger
    from agent_reach.egress.names import Names
    from agent_reach.egress.pending import Waitlist
    from agent_reach.egress.policy import Policy
    from agent_reach.egress.resolve import Resolved, Resolver
    from agent_reach.egress.stub import Stub

CHANNEL_NAME = b"reach"  # in the abstract namespace

_DNS_PORT = 53
_RESOLVE_SECONDS = 30.0
_MOST_BACKLOG = 4096
_LOOPBACK4 = b"\x7f\x00\x00\x01"
_LOOPBACK6 = bytes(15) + b"\x01"
_INTERNET = (socket.AF_INET, socket.AF_INET6)


class Side(Record):
    """Which side a run's own sockets are on.

    Args:
        netns_cookie: cookie of its network namespace, 0 in tier ``reduced``, where it is the host's.
        nameservers: in tier ``reduced``, addresses whose port 53 means our own resolver.
    """

    netns_cookie: int
    nameservers: frozenset[bytes] = frozenset()

    @property
    def full(self) -> bool:
        """Whether the run has a network namespace, and so a loopback, of its own."""
        return self.netns_cookie != 0

    def owns(self, sock: socket.socket) -> bool:
        """Tell whether a socket belongs to the run's own network namespace."""
        return self.full and tcp.netns_cookie(sock) == self.netns_cookie


class Parts(Record):
    """What the router works with; one of each per run."""

    policy: Policy
    names: Names
    resolver: Resolver
    stub: Stub
    channels: Channels
    dialer: Dialer
    connector: Connector
    waitlist: Waitlist
    files: Files
    closer: Closer
    ledger: Ledger
    denials: Denials


class _Connect(Record):
    """One connect, read.

    Args:
        call: the call.
        number: the caller's descriptor.
        sock: descriptor of ours for the caller's socket.
        raw: copy of the address.
    """

    call: Call
    number: int
    sock: socket.socket
    raw: bytes


class _Resolving(Waiting):
    """A connect whose name is being resolved. A signal waits: there is no connection yet to go on by itself."""

    def __init__(self, closer: Closer, connect: _Connect, deadline: float) -> None:
        super().__init__(connect.call, deadline)
        self._closer, self._connect = closer, connect

    def expire(self) -> None:
        """Give up, as a connect to a silent host does."""
        self.call.answer(errno.ETIMEDOUT)
        self._closer.release(self._connect.sock)

    def abandon(self) -> None:
        """Let go of the socket."""
        self._closer.release(self._connect.sock)
        self.call.abandon()


class Router:
    """Handles connect and listen.

    A handler returns the error number to answer with, or None when the call is answered elsewhere.

    Args:
        side: the run's side.
        parts: what it works with.
    """

    def __init__(self, side: Side, parts: Parts) -> None:
        self._side, self._parts = side, parts

    def connect(self, call: Call) -> int | None:
        """Handle a connect."""
        size = call.integer(2)
        if not sockaddr.SMALLEST <= size <= sockaddr.LARGEST:
            return errno.EINVAL
        raw = call.read(call.args[1], size)
        if sockaddr.family(raw) == socket.AF_UNIX and not self._parts.files.sees_all:
            return self._unseen_unix(call, raw)
        sock = self._take(call)
        if sock is None:
            return None
        try:
            error = self._route(_Connect(call, call.integer(0), sock, raw))
        except BaseException:
            self._parts.closer.release(sock)
            raise
        if error is not None:
            self._parts.closer.release(sock)
        return error

    def listen(self, call: Call) -> int | None:
        """Handle a listen: never on a socket that we handed in, which would listen on the host."""
        sock = self._take(call)
        if sock is None:
            return None
        try:
            if sock.family in _INTERNET and not self._side.owns(sock):
                if not self._side.full:
                    self._parts.denials.listen(call)
                return errno.EPERM
            sock.listen(max(0, min(call.integer(1), _MOST_BACKLOG)))
        finally:
            self._parts.closer.release(sock)
        return 0

    # Every `_…` below that takes a connect returns an error number, and then its socket is still open; or None,
    # and then the socket and the answer are somebody else's.

    def _route(self, connect: _Connect) -> int | None:
        """Part the families."""
        if connect.sock.family in _INTERNET:
            return self._internet(connect)
        if connect.sock.family == socket.AF_UNIX:
            return self._unix(connect)
        if connect.sock.family == socket.AF_NETLINK and self._side.owns(connect.sock):
            return self._in_place(connect)
        return errno.EAFNOSUPPORT

    def _internet(self, connect: _Connect) -> int | None:
        """Connect an Internet socket."""
        sock, raw = connect.sock, connect.raw
        if sockaddr.family(raw) == socket.AF_UNSPEC:
            # It dissolves a connection, and the next connect or send would choose where a socket of ours goes.
            return self._in_place(connect) if self._side.owns(sock) else errno.EPERM
        if not tcp.is_tcp(sock):
            # Datagrams stay in the empty namespace; the resolver inside hears them, and nobody else.
            datagrams = sock.type == socket.SOCK_DGRAM and self._side.owns(sock)
            return self._in_place(connect) if datagrams else errno.EACCES
        asked = sockaddr.inet(raw)
        if asked is None or asked.family != sock.family:
            return errno.EINVAL if sockaddr.family(raw) == sock.family else errno.EAFNOSUPPORT
        if tcp.state(sock) != tcp.CLOSED:
            return self._parts.dialer.join(connect.call, sock, raw)
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) or self._decide(connect, asked)

    def _decide(self, connect: _Connect, asked: sockaddr.Inet) -> int | None:
        """Ask the policy about an unconnected TCP socket."""
        found = self._parts.names.asked(asked.address)
        if found is None:
            return self._literal(connect, asked)
        if not found.name:
            host = addresses.text(asked.address)
            clause = "the address stands for no name that was asked for"
            return self._refuse(connect.call, Decision(False, host, asked.port, clause=clause))
        decision = self._parts.policy.decide_name(found.name, asked.port)
        if not decision.allowed:
            return self._refuse(connect.call, decision)
        waiting = _Resolving(self._parts.closer, connect, self._parts.waitlist.now() + _RESOLVE_SECONDS)
        self._parts.waitlist.add(waiting)

        def arrived(resolved: Resolved) -> None:
            if self._parts.waitlist.remove(waiting):
                self._resolved(connect, decision, resolved, (len(asked.address), found.slot))

        self._parts.resolver.resolve(found.name, arrived)
        return None

    def _literal(self, connect: _Connect, asked: sockaddr.Inet) -> int | None:
        """Connect to a literal address."""
        address = asked.address
        if addresses.is_unspecified(address):  # Linux connects 0.0.0.0 and :: to the loopback
            address = _LOOPBACK4 if len(address) == 4 else _LOOPBACK6
        decision = self._parts.policy.decide_address(address, asked.port)
        if decision.allowed:
            return self._dial(connect, decision, address)
        if self._side.full and addresses.is_loopback(address):
            if not self._side.owns(connect.sock):  # a socket of the host cannot come back inside
                return errno.EADDRNOTAVAIL
            ended = self._noticing(connect.call, self._as_ipv4(decision, address))
            self._parts.connector.connect(connect.call, connect.sock, connect.raw, ended)
            return None
        if asked.port == _DNS_PORT and address in self._side.nameservers:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            self._parts.stub.serve(ours)
            self._hand_over(connect.call, connect.number, theirs, connect.sock)
            return None
        return self._refuse(connect.call, decision)

    def _resolved(self, connect: _Connect, decision: Decision, resolved: Resolved, wanted: tuple[int, int]) -> None:
        """Go on with a connect whose name was resolved; it is answered here or later.

        Args:
            connect: the connect.
            decision: the grant of the name.
            resolved: what the name stands for now.
            wanted: bytes of an address of the family that was asked for, and the slot of the fake address.
        """
        try:
            error = self._choose(connect, decision, resolved, wanted)
        except OSError as failure:
            error = failure.errno or errno.EACCES
        except Exception as fault:  # noqa: BLE001 - a fault of ours refuses one call and must not end the run
            self._parts.denials.fault(fault)
            error = errno.EACCES
        if error is not None:
            connect.call.answer(error)
            self._parts.closer.release(connect.sock)

    def _choose(self, connect: _Connect, decision: Decision, resolved: Resolved, wanted: tuple[int, int]) -> int | None:
        """Dial the address of a name that belongs to a slot, checked now."""
        admission = self._parts.policy.admit(decision, resolved.addresses)
        width, slot = wanted
        fitting = [address for address in admission.addresses if len(address) == width]
        if fitting:
            return self._dial(connect, decision, fitting[slot % len(fitting)])
        if admission.clause:
            refused = decision.replace(allowed=False, clause=admission.clause, entry=admission.entry)
            return self._refuse(connect.call, refused)
        return errno.EHOSTUNREACH

    def _dial(self, connect: _Connect, decision: Decision, address: bytes) -> int | None:
        """Dial a checked address on a socket of ours."""
        try:
            where = sockaddr.pack(address, decision.port, connect.sock.family)
        except ValueError:
            return errno.ENETUNREACH
        self._parts.ledger.connect(decision.host, addresses.text(address), decision.port)
        self._parts.denials.forget(connect.call)
        self._parts.dialer.dial(connect.call, connect.sock, Target(connect.number, where))
        return None

    def _unix(self, connect: _Connect) -> int | None:
        """Connect a Unix socket."""
        name = sockaddr.unix(connect.raw)
        if name is None:
            return errno.EINVAL
        if name.abstract and name.path == CHANNEL_NAME and connect.sock.type == socket.SOCK_STREAM:
            return self._channel(connect.call, connect.number, connect.sock)
        if self._side.full and not self._side.owns(connect.sock):
            return errno.EPERM
        if name.abstract and not self._side.full:  # abstract names are the whole network namespace's
            self._parts.denials.unix(connect.call, "@" + os.fsdecode(name.path))
            return errno.EACCES
        if name.abstract:
            self._parts.connector.connect(connect.call, connect.sock, connect.raw, lambda _outcome: None)
            return None
        path = os.fsdecode(name.path)

        def ended(outcome: Outcome) -> None:
            if outcome.foreign:
                self._parts.denials.unix(connect.call, path)

        self._parts.connector.connect_path(connect.call, connect.sock, name.path, ended)
        return None

    def _unseen_unix(self, call: Call, raw: bytes) -> int | None:
        """Connect a Unix socket that we cannot look at: the channel alone, which takes its place anyway."""
        name = sockaddr.unix(raw)
        if name is None:
            return errno.EINVAL
        if name.abstract and name.path == CHANNEL_NAME:
            return self._channel(call, call.integer(0), None)
        path = os.fsdecode(name.path)
        if not name.abstract and not os.path.lexists(path):  # in tier reduced the caller sees what we see
            return errno.ENOENT
        self._parts.denials.unix(call, "@" + path if name.abstract else path)
        return errno.EACCES

    def _channel(self, call: Call, number: int, old: socket.socket | None) -> int | None:
        """Hand in a report channel."""
        theirs = self._parts.channels.open()
        if theirs is None:
            return errno.ECONNREFUSED
        self._hand_over(call, number, theirs, old)
        return None

    def _hand_over(self, call: Call, number: int, theirs: socket.socket, old: socket.socket | None) -> None:
        """Put one end of a pair of ours in the place of the caller's socket."""
        try:
            self._parts.dialer.hand_in(call, theirs, number, call.flags(number), old)
        finally:
            theirs.close()
        call.answer()

    def _in_place(self, connect: _Connect) -> int:
        """Connect the caller's own socket where that can never block: datagrams, netlink, AF_UNSPEC."""
        return sockets.connect(connect.sock.fileno(), connect.raw)

    def _noticing(self, call: Call, decision: Decision) -> Callable[[Outcome], None]:
        """Return what records a connect to the sandbox's own loopback when nobody listens there.

        The program gets ECONNREFUSED, as it would anywhere; a person may have meant the host's.
        """

        def ended(outcome: Outcome) -> None:
            # A client that tries ::1 before 127.0.0.1, or the other way round, finds the program's own server next.
            if outcome.refused and not tcp.somebody_listens(call.tid, decision.port):
                self._parts.denials.connect(call, decision)

        return ended

    def _as_ipv4(self, decision: Decision, address: bytes) -> Decision:
        """Return a refusal of ``::1`` under the IPv4 address: programs that say localhost try both."""
        if address != _LOOPBACK6:
            return decision
        return self._parts.policy.decide_name("localhost", decision.port).replace(host="127.0.0.1", name="")

    def _refuse(self, call: Call, decision: Decision) -> int:
        """Take down a refusal."""
        self._parts.denials.connect(call, decision)
        return errno.EACCES

    def _take(self, call: Call) -> socket.socket | None:
        """Return a descriptor of ours for the caller's socket, None when the caller has gone.

        Raises:
            OSError: EBADF or ENOTSOCK.
        """
        sock = self._parts.files.take(call, call.integer(0))
        if call.valid():
            return sock
        self._parts.closer.release(sock)
        call.abandon()
        return None
