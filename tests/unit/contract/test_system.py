from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_reach.contract.load import narrow_by_system
from agent_reach.errors import ContractError
from unit.contract.support import HOME, VERSION, loaded

if TYPE_CHECKING:
    from pathlib import Path

    from agent_reach.contract.model import Contract


def narrowed(tmp_path: Path, own: str, *bounds: str, cache_dir: str | None = None) -> Contract:
    for number, bound in enumerate(bounds):
        file = tmp_path / f"{number}.yaml"
        file.write_text(VERSION + bound)
        file.chmod(0o644)
    return narrow_by_system(loaded(own), str(tmp_path), home=HOME, cache_dir=cache_dir)


def refused_code(tmp_path: Path, bound: str) -> str:
    with pytest.raises(ContractError) as caught:
        narrowed(tmp_path, "", bound)
    return caught.value.findings[0].code


def test_without_contracts_of_the_system_nothing_changes(tmp_path: Path) -> None:
    contract = loaded("resources: {env: {A: x}}\n")
    assert narrow_by_system(contract, str(tmp_path)) is contract
    assert narrow_by_system(contract, str(tmp_path / "none")) is contract
    (tmp_path / "README").write_text("not a contract")
    assert narrow_by_system(contract, str(tmp_path)) is contract


@pytest.mark.parametrize(
    ("own", "bound", "left"),
    [
        ("{path: /d/x, mode: r}", "{path: /d/, mode: r}", [("/d/x", "r")]),
        ("{path: /d/x, mode: rw}", "{path: /d/, mode: r}", [("/d/x", "r")]),
        ("{path: /d/x, mode: rb}", "{path: /d/, mode: rw}", [("/d/x", "rb")]),
        ("{path: /d/x, mode: r}", "{path: /d/, mode: w}", []),
        ("{path: /d/x, mode: w}", "{path: /d/, mode: a}", [("/d/x", "a")]),
        ("{path: /d/, mode: rw}", "{path: /d/pub/, mode: r}", [("/d/pub", "r")]),
        ("{path: /d/, mode: r}", "{path: /dx/, mode: r}", []),
        ("{path: /d/, mode: r}", "{path: /, mode: r}", [("/d", "r")]),
        ("{path: '/d/*.csv'}", "{path: /d/}", [("/d/*.csv", "r")]),
        ("{path: '/d/*/x.csv'}", "{path: /d/a/}", []),
        ("{path: '/d/*.csv'}", "{path: '/d/*.csv'}", [("/d/*.csv", "r")]),
        ("{path: /d/a.csv}", "{path: '/d/*.csv'}", []),
    ],
)
def test_files_are_the_common_part(tmp_path: Path, own: str, bound: str, left: list[tuple[str, str]]) -> None:
    contract = narrowed(tmp_path, f"resources: {{files: [{own}]}}\n", f"resources: {{files: [{bound}]}}\n")
    assert [(grant.path, grant.mode) for grant in contract.files] == left


def test_a_link_inside_a_bound_does_not_lead_out_of_it(tmp_path: Path) -> None:
    public, secret = tmp_path / "public", tmp_path / "secret"
    public.mkdir()
    secret.mkdir()
    (public / "link").symlink_to(secret)
    policy = tmp_path / "etc"
    policy.mkdir()
    own = f"resources: {{files: [{{path: {public}/link/}}, {{path: {public}/plain}}]}}\n"
    contract = narrowed(policy, own, f"resources: {{files: [{{path: {public}/}}]}}\n")
    assert [grant.path for grant in contract.files] == [str(public / "plain")]


