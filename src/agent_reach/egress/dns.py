"""DNS messages, sans-IO: bytes of a query to what it asks, and an answer to bytes (RFC 1035).

The bytes come from the sandbox: every length is checked, nothing is followed (queries need no compression),
and any input gives a query, an error answer, or nothing, never an exception.
"""

from __future__ import annotations

from agent_reach._util.record import Record

A = 1
AAAA = 28

NOERROR = 0
FORMERR = 1
SERVFAIL = 2
NXDOMAIN = 3
NOTIMP = 4

MAX_MESSAGE = 4096

_HEADER = 12
_IN = 1
_MAX_NAME = 255
_RESPONSE = 0x8000
_OPCODE = 0x7800
_RECURSION_DESIRED = 0x0100
_RECURSION_AVAILABLE = 0x0080
_TTL = 2  # seconds; the broker resolves again at every connect
_POINTER_TO_QUESTION = b"\xc0\x0c"


class Query(Record):
    """One question.

    Args:
        ident: identifier to repeat.
        flags: the flags of the query to repeat (recursion desired).
        question: the question section as it came; letters keep their case (RFC draft 0x20).
        name: its name as text without trailing dot; None when a label holds a dot or no printable ASCII.
        kind: type, such as `A`.
    """

    ident: int
    flags: int
    question: bytes
    name: str | None
    kind: int


def parse(message: bytes) -> Query | bytes | None:
    """Read a query.

    Returns:
        The query; or the bytes of an error answer; or None when the message deserves no answer (too short, or
        an answer itself: two servers could send each other errors for ever).
    """
    if len(message) < _HEADER or len(message) > MAX_MESSAGE:
        return None
    ident, flags, questions = (int.from_bytes(message[at : at + 2], "big") for at in (0, 2, 4))
    if flags & _RESPONSE:
        return None
    if flags & _OPCODE:
        return _header(ident, flags, NOTIMP, 0, 0)
    read = _question(message) if questions == 1 else None
    if read is None:
        return _header(ident, flags, FORMERR, 0, 0)
    labels, end = read
    query = Query(ident, flags, message[_HEADER:end], _text(labels), int.from_bytes(message[end - 4 : end - 2], "big"))
    return query if int.from_bytes(message[end - 2 : end], "big") == _IN else answer(query, NOTIMP)


def answer(query: Query, rcode: int, found: tuple[bytes, ...] = ()) -> bytes:
    """Return the answer to a query.

    Args:
        query: what was asked.
        rcode: `NOERROR`, `NXDOMAIN` or `SERVFAIL`.
        found: addresses; those of the other family than was asked for are left out. At most a few: the
            whole fits into 512 bytes.
    """
    width = {A: 4, AAAA: 16}.get(query.kind)
    fitting = [address for address in found if len(address) == width]
    records = b"".join(
        _POINTER_TO_QUESTION
        + query.kind.to_bytes(2, "big")
        + _IN.to_bytes(2, "big")
        + _TTL.to_bytes(4, "big")
        + len(address).to_bytes(2, "big")
        + address
        for address in fitting
    )
    return _header(query.ident, query.flags, rcode, 1, len(fitting)) + query.question + records


def framed(message: bytes) -> bytes:
    """Return a message with the length that TCP puts before it."""
    return len(message).to_bytes(2, "big") + message


class Stream:
    """Cuts a TCP stream into messages; holds at most one message and what one `feed` brought."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes] | None:
        """Return the messages that are complete now, None when one is longer than any query may be."""
        buffer = self._rest + data
        messages, at = [], 0
        while len(buffer) - at >= 2:
            size = int.from_bytes(buffer[at : at + 2], "big")
            if size > MAX_MESSAGE:
                return None
            if len(buffer) - at - 2 < size:
                break
            messages.append(buffer[at + 2 : at + 2 + size])
            at += 2 + size
        self._rest = buffer[at:]
        return messages


def _header(ident: int, flags: int, rcode: int, questions: int, answers: int) -> bytes:
    """Return the header of an answer."""
    kept = _RESPONSE | _RECURSION_AVAILABLE | flags & (_RECURSION_DESIRED | _OPCODE)
    return b"".join(value.to_bytes(2, "big") for value in (ident, kept | rcode, questions, answers, 0, 0))


def _question(message: bytes) -> tuple[list[bytes], int] | None:
    """Return the labels of the question and where it ends, None when it is malformed."""
    labels, at = [], _HEADER
    while True:
        if at >= len(message) or at - _HEADER >= _MAX_NAME:
            return None
        size = message[at]
        if size & 0xC0:  # a pointer has nothing before it to point to
            return None
        at += 1
        if size == 0:
            break
        labels.append(message[at : at + size])
        at += size
    return (labels, at + 4) if at + 4 <= len(message) else None


def _text(labels: list[bytes]) -> str | None:
    """Return a name of printable labels; a dot or a null byte in a label would make two names of one."""
    if any(byte <= 0x20 or byte >= 0x7F or byte == 0x2E for label in labels for byte in label):
        return None
    return b".".join(labels).decode("ascii")
