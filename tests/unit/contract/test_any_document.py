"""Whatever stands in a place of a contract: a contract or findings come out, never another exception."""

from __future__ import annotations

import copy
import json

from hypothesis import given
from hypothesis import strategies as st

from agent_reach.contract.load import load
from agent_reach.contract.model import Contract
from agent_reach.errors import ContractError
from unit.contract.support import HOME

RICH: dict[str, object] = {
    "version": "1.0",
    "default_profile": "dev",
    "extends": ["base_a"],
    "base_a": {"identity": {"name": "x"}},
    "identity": {"type": "user", "name": "n", "roles": ["a"]},
    "allowed_files": [{"path": "/q"}],
    "resources": {
        "files": [{"path": "~/x", "mode": "rw", "required": True}, {"path": "/y", "source": "https://e.com/y"}],
        "env": [{"name": "A", "source": "env://A", "default": "x"}, {"name": "B", "template": "{A}"}],
        "network": {"allow_outbound": [{"host": "a.b", "port": 5, "protocol": "http"}]},
        "commands": ["git", {"name": "ls", "with": ["perl"]}],
    },
    "limits": {"wall": "5s", "memory": {"max": "1GiB", "enforced": True}, "io": {"read": "1MiB"}},
    "sandbox": {"minimum": "full"},
    "options": {"on_denial": "kill", "disable_pycache": True},
    "project": {"read": "code"},
    "python": "./v/bin/python",
    "profiles": {"dev": {"extends": "prod", "drop": {"env": ["A"]}, "resources": {"env": {"A": "y"}}}, "prod": {}},
    "targets": {"t": {"resources": {"env": {"C": "x"}}}},
}
WEIRD = st.sampled_from(
    [
        None,
        True,
        5,
        -1,
        1.5,
        "",
        "x",
        "*",
        "..",
        "~",
        "${X}",
        "\x00",
        "ü",
        [],
        [[]],
        [None],
        {},
        {"a": 1},
        {"<<": {}},
        {"<<": 5},
        {"": ""},
        {"extends": "dev"},
        {"drop": {}},
        {"drop": {"env": [5]}},
        {"max": "1"},
        [{"name": 5}],
        "9" * 400,
    ]
)


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Return the path of every value in a document."""
    found = [path] if path else []
    items: list[tuple[object, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, below in items:
        found += places(below, (*path, key))
    return found


def with_value(path: tuple[object, ...], value: object) -> dict[str, object]:
    document = copy.deepcopy(RICH)
    node: object = document
    for key in path[:-1]:
        node = node[key]  # type: ignore[index]
    node[path[-1]] = value  # type: ignore[index]
    return document


def outcome(document: object) -> Contract | tuple[object, ...] | None:
    try:
        return load("/srv/reach.yaml", targets=("t",), home=HOME, data=json.dumps(document).encode())
    except ContractError as error:
        return error.findings or None


def test_the_whole_document_loads() -> None:
    assert isinstance(outcome(RICH), Contract)


@given(st.sampled_from(places(RICH)), WEIRD)
def test_one_value_replaced(path: tuple[object, ...], value: object) -> None:
    assert outcome(with_value(path, value)) is not None


@given(st.sampled_from([path for path in places(RICH) if isinstance(path[-1], str)]), WEIRD)
def test_a_key_that_nobody_knows_is_never_passed_over(path: tuple[object, ...], value: object) -> None:
    if path[:1] == ("base_a",) or "env" in path[-2:-1] or path in (("profiles", path[-1]), ("targets", path[-1])):
        return  # free names
    result = outcome(with_value((*path[:-1], "zzz"), value))
    assert isinstance(result, tuple) or (len(path) == 1 and isinstance(value, dict))


@given(
    st.recursive(
        WEIRD, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(RICH)), inner)
    )
)
def test_any_value_at_the_top(value: object) -> None:
    assert outcome(value) is not None
    assert outcome({"version": "1", "resources": value}) is not None