def test_names_and_rules(tmp_path: Path) -> None:
    own = (
        "resources:\n"
        "  env: {A: x, GITHUB_SHA: {}, B: y}\n"
        "  network: {allow_outbound: [{host: a.b, port: 1}, {host: a.b, port: 2}]}\n"
        "  commands: [git, {name: ls, with: [perl]}]\n"
    )
    bound = (
        "resources:\n"
        "  env: {A: {}, 'GITHUB_*': {}}\n"
        "  network: {allow_outbound: [{host: A.b, port: 2}, {host: c.d, port: 3}]}\n"
        "  commands: [git, ls]\n"
    )
    contract = narrowed(tmp_path, own, bound)
    assert [(grant.name, grant.default) for grant in contract.env] == [("A", "x"), ("GITHUB_SHA", None)]
    assert [(rule.host, rule.port) for rule in contract.network] == [("a.b", 2)]
    assert [grant.name for grant in contract.commands] == ["git"]
    assert contract.notes == (f"narrowed by {tmp_path}/0.yaml: variable B, a.b:1, command ls",)


def test_a_section_that_is_not_there_bounds_nothing_and_an_empty_one_everything(tmp_path: Path) -> None:
    own = "resources: {env: {A: x}, network: {allow_outbound: [{host: a.b, port: 1}]}}\n"
    contract = narrowed(tmp_path, own, "resources: {network: {allow_outbound: []}}\n")
    assert contract.network == ()
    assert [grant.name for grant in contract.env] == ["A"]


def test_limits_are_the_smaller_ones(tmp_path: Path) -> None:
    own = "limits: {wall: 10m, memory: 1GiB}\n"
    contract = narrowed(tmp_path, own, "limits: {wall: 1m, memory: {max: 2GiB, enforced: true}, processes: 64}\n")
    assert {name: (limit.value, limit.enforced) for name, limit in contract.limits} == {
        "wall": (60.0, False),
        "memory": (2**30, True),
        "processes": (64, False),
    }


def test_tier_and_project(tmp_path: Path) -> None:
    contract = narrowed(tmp_path, "", "sandbox: {minimum: full}\nproject: {read: code}\n")
    assert contract.sandbox.minimum == "full"
    assert contract.project_read == "code"
    contract = narrowed(tmp_path, "sandbox: {minimum: full}\nproject: {read: none}\n", "sandbox: {minimum: reduced}\n")
    assert contract.sandbox.minimum == "full"
    assert contract.project_read == "none"


def test_every_contract_of_the_system_narrows(tmp_path: Path) -> None:
    own = "resources: {env: {A: x, B: x, C: x}}\n"
    contract = narrowed(tmp_path, own, "resources: {env: [{name: A}, {name: B}]}\n", "resources: {env: [{name: B}]}\n")
    assert [grant.name for grant in contract.env] == ["B"]
    assert len(contract.notes) == 2


@pytest.mark.parametrize(
    ("bound", "code"),
    [
        ("options: {on_denial: kill}\n", "E_NOT_YET"),
        ("python: python3\n", "E_NOT_YET"),
        ("identity: {name: x}\n", "E_NOT_YET"),
        ("profiles: {dev: {limits: {}}}\n", "E_VALUE"),
        ("limits: {wall: 5}\n", "E_UNIT"),
        ("limtis: {wall: 5s}\n", "E_UNKNOWN_KEY"),
    ],
)
def test_what_cannot_bound_is_refused_never_passed_over(tmp_path: Path, bound: str, code: str) -> None:
    assert refused_code(tmp_path, bound) == code


def test_one_that_everybody_can_write_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "0.yaml"
    file.write_text(f"{VERSION}limits: {{}}\n")
    file.chmod(0o666)
    with pytest.raises(ContractError) as caught:
        narrow_by_system(loaded(""), str(tmp_path))
    assert caught.value.findings[0].code == "E_PERMISSIONS"


def test_warm_is_the_same_as_cold(tmp_path: Path) -> None:
    policy, where = tmp_path / "etc", str(tmp_path / "cache")
    policy.mkdir()
    results = [
        narrowed(policy, "resources: {env: {A: x, B: y}}\n", "resources: {env: {A: {}}}\n", cache_dir=where)
        for _again in range(2)
    ]
    assert results[0] == results[1]
    assert len(os.listdir(where)) == 1
