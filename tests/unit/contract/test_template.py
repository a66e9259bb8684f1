from __future__ import annotations

import pytest

from agent_reach.contract.load import load
from agent_reach.contract.template import starting_contract


@pytest.mark.parametrize("script", [None, "sync_users.py", "/srv/a b/2024.py", "run", "ü\n: x.py"])
def test_the_starting_contract_loads_and_grants_nothing(script: str | None) -> None:
    contract = load("/srv/reach.yaml", home="", data=starting_contract(script).encode())
    assert not (contract.files)
    assert not (contract.env)
    assert not (contract.network)
    assert not (contract.commands)
    assert contract.identity.name


def test_its_examples_load_too() -> None:
    lines = starting_contract("x.py").split("\n")
    shown = [line.replace("#", " ", 1) if line.lstrip().startswith("#  -") else line for line in lines]
    text = "\n".join(shown).replace("files: []", "files:").replace("env: []", "env:", 1)
    text = text.replace("allow_outbound: []", "allow_outbound:").replace("commands: []", "commands:")
    text = text.replace("# limits", "limits")
    contract = load("/srv/reach.yaml", home="", data=text.encode())
    assert [grant.path for grant in contract.files] == ["/srv/data/in.csv", "/srv/out"]
    assert [grant.name for grant in contract.env] == ["LOG_LEVEL", "DB_HOST", "DB_PASS"]
    assert [rule.host for rule in contract.network] == ["db.internal"]
    assert [grant.name for grant in contract.commands] == ["git"]
    assert len(contract.limits) == 3


def test_its_profile_loads_too() -> None:
    text = starting_contract().partition("# Variants")[2].partition("\n")[2]
    bare = "\n".join(line.removeprefix("# ") for line in text.split("\n"))
    contract = load("/srv/reach.yaml", profile="prod", home="", data=f'version: "1.0"\n{bare}'.encode())
    assert contract.env[0].source == "vault://secret/app/db#host"
