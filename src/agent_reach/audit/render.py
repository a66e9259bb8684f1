"""Show records to people and to machines; no text of a program can forge a line or drive the terminal."""

from __future__ import annotations

from agent_reach._util.visible import visible
from agent_reach.audit.canonical import dumps
from agent_reach.audit.query import parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from agent_reach.audit.journal import Entry

_CELL = 60
_RUN = 25
_LINE = 400


def json_line(entry: Entry) -> str:
    """Return one record as one line of JSON in printable ASCII, with its place in the chain."""
    return dumps({**parsed(entry), "seq": entry.seq, "hash": entry.hash})  # type: ignore[dict-item]


def text_line(entry: Entry) -> str:
    """Return one record as one line: run, time, outcome, profile, what was run, denials."""
    record = parsed(entry)
    if record.get("event") != "run":
        return "  ".join(
            ["-".ljust(_RUN), _cell(record, "time"), _cell(record, "event"), _cell(record, "message")]
        ).rstrip()
    denials = _list(record, "denials")
    count = sum(int(_int(denial, "count")) for denial in denials) + int(_int(_map(record, "omitted"), "denials"))
    parts = [
        _cell(record, "run").ljust(_RUN),
        _cell(record, "time"),
        _outcome(_map(record, "outcome")).ljust(10),
        (_cell(_map(record, "contract"), "profile") or "-").ljust(8),
        _cell(_map(record, "code"), "path") or "-",
    ]
    if count:
        parts.append(f"{count} denied")
    return "  ".join(parts)


def text_details(entry: Entry) -> str:
    """Return one record as a block of lines, each of which starts with words of reach's own."""
    record = parsed(entry)
    return "\n".join(visible(line, _LINE) for line in _details(record, entry))


def _details(record: dict[str, Any], entry: Entry) -> Iterator[str]:
    """Yield the lines of a record."""
    contract, code, identity = _map(record, "contract"), _map(record, "code"), _map(record, "identity")
    outcome, usage, receipt = _map(record, "outcome"), _map(record, "usage"), _map(record, "receipt")
    yield f"run          {record.get('run', '')}  (record {entry.seq}, {entry.hash[:16]}…)"
    yield f"time         {record.get('time', '')}"
    yield f"outcome      {_outcome(outcome)} {outcome.get('message', '')}".rstrip()
    yield f"code         {code.get('path', '')}  sha256 {code.get('sha256', '') or '-'}"
    yield f"python       {code.get('python', '') or '-'}"
    roles = ", ".join(str(role) for role in _list(identity, "roles"))
    with_roles = f" roles {roles}" if roles else ""
    yield f"identity     {identity.get('name', '') or '-'} ({identity.get('type', '')}){with_roles}"
    profile = f"  profile {contract['profile']}" if contract.get("profile") else ""
    yield f"contract     {contract.get('path', '') or 'none'}{profile}  digest {contract.get('digest', '') or '-'}"
    for grant in _list(record, "cli"):
        yield f"added (cli)  {grant}"
    for item in _maps(record, "injected"):
        yield f"injected     {item.get('name', '')} from {item.get('from', '')}"
    for item in _maps(record, "staged"):
        yield f"staged       {item.get('path', '')} from {item.get('source', '')} sha256 {item.get('sha256', '')}"
    for item in _maps(record, "connections"):
        target = f"{item.get('host', '')}:{item.get('port', '')}"
        yield f"connected    {target} ({item.get('address', '')}){_times(item)}"
    for item in _maps(record, "denials"):
        place = _map(item, "place")
        where = f"  {place.get('file', '')}:{place.get('line', '')}" if place else ""
        yield f"denied       {item.get('action', '')} {item.get('subject', '')}{_times(item)}{where}"
        yield f"             {item.get('clause', '')}"
    for name, number in sorted(_map(record, "omitted").items()):
        yield f"omitted      {number} more {name}"
    yield "usage        " + " ".join(f"{name}={value}" for name, value in sorted(usage.items()))
    yield f"tier         {receipt.get('tier', '')}"
    for item in _maps(receipt, "lines"):
        yield f"             {item.get('level', '')}: {item.get('what', '')} ({item.get('by', '')})"
    for note in _list(receipt, "notes"):
        yield f"             note: {note}"


def _outcome(outcome: dict[str, Any]) -> str:
    """Return the outcome in two words."""
    cause = str(outcome.get("cause", ""))
    if cause == "exited":
        return f"exit {outcome.get('exit_code', '')}"
    if cause == "signalled":
        return f"signal {outcome.get('signal', '')}"
    return visible(f"{cause} {outcome.get('limit', '')}".strip(), _CELL)


def _times(item: dict[str, Any]) -> str:
    """Return how often something happened, when it was more than once."""
    count = _int(item, "count")
    return f" {count} times" if count > 1 else ""


def _cell(record: dict[str, Any], key: str) -> str:
    """Return a text for one column."""
    return visible(str(record.get(key, "")), _CELL)


def _map(record: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a mapping, empty when a tampered record has something else."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def _list(record: dict[str, Any], key: str) -> list[Any]:
    """Return a list, empty when a tampered record has something else."""
    value = record.get(key)
    return value if isinstance(value, list) else []


def _maps(record: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the mappings of a list."""
    return [item for item in _list(record, key) if isinstance(item, dict)]


def _int(record: object, key: str) -> int:
    """Return a count, 0 when a tampered record has something else."""
    value = record.get(key) if isinstance(record, dict) else 0
    return value if isinstance(value, int) else 0
