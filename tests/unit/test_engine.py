"""What the engine makes of the end of a run and of what is reported meanwhile."""

from __future__ import annotations

import pytest

from agent_reach import engine
from agent_reach.outcome import Connection, Denial, Place
from agent_reach.sandbox.launch import Ended

# -- verdict ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (Ended(0, ""), (0, 0, "exited", "")),
        (Ended(3 << 8, ""), (3, 0, "exited", "")),
        (Ended(124 << 8, ""), (124, 0, "exited", "")),
        (Ended(15, ""), (143, 15, "signalled", "")),
        (Ended(139, ""), (139, 11, "signalled", "")),
        (Ended(9, "wall"), (124, 9, "limit", "wall")),
        (Ended(9, "memory"), (137, 9, "limit", "memory")),
        (Ended(9, "cpu_time"), (137, 9, "limit", "cpu_time")),
        (Ended(9, "output"), (137, 9, "limit", "output")),
        (Ended(9, "denied"), (125, 0, "denied", "")),
        (Ended(None, "lost"), (137, 9, "lost", "")),
    ],
)
def test_exit_code_signal_cause_and_limit(ended: Ended, expected: tuple[object, ...]) -> None:
    *found, sentence = engine._verdict(ended)
    assert tuple(found) == expected
    assert bool(sentence) == (expected[2] != "exited")


def test_a_limit_is_named_in_the_sentence() -> None:
    assert "limits.memory" in engine._verdict(Ended(9, "memory"))[-1]


def test_run_ids_are_new_and_sort_by_time() -> None:
    ids = [engine.new_run_id() for _ in range(50)]
    assert len(set(ids)) == 50
    seconds = [name.partition("-")[0] for name in ids]
    assert seconds == sorted(seconds)
    assert all(len(name) == 25 for name in ids)


# -- events ----------------------------------------------------------------------------------------------


def denial(subject: str = "/etc/shadow", **changes: str) -> dict[str, str]:
    fields = {
        "kind": "denial",
        "action": "open",
        "subject": subject,
        "clause": "not in resources.files",
        "entry": f"- {{path: {subject}, mode: r}}",
        "file": "/srv/job/job.py",
        "line": "7",
        "function": "main",
        "shown": "1",
        "layer": "python",
        "count": "1",
    }
    return fields | changes


def connection(count: str = "1", kind: str = "connection", **changes: str) -> dict[str, str]:
    return {"kind": kind, "host": "db", "address": "10.0.0.1", "port": "5432", "count": count} | changes


class Log:
    """Events, and what was shown."""

    def __init__(self) -> None:
        self.shown: list[Denial] = []
        self.events = engine._Events(self.shown.append)


def test_a_denial_is_kept_and_shown_with_its_place() -> None:
    log = Log()
    log.events.take(denial())
    (kept,) = log.events.denials
    assert kept.place == Place("/srv/job/job.py", 7, "main")
    assert (kept.action, kept.subject, kept.layer, kept.count) == ("open", "/etc/shadow", "python", 1)
    assert log.shown == [kept]


def test_one_that_is_not_to_be_shown_is_kept_alone_and_one_without_a_file_has_no_place() -> None:
    log = Log()
    log.events.take(denial(shown="0", file=""))
    assert log.shown == []
    assert [kept.place for kept in log.events.denials] == [None]


def test_what_happens_again_is_counted_where_it_was_kept() -> None:
    log = Log()
    log.events.take(denial("/a"))
    log.events.take(denial("/b"))
    for count in ("3", "5"):
        log.events.take(denial("/a", kind="count", count=count))
    log.events.take(connection())
    log.events.take(connection(kind="count", count="3"))
    assert [(kept.subject, kept.count) for kept in log.events.denials] == [("/a", 5), ("/b", 1)]
    assert log.events.connections == [Connection("db", "10.0.0.1", 5432, 3)]
    assert len(log.shown) == 2


def test_a_flood_of_events_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_MOST_EVENTS", 3)
    log = Log()
    for number in range(10):
        log.events.take(denial(f"/{number}"))
    log.events.take(connection())
    assert [kept.subject for kept in log.events.denials] == ["/0", "/1", "/2"]
    assert log.events.connections == []


def test_an_event_of_an_unknown_kind_is_passed_over() -> None:
    log = Log()
    log.events.take({"kind": "new"})
    assert (log.events.denials, log.events.connections) == ([], [])
