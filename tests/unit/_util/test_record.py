"""Frozen values without dataclasses."""

from __future__ import annotations

import pytest

from agent_reach._util.record import Record


class Point(Record):
    x: int
    y: int = 2
    _private: int = 9


class Named(Point):
    name: str = "n"


class Other(Record):
    x: int
    y: int = 2


class Bare(Point):
    pass


def test_fields_are_given_by_position_and_by_name() -> None:
    assert (Point(1).x, Point(1).y) == (1, 2)
    assert Point(1, 3) == Point(x=1, y=3) == Point(1, y=3)


def test_fields_of_the_base_come_first() -> None:
    assert Named._fields == ("x", "y", "name")
    assert repr(Named(1, 5, "z")) == "Named(x=1, y=5, name='z')"
    assert Bare(1) != Point(1)
    assert Bare._fields == ("x", "y")


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, "'x' is missing"),
        ((1, 2, 3), {}, "takes 2 fields, got 3"),
        ((1,), {"x": 1}, "'x' is unknown or given twice"),
        ((1,), {"z": 1}, "'z' is unknown or given twice"),
        ((1,), {"_private": 1}, "'_private' is unknown"),
    ],
)
def test_a_field_that_is_missing_unknown_or_given_twice_is_refused(args, kwargs, words) -> None:
    with pytest.raises(TypeError, match=words):
        Point(*args, **kwargs)


def test_a_record_never_changes() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="immutable"):
        point.x = 2
    with pytest.raises(AttributeError, match="immutable"):
        point.z = 2
    with pytest.raises(AttributeError, match="immutable"):
        del point.x
    assert point == Point(1)


def test_equal_values_of_one_class_are_equal_and_hash_alike() -> None:
    assert Point(1) == Point(1, 2)
    assert hash(Point(1)) == hash(Point(1, 2))
    assert Point(1) != Point(2)
    assert Point(1) != Other(1)
    assert Point(1) != (1, 2)
    assert {Point(1): "a"}[Point(1, 2)] == "a"


def test_a_copy_with_changes_leaves_the_original() -> None:
    point = Point(1)
    assert point.replace(y=7) == Point(1, 7)
    assert point == Point(1)
    assert isinstance(Named(1).replace(x=2), Named)
    with pytest.raises(TypeError, match="unknown"):
        point.replace(z=1)
