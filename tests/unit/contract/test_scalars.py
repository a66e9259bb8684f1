from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.contract.nodes import Doc, Scalar
from agent_reach.contract.scalars import flag_of, kind_of, whole_of

DOC = Doc("", "", "")


def plain(text: str) -> Scalar:
    return Scalar(DOC, 1, 1, "", text, plain=True)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "null"),
        ("~", "null"),
        ("null", "null"),
        ("nul", "text"),
        ("true", "flag"),
        ("FALSE", "flag"),
        # YAML 1.1 reads these as flags, numbers or dates.
        ("no", "text"),
        ("yes", "text"),
        ("on", "text"),
        ("y", "text"),
        ("1:30", "text"),
        ("2024-01-01", "text"),
        ("1_000", "text"),
        ("0b101", "text"),
        ("0", "whole"),
        ("-3", "whole"),
        ("+3", "whole"),
        ("007", "whole"),
        ("0x7f", "whole"),
        ("0o17", "whole"),
        ("0xg", "text"),
        ("3.10", "decimal"),
        (".5", "decimal"),
        ("5.", "decimal"),
        ("1e3", "decimal"),
        ("-1.5E-3", "decimal"),
        (".inf", "decimal"),
        ("-.INF", "decimal"),
        (".nan", "decimal"),
        (".", "text"),
        ("-", "text"),
        ("1.2.3", "text"),
        ("1e", "text"),
        ("٣", "text"),  # a digit to str.isdigit, not to YAML
    ],
)
def test_core_schema_of_yaml_1_2(text: str, kind: str) -> None:
    assert kind_of(plain(text)) == kind


@given(st.text(max_size=12))
def test_quoted_text_is_text(text: str) -> None:
    assert kind_of(Scalar(DOC, 1, 1, "", text, plain=False)) == "text"


def test_values() -> None:
    assert flag_of(plain("True")) is True
    assert flag_of(plain("false")) is False
    assert whole_of("0x7f") == 127
    assert whole_of("0o17") == 15
    assert whole_of("-12") == -12
    assert whole_of("9" * 5000) == 10**18
    assert whole_of("-" + "9" * 5000) == -(10**18)


@given(st.integers(-(10**17), 10**17))
def test_whole_numbers_come_back(number: int) -> None:
    assert kind_of(plain(str(number))) == "whole"
    assert whole_of(str(number)) == number
