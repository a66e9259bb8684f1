"""Resolution of granted names on the host, outside the sandbox and beside the broker's loop."""

from __future__ import annotations

import _socket as socket
import time

from agent_reach._util.record import Record
from agent_reach.egress import addresses
from agent_reach.egress.workers import Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TTL = 5.0  # seconds
MAX_CACHED = 1024
MAX_ADDRESSES = 64
MAX_WAITING = 512  # callers of one name
_THREADS = 8
_FAILURE_TTL = 1.0  # seconds
_ABSENT_CODES = frozenset((socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)))


class Resolved(Record):
    """What a name stands for.

    Args:
        addresses: canonical addresses in the resolver's order.
        absent: the name does not exist, as opposed to a resolver that failed.
    """

    addresses: tuple[bytes, ...]
    absent: bool = False


def look_up(name: str) -> Resolved:
    """Resolve a name as the host does, with its hosts file and its search list; blocks."""
    try:
        found = _getaddrinfo(name)
    except socket.gaierror as error:
        return Resolved((), error.errno in _ABSENT_CODES)
    return Resolved(tuple(dict.fromkeys(found))[:MAX_ADDRESSES], not found)


def _getaddrinfo(name: str) -> list[bytes]:
    """Return the addresses of a name."""
    answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    parsed = (addresses.parse(str(answer[4][0]).partition("%")[0]) for answer in answers)
    return [address for address in parsed if address is not None]


class Resolver:
    """Resolves names in threads, with a short memory; one question at a time per name.

    Args:
        look_up: blocking resolution of one canonical name.
        clock: seconds that only grow.
    """

    def __init__(
        self, look_up: Callable[[str], Resolved] = look_up, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.workers = Workers(_THREADS)
        self._look_up, self._clock = look_up, clock
        self._cache: dict[str, tuple[float, Resolved]] = {}
        self._waiting: dict[str, list[Callable[[Resolved], None]]] = {}

    def resolve(self, name: str, done: Callable[[Resolved], None]) -> None:
        """Call `done` with what a canonical name stands for, at once when that is known."""
        known = self._cache.get(name)
        if known is not None and known[0] > self._clock():
            done(known[1])
            return
        waiting = self._waiting.get(name)
        if waiting is not None:
            if len(waiting) >= MAX_WAITING:
                done(Resolved(()))
            else:
                waiting.append(done)
            return
        self._waiting[name] = [done]
        try:
            self.workers.submit(lambda: self._look_up(name), lambda result: self._arrived(name, result))
        except OSError:
            self._arrived(name, Resolved(()))

    def close(self) -> None:
        """End the threads."""
        self.workers.close()

    def _arrived(self, name: str, result: Resolved | BaseException) -> None:
        """Remember an answer and hand it to everybody who waits for it."""
        resolved = result if isinstance(result, Resolved) else Resolved(())
        ttl = TTL if resolved.addresses else _FAILURE_TTL
        self._cache.pop(name, None)
        self._cache[name] = (self._clock() + ttl, resolved)
        if len(self._cache) > MAX_CACHED:
            del self._cache[next(iter(self._cache))]
        for done in self._waiting.pop(name, []):
            done(resolved)
