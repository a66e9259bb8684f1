"""The record of one run as one plain value; names and origins of what was injected, never what it was."""

from __future__ import annotations

import os
import time

from agent_reach._util.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_reach.audit.canonical import Json
    from agent_reach.contract.model import Contract
    from agent_reach.outcome import Connection, Denial, Receipt, Result

MAX_TEXT = 1024
"""Most characters of one text that the program inside can choose."""
MAX_LIST = 500
"""Most denials, or connections, of one record; the rest is counted."""


class Code(Record):
    """What was run.

    Args:
        path: script, ``-m MODULE``, ``-c``, ``<stdin>`` or the command.
        sha256: hex digest of its bytes, or empty.
        python: interpreter, absolute, or empty for a command.
    """

    path: str
    sha256: str = ""
    python: str = ""


class StagedFile(Record):
    """One file that was fetched for the run: path inside, source without its query, digest, bytes."""

    path: str
    source: str
    sha256: str
    size: int


def build(
    run_id: str,
    *,
    started: float,
    contract: Contract,
    code: Code,
    version: str,
    result: Result | None,
    error: str = "",
    denials: Sequence[Denial] = (),
    connections: Sequence[Connection] = (),
    injected: Sequence[tuple[str, str]] = (),
    staged: Sequence[StagedFile] = (),
) -> dict[str, Json]:
    """Put together the record of a run.

    Args:
        run_id: its identifier.
        started: start, seconds since the epoch.
        contract: the resolved contract.
        code: what was run.
        version: version of reach.
        result: what came of it, None when reach refused or failed.
        error: what reach said when there is no result.
        denials: refused actions, used when there is no result.
        connections: allowed connections, used when there is no result.
        injected: name and origin of each environment entry.
        staged: files that were fetched.
    """
    if result is not None:
        denials, connections = result.denials, result.connections
    return {
        "event": "run",
        "run": run_id,
        "time": timestamp(started),
        "reach": version,
        "uid": os.getuid(),
        "identity": _plain(contract.identity),
        "contract": {
            "path": contract.path,
            "digest": contract.digest,
            "profile": contract.profile,
            "targets": list(contract.targets),
        },
        "cli": _from_command_line(contract),
        "code": _plain(code),
        "injected": [{"name": name, "from": origin} for name, origin in injected],
        "staged": [_plain(file) for file in staged],
        "connections": [_plain(connection) for connection in connections[:MAX_LIST]],
        "denials": [_denial(denial) for denial in denials[:MAX_LIST]],
        "omitted": {
            name: len(found) - MAX_LIST
            for name, found in (("denials", denials), ("connections", connections))
            if len(found) > MAX_LIST
        },
        "usage": _plain(result.usage) if result is not None else {},
        "outcome": _outcome(result, error),
        "receipt": _receipt(result.receipt) if result is not None else {},
    }


def timestamp(seconds: float) -> str:
    """Write a time in UTC as ISO 8601 with milliseconds."""
    whole = int(seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int((seconds - whole) * 1000):03d}Z"


def _plain(value: Record) -> dict[str, Json]:
    """Write a record of texts, numbers and tuples of texts; texts that the program could choose are bounded."""
    return {
        name: _short(field) if isinstance(field, str) else list(field) if isinstance(field, tuple) else field
        for name, field in value.__dict__.items()
    }


def _denial(denial: Denial) -> dict[str, Json]:
    """Write one denial."""
    place = None if denial.place is None else _plain(denial.place)
    return {**_plain(denial.replace(place=None)), "place": place}


def _outcome(result: Result | None, error: str) -> dict[str, Json]:
    """Say how it ended."""
    if result is None:
        return {"cause": "refused", "message": _short(error)}
    return {
        "cause": result.cause,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "limit": result.limit,
        "message": _short(result.message),
    }


def _receipt(receipt: Receipt) -> dict[str, Json]:
    """Say what was enforced."""
    return {
        "tier": receipt.tier,
        "lines": [_plain(line) for line in receipt.lines],
        "notes": list(receipt.notes),
    }


def _from_command_line(contract: Contract) -> list[Json]:
    """Name the grants that were added on the command line."""
    found: list[Json] = []
    for kind in ("files", "env", "network", "commands"):
        for grant in getattr(contract, kind):
            if grant.origin.file == "cli":
                what = grant.path if kind == "files" else grant.host if kind == "network" else grant.name
                detail = {"files": "mode", "network": "port"}.get(kind)
                found.append(f"{kind} {what}" + (f" {getattr(grant, detail)}" if detail else ""))
    return found


def _short(text: str) -> str:
    """Bound a text that the program inside can choose."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… ({len(text) - MAX_TEXT} more)"
