"""The resolver that programs inside see: reads queries, answers with fake addresses, asks nobody on their behalf.

A granted name is resolved on the host, to learn whether it exists and how many addresses it has. What it
resolves to never enters the sandbox; no other name is looked at by anybody.
"""

from __future__ import annotations

import _socket as socket

from agent_reach.egress import dns, hostnames, names
from agent_reach.egress.loop import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.egress.loop import Loop
    from agent_reach.egress.names import Names
    from agent_reach.egress.resolve import Resolved, Resolver

MOST_STREAMS = 64
_DATAGRAMS_AT_ONCE = 32
_READ_BYTES = 8192
_LOOPBACKS = (b"\x7f\x00\x00\x01", bytes(15) + b"\x01")


class Stub:
    """Answers DNS queries.

    Args:
        loop: where sockets are watched.
        names: fake addresses.
        resolver: the host's resolution.
        absent: told the canonical name, or the raw text, of a query that is answered with "no such name"
            though it may exist, a refusal to record; and 0 when it is the IPv6 half of a lookup, else 1.
    """

    def __init__(self, loop: Loop, names: Names, resolver: Resolver, absent: Callable[[str, int], None]) -> None:
        self._loop, self._names, self._resolver, self._absent = loop, names, resolver, absent
        self._streams: dict[int, _Stream] = {}
        self._sockets: list[socket.socket] = []

    def listen(self, udp: int, tcp: int) -> None:
        """Serve a bound UDP socket and a listening TCP socket, both made inside; they are ours to close now."""
        datagrams, listener = socket.socket(fileno=udp), socket.socket(fileno=tcp)
        for sock in (datagrams, listener):
            sock.setblocking(False)
            self._sockets.append(sock)
        self._loop.watch(udp, READ, lambda _mask: self._receive(datagrams))
        self._loop.watch(tcp, READ, lambda _mask: self._accept(listener))

    def serve(self, stream: socket.socket) -> None:
        """Serve a connected stream, in TCP framing; it is ours to close now. The oldest gives way to the 65th."""
        stream.setblocking(False)
        if len(self._streams) >= MOST_STREAMS:
            next(iter(self._streams.values())).close()
        _Stream(self._loop, self._streams, stream, self.answer)

    def answer(self, message: bytes, reply: Callable[[bytes], None]) -> None:
        """Answer a message, now or later, or not at all.

        Args:
            message: bytes from inside.
            reply: called at most once with the answer.
        """
        query = dns.parse(message)
        if query is None:
            return
        if isinstance(query, bytes):
            reply(query)
            return
        name = None if query.name is None else hostnames.canonical(query.name)
        treatment = self._names.treat(name)
        if name is None or treatment == names.ABSENT:
            if query.name and not query.name.lower().endswith(".arpa"):
                self._absent(name or query.name, int(query.kind != dns.AAAA))
            reply(dns.answer(query, dns.NXDOMAIN))
        elif treatment == names.LOOPBACK:
            reply(dns.answer(query, dns.NOERROR, _LOOPBACKS))
        elif treatment == names.SINKHOLE:
            reply(self._sinkhole(query, name))
        else:
            self._resolver.resolve(name, lambda resolved: reply(self._granted(query, name, resolved)))

    def close(self) -> None:
        """Close every socket."""
        for stream in list(self._streams.values()):
            stream.close()
        for sock in self._sockets:
            self._loop.forget(sock.fileno())
            sock.close()
        self._sockets.clear()

    def _sinkhole(self, query: dns.Query, name: str) -> bytes:
        """Answer for a name that is not granted: one IPv4 address, whose connect is refused by name.

        Reverse lookups are told that there is nothing: programs make them for their logs.
        """
        if name.endswith(".arpa"):
            return dns.answer(query, dns.NXDOMAIN)
        return dns.answer(query, dns.NOERROR, (self._names.sinkhole(name),))

    def _granted(self, query: dns.Query, name: str, resolved: Resolved) -> bytes:
        """Answer for a granted name: as many fake addresses of the family as it has real ones, at most four."""
        if not resolved.addresses:
            return dns.answer(query, dns.NXDOMAIN if resolved.absent else dns.SERVFAIL)
        width = {dns.A: 4, dns.AAAA: 16}.get(query.kind)
        count = sum(len(address) == width for address in resolved.addresses)
        if not count:
            return dns.answer(query, dns.NOERROR)
        return dns.answer(query, dns.NOERROR, self._names.addresses(name, count, width == 16))

    def _receive(self, sock: socket.socket) -> None:
        """Answer the datagrams that are there."""
        for _ in range(_DATAGRAMS_AT_ONCE):
            try:
                message, sender = sock.recvfrom(dns.MAX_MESSAGE)
            except OSError:  # nothing more, or an ICMP error of an earlier answer
                return
            self.answer(message, _replier(sock, sender))

    def _accept(self, listener: socket.socket) -> None:
        """Take one connection."""
        try:
            # What `socket.socket.accept` wraps; the import of `socket` costs 8 ms.
            fd, _peer = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001
        except OSError:
            return
        self.serve(socket.socket(fileno=fd))


class _Stream:
    """One connection over which queries come; it closes itself at the first thing that is not right."""

    def __init__(
        self,
        loop: Loop,
        streams: dict[int, _Stream],
        sock: socket.socket,
        answer: Callable[[bytes, Callable[[bytes], None]], None],
    ) -> None:
        self._loop, self._streams, self._sock, self._answer = loop, streams, sock, answer
        self._messages = dns.Stream()
        self._fd = sock.fileno()
        streams[self._fd] = self
        loop.watch(self._fd, READ, lambda _mask: self._read())

    def close(self) -> None:
        """End the connection."""
        if self._streams.get(self._fd) is self:
            del self._streams[self._fd]
            self._loop.forget(self._fd)
            self._sock.close()

    def _read(self) -> None:
        """Answer the queries that are complete."""
        try:
            data = self._sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        messages = self._messages.feed(data) if data else None
        if messages is None:
            self.close()
            return
        for message in messages:
            self._answer(message, self._reply)

    def _reply(self, message: bytes) -> None:
        """Send an answer whole, or end: a program that does not read gets no buffer of ours."""
        if self._streams.get(self._fd) is not self:
            return
        framed = dns.framed(message)
        try:
            sent = self._sock.send(framed, socket.MSG_NOSIGNAL)
        except OSError:
            sent = 0
        if sent != len(framed):
            self.close()


def _replier(sock: socket.socket, receiver: tuple[str, int]) -> Callable[[bytes], None]:
    """Return what sends an answer if the socket takes it; otherwise the program's resolver asks again."""

    def send(message: bytes) -> None:
        try:
            sock.sendto(message, receiver)
        except OSError:
            return

    return send
