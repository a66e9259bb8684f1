r"""What the guard inside tells the broker: one function per kind of report, each returning one frame.

The guard connects a stream socket to the abstract name ``\0reach``; the broker answers that connect itself
and hands in one end of a pair. Reports explain refusals; none of them can grant anything.

This module runs under Python 3.9 and imports only the codec.
"""

from __future__ import annotations

from agent_reach.wire.frames import clip, encode

CHANNEL = b"\0reach"

AT = "at"
NAME = "name"
DENIED = "denied"
EXISTS = "exists"

YES = "yes"
NO = "no"
UNKNOWN = "unknown"


class Spot:
    """A line of the user's code.

    Args:
        file: path as the interpreter knows it.
        line: 1-based line, 0 for no place at all.
        function: name of the function, ``<module>`` at top level.
    """

    __slots__ = ("file", "function", "line")

    def __init__(self, file: str = "", line: int = 0, function: str = "<module>") -> None:
        self.file, self.line, self.function = file, line, function

    def fields(self) -> dict[str, str]:
        """Return the fields of a frame; the end of an overlong name is cut off."""
        return {"file": clip(self.file), "line": str(self.line), "function": clip(self.function, 200)}


def at(tid: int, spot: Spot) -> bytes:
    """Say where the thread stands that is about to connect; goes to the next refusal of that thread.

    Args:
        tid: id of the thread as `threading.get_native_id` gives it.
        spot: the innermost line of the user's code.
    """
    return encode({"kind": AT, "tid": str(tid), **spot.fields()})


def name(host: str, port: int, spot: Spot) -> bytes:
    """Say where a host name is looked up that the contract does not grant.

    Args:
        host: name as the program gave it.
        port: port it will connect to, 0 when it did not say.
        spot: the innermost line of the user's code.
    """
    return encode({"kind": NAME, "name": clip(host, 300), "port": str(port), **spot.fields()})


def denied(
    action: str, subject: str, clause: str, *, entry: str = "", spot: Spot | None = None, shown: bool = True
) -> bytes:
    """Report a refusal of the Python level.

    Args:
        action: ``open``, ``write``, ``exec``, ``call``, ``resolve`` or ``connect``.
        subject: what it was aimed at.
        clause: which part of the contract refused it.
        entry: the YAML line that would allow it, or empty.
        spot: the innermost line of the user's code, if there is one.
        shown: whether it is worth a block on standard error.
    """
    fields = {"kind": DENIED, "action": action, "subject": clip(subject), "clause": clip(clause, 512)}
    fields.update(entry=clip(entry, 512), shown=YES if shown else NO)
    fields.update((spot or Spot()).fields())
    return encode(fields)


def exists(path: str) -> bytes:
    """Ask whether an undeclared path exists outside; the answer is one frame, see `existence`."""
    return encode({"kind": EXISTS, "path": path})


def existence(answer: bool | None) -> bytes:
    """Answer `exists`; None when the broker does not tell."""
    return encode({"kind": EXISTS, "answer": UNKNOWN if answer is None else YES if answer else NO})
