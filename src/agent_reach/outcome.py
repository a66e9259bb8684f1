"""What came of a run, as values: denials, usage, the receipt, the result."""

from __future__ import annotations

from agent_reach._util.record import Record


class Place(Record):
    """A line of the user's code.

    Args:
        file: path as the interpreter knows it.
        line: 1-based line.
        function: name of the function, ``<module>`` at top level.
    """

    file: str
    line: int
    function: str = "<module>"

    def __str__(self) -> str:
        """Render ``file:line in function``."""
        inside = "" if self.function == "<module>" else f" in {self.function}"
        return f"{self.file}:{self.line}{inside}"


class Denial(Record):
    """One refused action.

    Args:
        action: ``connect``, ``resolve``, ``open``, ``write``, ``exec``, ``call``.
        subject: what it was aimed at: ``db.internal:5432``, ``/etc/shadow``.
        clause: which part of the contract refused it, such as ``not in resources.network.allow_outbound``.
        entry: the YAML line that would allow it, or empty when nothing can.
        place: where in the user's source, if the Python level saw it.
        shown: whether it is shown on standard error by default.
        layer: ``kernel``, ``broker`` or ``python``.
        count: how often it happened.
    """

    action: str
    subject: str
    clause: str
    entry: str = ""
    place: Place | None = None
    shown: bool = True
    layer: str = "kernel"
    count: int = 1


class Enforced(Record):
    """One line of the receipt.

    Args:
        what: the promise, such as ``undeclared files unreadable`` or ``limits.memory``.
        level: ``enforced``, ``best effort``, ``not enforced``.
        by: the mechanism, such as ``mount namespace, Landlock``.
    """

    what: str
    level: str
    by: str


class Receipt(Record):
    """What was really enforced in a run.

    Args:
        tier: ``full`` or ``reduced``.
        lines: one line per promise and per limit.
        notes: remarks, such as ``https not checked`` or ``uid 0, no capabilities``.
    """

    tier: str
    lines: tuple[Enforced, ...] = ()
    notes: tuple[str, ...] = ()


class Usage(Record):
    """Resources used by a run.

    Args:
        wall: seconds from start to end.
        cpu: seconds of user and system time of the whole tree.
        max_rss: peak resident set in bytes of the largest process.
        memory_peak: peak of the whole tree in bytes, 0 when no cgroup measured it.
        output: bytes written to standard output and error.
    """

    wall: float = 0.0
    cpu: float = 0.0
    max_rss: int = 0
    memory_peak: int = 0
    output: int = 0


class Connection(Record):
    """One allowed connection: name or address as the program asked, address dialled, port."""

    host: str
    address: str
    port: int
    count: int = 1


class Result(Record):
    """Outcome of one run.

    Args:
        run_id: identifier of the record.
        exit_code: the number for the shell; `cause` decides what it means.
        signal: number of the signal that ended the program, 0 if none.
        cause: ``exited``, ``signalled``, ``limit``, ``killed``, ``refused``, ``lost``.
        limit: name of the limit that ended it (``wall``, ``memory`` …), or empty.
        message: one sentence for people, or empty.
        denials: refused actions, in order of first occurrence.
        connections: allowed connections.
        usage: resources used.
        receipt: what was enforced.
    """

    run_id: str
    exit_code: int
    signal: int
    cause: str
    limit: str
    message: str
    denials: tuple[Denial, ...]
    connections: tuple[Connection, ...]
    usage: Usage
    receipt: Receipt
