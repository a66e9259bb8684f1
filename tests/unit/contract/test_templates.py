from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.contract.templates import fill, names_in


def test_places_and_doubled_braces() -> None:
    template = "postgres://{USER}:{PASS}@db/{{x}}{USER}"
    assert names_in(template) == ["USER", "PASS", "USER"]
    assert fill(template, {"USER": "u", "PASS": "{USER}"}) == "postgres://u:{USER}@db/{x}u"


@pytest.mark.parametrize(
    "template", ["{0.__class__}", "{A.b}", "{A[0]}", "{A!r}", "{A:>9}", "{", "}", "{}", "{A", "{A}}0}"]
)
def test_a_template_is_no_format_string(template: str) -> None:
    with pytest.raises(ValueError, match="not a template"):
        names_in(template)
    with pytest.raises(ValueError, match="not a template"):
        fill(template, {"A": "x"})


@given(st.text(alphabet="{}AB_.0 ", max_size=12))
def test_what_is_taken_means_what_it_means_to_python(template: str) -> None:
    try:
        names = names_in(template)
    except ValueError:
        return
    values = {name: f"<{name}>" for name in names}
    assert fill(template, values) == template.format(**values)
