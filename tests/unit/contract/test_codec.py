from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.contract.codec import Mismatch, decode, encode
from agent_reach.contract.model import (
    CommandGrant,
    Contract,
    EnvGrant,
    FileGrant,
    Identity,
    Limit,
    NetRule,
    Options,
    Origin,
    Sandbox,
)

TEXT = st.text(max_size=8)
ORIGINS = st.builds(Origin, TEXT, st.integers(0, 9), TEXT)


def several(item: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(item, max_size=3).map(tuple)


CONTRACTS = st.builds(
    Contract,
    path=TEXT,
    digest=TEXT,
    profile=TEXT,
    targets=several(TEXT),
    identity=st.builds(Identity, TEXT, TEXT, several(TEXT)),
    files=several(
        st.builds(FileGrant, TEXT, TEXT, st.booleans(), st.booleans(), TEXT, TEXT, st.booleans(), origin=ORIGINS)
    ),
    env=several(
        st.builds(EnvGrant, TEXT, TEXT, st.none() | TEXT, st.booleans(), st.booleans(), TEXT, TEXT, origin=ORIGINS)
    ),
    network=several(st.builds(NetRule, TEXT, st.integers(1, 65535), TEXT, ORIGINS)),
    commands=several(st.builds(CommandGrant, TEXT, several(TEXT), ORIGINS)),
    limits=several(
        st.tuples(TEXT, st.builds(Limit, st.floats(0, 1e9) | st.integers(0, 2**62), st.booleans(), ORIGINS))
    ),
    sandbox=st.builds(Sandbox, TEXT, ORIGINS),
    options=st.builds(Options, st.booleans(), st.booleans(), TEXT, TEXT),
    project_read=TEXT,
    python=TEXT,
    notes=several(TEXT),
)


@given(CONTRACTS)
def test_what_was_encoded_comes_back(contract: Contract) -> None:
    assert decode(json.loads(json.dumps(encode(contract)))) == contract


FULL = Contract(
    files=(FileGrant("/x"),), env=(EnvGrant("A"),), network=(NetRule("h", 1),), limits=(("wall", Limit(1.0)),)
)


def wrong_values(value: object) -> list[object]:
    """Every copy of an encoded contract in which one leaf has another type."""
    if not isinstance(value, list):
        return [[value], {"a": value}, object()]
    broken: list[object] = [[*value, "more"], "text", 5]
    for place, item in enumerate(value):
        broken += [[*value[:place], other, *value[place + 1 :]] for other in wrong_values(item)]
    return broken


def test_anything_of_another_shape_is_a_mismatch() -> None:
    taken = []
    for value in wrong_values(encode(FULL)):
        try:
            taken.append(decode(value))
        except Mismatch:
            continue
    # A list of texts may hold one text more; nothing else can change unseen.
    assert all(contract.targets or contract.notes or contract.identity.roles for contract in taken)
    assert len(taken) == 3


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_a_port_is_an_integer(value: object) -> None:
    encoded = encode(FULL)
    assert isinstance(encoded, list)
    encoded[Contract._fields.index("network")][0][1] = value
    with pytest.raises(Mismatch):
        decode(encoded)
