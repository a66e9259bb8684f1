"""Reports of a guard, and of a program that pretends to be one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.egress import reports
from agent_reach.outcome import Denial, Place
from agent_reach.wire import reports as wire
from agent_reach.wire.frames import Decoder, FrameError

SPOT = wire.Spot("job.py", 18, "main")
PLACE = Place("job.py", 18, "main")


def through(frame: bytes) -> reports.Report:
    (fields,) = Decoder().feed(frame)
    return reports.read(fields)


def test_every_report_arrives() -> None:
    assert through(wire.at(77, SPOT)) == reports.At(77, PLACE)
    assert through(wire.name("db.internal", 5432, SPOT)) == reports.Lookup("db.internal", 5432, PLACE)
    assert through(wire.exists("/a b")) == reports.Existence("/a b")
    assert through(wire.denied("open", "/etc/shadow", "no grant", entry="- x", spot=SPOT)) == Denial(
        "open", "/etc/shadow", "no grant", "- x", PLACE, True, "python"
    )
    assert through(wire.denied("call", "os.system", "no", shown=False)) == Denial(
        "call", "os.system", "no", "", None, False, "python"
    )


def test_answers_about_existence() -> None:
    answers = [Decoder().feed(wire.existence(one))[0]["answer"] for one in (True, False, None)]
    assert answers == ["yes", "no", "unknown"]


def test_overlong_values_are_cut_and_still_fit() -> None:
    long = "€" * 5000
    report = through(wire.denied("open", long, long, entry=long, spot=wire.Spot(long, 1, long)))
    assert isinstance(report, Denial)
    assert report.subject.startswith("€€")


def test_what_a_terminal_would_act_on_is_escaped() -> None:
    report = through(wire.denied("open", "/x\x1b[2J\nreach: denied", "\u202e", spot=wire.Spot("a\nb.py", 1, "f")))
    assert isinstance(report, Denial)
    assert report.place is not None
    assert (report.subject + report.clause + report.place.file).isprintable()


@given(
    st.dictionaries(
        st.sampled_from(["tid", "name", "port", "action", "subject", "path", "line", "file"]), st.text(max_size=12)
    )
)
def test_any_fields_give_a_report_or_a_frame_error(fields: dict[str, str]) -> None:
    for kind in ("at", "name", "denied", "exists", "", "grant"):
        try:
            reports.read({**fields, "kind": kind})
        except FrameError:
            continue


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "exists", "path": "relative"},
        {"kind": "exists", "path": "/a\0b"},
        {"kind": "at", "tid": "\u0661", "file": "f", "line": "1", "function": ""},
        {"kind": "at", "tid": "-1", "file": "f", "line": "1", "function": ""},
        {"kind": "at", "tid": "1", "file": "f", "line": "0", "function": ""},
        {"kind": "denied", "action": "grant"},
    ],
)
def test_fields_that_hold_what_they_may_not(fields: dict[str, str]) -> None:
    with pytest.raises(FrameError):
        reports.read(fields)


def test_a_place_explains_one_connect_and_a_lookup_several_queries() -> None:
    places = reports.Places()
    places.remember(reports.At(7, PLACE))
    places.remember(reports.Lookup("DB.internal.", 5432, PLACE))
    assert places.take(8) is None
    assert places.take(7) == PLACE
    assert places.take(7) is None
    for _ in range(2):
        assert places.lookup("db.internal") == reports.Lookup("DB.internal.", 5432, PLACE)


def test_places_without_end_cost_bounded_memory() -> None:
    places = reports.Places()
    for number in range(5000):
        places.remember(reports.At(number, PLACE))
        places.remember(reports.Lookup(f"n{number}.example", 1, PLACE))
    assert places.take(0) is None
    assert places.lookup("n0.example") is None
    assert places.take(4999) == PLACE
    assert places.lookup("n4999.example") is not None
