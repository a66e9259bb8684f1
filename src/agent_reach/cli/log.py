"""`reach log`: list records, show one, verify the chain."""

from __future__ import annotations

from agent_reach.audit import place, query, render
from agent_reach.cli import failures
from agent_reach.cli.options import UsageError
from agent_reach.cli.terminal import say
from agent_reach.errors import ReachError
from agent_reach.host.caller import look_at_caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.cli.options import Parsed

_NEWEST = 20
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
        print(render.json_line(entry) if as_json else render.text_line(entry))
    if not entries and not as_json:
        say(f"reach log: no run is recorded in {where}")
    return 0


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
