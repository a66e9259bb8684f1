from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.contract.sink import Refusal
from agent_reach.contract.units import DURATIONS, SIZES, duration, rate, size


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("30s", 30.0), ("1.5h", 5400.0), ("2m", 120.0), ("366h", 366 * 3600.0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("5", "E_UNIT", "`5s`"),
        ("5 minuts", "E_UNIT", "`5m`"),
        ("5 m", "E_UNIT", "`5m`"),
        ("5min", "E_UNIT", "`5m`"),
        ("2hours", "E_UNIT", "`2h`"),
        ("10sec", "E_UNIT", "`10s`"),
        ("2d", "E_UNIT", "ms, s, m, h"),
        ("m", "E_UNIT", "a number and a unit"),
        ("", "E_UNIT", "a number and a unit"),
        ("-5s", "E_UNIT", ""),
        (".5s", "E_UNIT", ""),
        ("1.s", "E_UNIT", ""),
        ("1.2.3s", "E_UNIT", ""),
        ("1m30s", "E_UNIT", ""),
        ("0s", "E_VALUE", ""),
        ("0.0ms", "E_VALUE", ""),
        ("100000h", "E_VALUE", ""),
        ("٣s", "E_UNIT", ""),
        ("9" * 5000 + "s", "E_UNIT", ""),
    ],
)
def test_what_is_no_duration(text: str, code: str, hint: str) -> None:
    with pytest.raises(Refusal) as caught:
        duration(text)
    assert caught.value.code == code
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1KB", 1000), ("1KiB", 1024), ("1.5GiB", 1610612736), ("200MB", 200_000_000), ("512MiB", 536870912)],
)
def test_sizes(text: str, amount: int) -> None:
    assert size(text) == amount
    assert rate(f"{text}/s") == rate(text) == amount


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("512", "E_UNIT", "a number and a unit"),
        ("512M", "E_UNIT", "`512MiB` (1024) or `512MB` (1000)"),
        ("256MB2", "E_UNIT", "`256MiB`"),
        ("1 GiB", "E_UNIT", "`1GiB`"),
        ("1gib", "E_UNIT", "`1GiB`"),
        ("0MiB", "E_VALUE", ""),
        ("0", "E_UNIT", ""),
        ("99999999999GiB", "E_VALUE", ""),
    ],
)
def test_what_is_no_size(text: str, code: str, hint: str) -> None:
    with pytest.raises(Refusal) as caught:
        size(text)
    assert caught.value.code == code
    assert hint in caught.value.hint


def test_zero_only_where_it_means_something() -> None:
    assert size("0", zero=True) == 0
    assert size("0MiB", zero=True) == 0


@given(st.integers(1, 10**6), st.sampled_from(sorted(SIZES)))
def test_every_size_is_its_product(number: int, unit: str) -> None:
    assert size(f"{number}{unit}") == number * SIZES[unit]


@given(st.integers(1, 8000), st.sampled_from(sorted(DURATIONS)))
def test_every_duration_is_its_product(number: int, unit: str) -> None:
    assert duration(f"{number}{unit}") == number * DURATIONS[unit]


@given(st.text(max_size=12))
def test_any_text_is_a_value_or_refused(text: str) -> None:
    for convert in (duration, size, rate):
        try:
            value: float | str = convert(text)
        except Refusal as refusal:
            value = refusal.code
        assert value in {"E_UNIT", "E_VALUE"} if isinstance(value, str) else value > 0
