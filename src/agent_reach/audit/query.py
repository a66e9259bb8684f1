"""Read the log: list, find one run, verify the chain."""

from __future__ import annotations

import json
import os

from agent_reach._util.record import Record
from agent_reach.audit.journal import GENESIS, Entry, Head, Journal, link
from agent_reach.audit.store import fold, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_PROBLEMS = 20


class Verdict(Record):
    """What `verify` found.

    Args:
        count: links read.
        head: hash of the last link; whoever keeps a copy elsewhere can prove more than this file can.
        problems: one sentence each; none means that the chain is whole.
    """

    count: int
    head: str
    problems: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Say whether nothing was found."""
        return not self.problems


def entries(place: str, *, run: str = "") -> list[Entry]:
    """Return the links of the log, oldest first.

    Args:
        place: directory of the records; one that does not exist is an empty log.
        run: prefix of a run's identifier, or empty for all.

    Raises:
        Unavailable: the directory cannot be used.
    """
    if not os.path.isdir(place):
        return []
    with Journal(place) as journal:
        fold(journal)
        found = list(rows(place, run=run))
        with journal.locked():
            rest = list(journal.lines(journal.head() or Head()))
    return found + [entry for entry in rest if str(parsed(entry).get("run", "")).startswith(run)]


def latest(place: str, count: int) -> list[Entry]:
    """Return the last `count` links, oldest first."""
    return entries(place)[-count:] if count > 0 else []


def find(place: str, prefix: str) -> Entry:
    """Return the record of a run.

    Args:
        place: directory of the records.
        prefix: its identifier or the start of it.

    Raises:
        LookupError: no run starts so, or several do; the text says which.
    """
    found = {str(parsed(entry).get("run")): entry for entry in entries(place, run=prefix)} if prefix else {}
    if prefix in found:
        return found[prefix]
    if not found:
        raise LookupError(f"no run starts with `{prefix}`; `reach log` lists them")
    if len(found) > 1:
        raise LookupError(f"{len(found)} runs start with `{prefix}`: {', '.join(sorted(found)[:5])}")
    return next(iter(found.values()))


def parsed(entry: Entry) -> dict[str, object]:
    """Return a record as a mapping; a body that is no JSON object, which only tampering leaves, says so."""
    try:
        record = json.loads(entry.body)
    except (ValueError, RecursionError):
        record = None
    return record if isinstance(record, dict) else {"event": "unreadable", "body": entry.body}


def verify(place: str) -> Verdict:
    """Recompute every hash and compare the end with the head.

    Finds an edited, removed, inserted or reordered record and a cut end. The chain has no secret key: somebody
    with the caller's rights who rewrites every link and the head leaves no trace here, only against a copy of
    the head that was kept elsewhere.

    Args:
        place: directory of the records.

    Raises:
        Unavailable: the directory cannot be used.
    """
    if not os.path.isdir(place):
        return Verdict(0, GENESIS, ())
    with Journal(place) as journal, journal.locked():
        before = journal.head()
        recovered = journal.recover()
        chain = [*rows(place), *journal.lines(recovered)]
    problems = [*_broken(_without_repeats(chain)), *_end(chain, recovered, before)]
    if len(problems) > _MOST_PROBLEMS:
        problems = [*problems[:_MOST_PROBLEMS], f"{len(problems) - _MOST_PROBLEMS} more problems"]
    return Verdict(len(chain), chain[-1].hash if chain else GENESIS, tuple(problems))


def _without_repeats(chain: list[Entry]) -> Iterator[Entry]:
    """Leave out lines that are in SQLite already: somebody died between the commit and the new journal."""
    seen: set[tuple[int, str]] = set()
    for entry in chain:
        if (entry.seq, entry.hash) not in seen:
            seen.add((entry.seq, entry.hash))
            yield entry


def _broken(chain: Iterator[Entry]) -> Iterator[str]:
    """Name each place where a link does not follow from the one before."""
    seq, previous = 0, GENESIS
    for entry in chain:
        if not entry.seq:
            yield f"behind record {seq} stands a line that is no record"
            continue
        if entry.seq > seq + 1:
            gap = f"record {seq + 1} is" if entry.seq == seq + 2 else f"records {seq + 1} to {entry.seq - 1} are"
            yield f"{gap} missing"
        elif entry.seq <= seq:
            yield f"record {entry.seq} stands behind record {seq}"
        elif entry.hash != link(entry.seq, previous, entry.body):
            yield f"record {entry.seq} or the hash of the one before it was changed"
        if parsed(entry).get("event") == "head_lost":
            yield f"the head was lost before record {entry.seq}; records between it and the one before may be missing"
        seq, previous = entry.seq, entry.hash


def _end(chain: list[Entry], head: Head, before: Head | None) -> Iterator[str]:
    """Compare the end of the chain with the head."""
    last = chain[-1] if chain else Entry(0, GENESIS, "")
    if last.seq < head.seq:
        yield f"the log ends at record {last.seq}, but {head.seq} were written"
    elif last.hash != head.hash:
        yield f"record {last.seq} is not the one that the head names"
    if before is None and chain and parsed(last).get("event") != "head_lost":
        yield "the head is missing"
