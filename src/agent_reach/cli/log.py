"""`reach log`: list records, show one, verify the chain."""

from __future__ import annotations

from agent_reach._util.visible import visible
from agent_reach.audit import place, query, render
from agent_reach.cli import failures
from agent_reach.cli.clauses import here, shorten
from agent_reach.cli.options import UsageError
from agent_reach.cli.terminal import say
from agent_reach.errors import ReachError
from agent_reach.host.caller import look_at_caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from agent_reach.cli.options import Parsed

_NEWEST = 20
_NAME = 17
_SECONDS = 19
_OUTCOME = 10
_DENIED = 9
_MOST = 200
_FAILED = 1


def execute(parsed: Parsed, environ: Mapping[str, str]) -> int:
    """Read the log.

    Raises:
        UsageError: the count is no number.
    """
    where = place.record_place(environ, look_at_caller(environ).home)
    as_json = parsed.has("--json")
    try:
        if parsed.words == ("verify",):
            return _verify(where, as_json=as_json)
        if parsed.words:
            entry = query.find(where, parsed.words[0])
            print(render.json_line(entry) if as_json else render.text_details(entry))
            return 0
        return _list(where, _count(parsed.one("--count")), as_json=as_json)
    except LookupError as error:
        say(f"reach log: {error.args[0]}")
        return _FAILED
    except (ReachError, TimeoutError) as error:
        say(failures.words(error))
        return _FAILED


def _count(text: str | None) -> int | None:
    """Return how many records to show; None for all."""
    if text == "all":
        return None
    if text is None:
        return _NEWEST
    if not (text.isascii() and text.isdigit() and int(text[:9])):
        raise UsageError(f"--count {text}: a number from 1, or all")
    return int(text[:9])


def _list(where: str, count: int | None, *, as_json: bool) -> int:
    """Print the newest records, oldest first."""
    entries = query.entries(where) if count is None else query.latest(where, count)
    for entry in entries:
        print(render.json_line(entry) if as_json else _line(query.parsed(entry)))
    if not entries and not as_json:
        say(f"reach log: no run is recorded in {where}")
    return 0


def _line(record: dict[str, Any]) -> str:
    """Return one record as one line that mostly fits 80 columns; the start of a run's name is enough to name it."""
    contract, code, denials = (record.get(name) for name in ("contract", "code", "denials"))
    profile = contract.get("profile") if isinstance(contract, dict) else ""
    path = str(code.get("path", "")) if isinstance(code, dict) else str(record.get("message", ""))
    count = sum(_count_of(denial) for denial in denials) if isinstance(denials, list) else 0
    parts = (
        str(record.get("run", ""))[:_NAME].ljust(_NAME),
        str(record.get("time", ""))[:_SECONDS].replace("T", " "),
        _outcome(record).ljust(_OUTCOME),
        (f"{count} denied" if count else "").ljust(_DENIED),
        shorten(path, here()) + (f" ({profile})" if profile else ""),
    )
    return "  ".join(visible(part, _MOST) for part in parts).rstrip()


def _outcome(record: dict[str, Any]) -> str:
    """Return how a run ended in two words; another event has its own name."""
    outcome = record.get("outcome")
    if not isinstance(outcome, dict):
        return str(record.get("event", ""))
    cause = str(outcome.get("cause", ""))
    words = {"exited": f"exit {outcome.get('exit_code')}", "signalled": f"signal {outcome.get('signal')}"}
    return words.get(cause, f"{outcome.get('limit')} limit" if cause == "limit" else cause)


def _count_of(denial: object) -> int:
    """Return how often a denial happened, 0 when a tampered record has something else."""
    count = denial.get("count") if isinstance(denial, dict) else 0
    return count if isinstance(count, int) else 0


def _verify(where: str, *, as_json: bool) -> int:
    """Say whether the chain is whole."""
    verdict = query.verify(where)
    if as_json:
        import json

        print(json.dumps({"records": verdict.count, "head": verdict.head, "problems": verdict.problems}))
    elif verdict.whole:
        print(f"{verdict.count} records, the chain is whole; head {verdict.head}")
    else:
        print("\n".join(verdict.problems))
        say(f"reach log: the record in {where} is not what reach wrote")
    return 0 if verdict.whole else _FAILED
