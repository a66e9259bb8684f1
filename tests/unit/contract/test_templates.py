from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.contract.templates import names_in
from agent_reach.providers.template import fill


@pytest.mark.parametrize(
    ("template", "names"),
    [
        ("postgres://{USER}:{PASS}@db/{USER}", ("USER", "PASS", "USER")),
        ('{"p": "{PASS}", "n": {}}', ("PASS",)),
        ("{{A}}", ("A",)),
        ("{ {A}", ("A",)),
        ("{0.__class__} {A.b} {A[0]} {A!r} {A:>9} {1A} {} { } {A", ()),
        ("", ()),
    ],
)
def test_only_a_bare_name_in_braces_is_a_place(template: str, names: tuple[str, ...]) -> None:
    assert names_in(template) == names


@given(st.text(alphabet="{}AB_.0 é", max_size=12))
def test_the_providers_find_the_same_names(template: str) -> None:
    names = names_in(template)
    values = dict.fromkeys(names, "x")
    assert fill(template, values, set(names))[0] is not None
    for name in names:
        rest = {other: "x" for other in names if other != name}
        assert fill(template, rest, set(names)) == (None, name)
