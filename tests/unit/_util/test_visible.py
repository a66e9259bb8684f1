"""Text of unknown origin on one line of a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach._util.visible import visible


@given(st.text(max_size=80))
def test_nothing_a_terminal_acts_on_is_left(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 中", "plain ä 中"),
        ("a\nb\x1b[2J", "a\\x0ab\\x1b[2J"),
        ("\u202e\u2028\x9b", "\\u202e\\u2028\\x9b"),
        ("\udcff", "\\xff"),
        ("\U000e0001", "\\U000e0001"),
        ("", ""),
    ],
)
def test_what_is_left_out_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_long_text_is_cut_and_the_rest_counted() -> None:
    assert visible("x" * 12, 10) == "x" * 10 + "… (2 more)"
    assert visible("x" * 10, 10) == "x" * 10
