"""Events are reported once, counted, and bounded."""

from __future__ import annotations

from agent_reach.egress.ledger import Ledger
from agent_reach.outcome import Connection, Denial, Place


def denial(subject: str, line: int = 1) -> Denial:
    return Denial("connect", subject, "not in the contract", place=Place("job.py", line))


def test_repetitions_count_and_another_line_is_another_event() -> None:
    events: list[Connection | Denial] = []
    ledger = Ledger(events.append)
    for line in (1, 1, 2, 1):
        ledger.deny(denial("10.0.0.1:80", line))
    ledger.connect("db", "10.0.0.2", 5432)
    ledger.connect("db", "10.0.0.2", 5432)
    ledger.connect("db", "10.0.0.3", 5432)
    assert events == [
        denial("10.0.0.1:80"),
        denial("10.0.0.1:80", 2),
        Connection("db", "10.0.0.2", 5432),
        Connection("db", "10.0.0.3", 5432),
    ]
    assert [one.count for one in ledger.denials()] == [3, 1]
    assert [one.count for one in ledger.connections()] == [2, 1]


def test_a_program_that_invents_subjects_costs_bounded_memory() -> None:
    events: list[Connection | Denial] = []
    ledger = Ledger(events.append, capacity=10)
    for number in range(100):
        ledger.deny(denial(f"10.0.0.1:{number}"))
        ledger.connect("db", "10.0.0.1", number)
    assert len(events) == 20
    assert len(ledger.denials()) == 11
    assert (ledger.denials()[-1].action, ledger.denials()[-1].count) == ("more", 90)
    assert len(ledger.connections()) == 11
    assert ledger.connections()[-1].count == 90


def test_another_side_of_a_refusal_is_not_counted_but_never_lost() -> None:
    events: list[Connection | Denial] = []
    ledger = Ledger(events.append)
    ledger.deny(denial("db.invalid"), 0)
    ledger.deny(denial("db.invalid"))
    ledger.deny(denial("db.invalid"), 0)
    assert len(events) == 1
    assert [one.count for one in ledger.denials()] == [2]
