"""C26: mistakes in the contract are refused, with line and key: what the loader finds.

The sketches are respelt for the real format: `version` in front, `env` and `network` under `resources`, `mode` for
`access`, `allow_outbound` for `allow`, limits under `limits`. Line numbers and keys are those of the respelt text.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_reach.contract.load import load
from agent_reach.errors import ContractError, Finding

if TYPE_CHECKING:
    from agent_reach.contract.model import Contract

CONTRACTS = {path.name: path.read_bytes() for path in (Path(__file__).parent / "C26").glob("*.yaml")}


def contract_of(name: str) -> Contract:
    return load(f"/srv/{name}", home="/home/alice", origin_name=name, data=CONTRACTS[name])


def findings_of(name: str) -> tuple[Finding, ...]:
    with pytest.raises(ContractError) as caught:
        contract_of(name)
    return caught.value.findings


@pytest.mark.parametrize(
    ("name", "line", "code", "key", "words"),
    [
        ("typo-top.yaml", 5, "E_UNKNOWN_KEY", "resuorces", ("did you mean `resources`?",)),
        ("typo-network.yaml", 5, "E_UNKNOWN_KEY", "resources.netwrok", ("did you mean `network`?",)),
        ("typo-nested.yaml", 5, "E_UNKNOWN_KEY", "resources.files[0].moed", ("did you mean `mode`?",)),
        ("typo-value.yaml", 5, "E_VALUE", "resources.files[0].mode", ("`raed`", "r, rb, w")),
        ("dup-top.yaml", 6, "E_DUPLICATE_KEY", "resources.network", ("`network`", "first on line 3")),
        ("dup-env.yaml", 6, "E_DUPLICATE_KEY", "resources.env.MODE", ("`MODE`", "first on line 4")),
        ("merge-dup.yaml", 8, "E_DUPLICATE_KEY", "resources.env.LEVEL", ("`LEVEL`", "first on line 7")),
        ("tab.yaml", 3, "E_TAB", "", ("tab",)),
        ("empty.yaml", 1, "E_EMPTY", "", ("empty",)),
        ("list.yaml", 1, "E_TYPE", "", ("expected a mapping",)),
        (
            "string-for-list.yaml",
            4,
            "E_TYPE",
            "resources.network.allow_outbound",
            ("expected a list", "example.com:443"),
        ),
        ("bad-alias.yaml", 4, "E_ALIAS", "resources.env.MODE", ("`nowhere`",)),
        ("two-docs.yaml", 3, "E_DOCUMENTS", "", ("more than one document",)),
    ],
)
def test_one_mistake_is_one_finding(name: str, line: int, code: str, key: str, words: tuple[str, ...]) -> None:
    (finding,) = findings_of(name)
    assert (finding.file, finding.line, finding.code, finding.key) == (name, line, code, key)
    assert str(finding).startswith(f"{name}:{line}:")
    for word in words:
        assert word in str(finding)


def test_row_6_an_own_key_beside_a_merged_one_wins() -> None:
    contract = contract_of("merge-ok.yaml")
    assert {grant.name: grant.default for grant in contract.env} == {"MODE": "b", "LEVEL": "1"}


def test_row_12_three_mistakes_are_three_findings_of_one_pass() -> None:
    findings = findings_of("bad-unit.yaml")
    assert [(finding.line, finding.key) for finding in findings] == [
        (3, "limits.wall"),
        (4, "limits.memory"),
        (5, "limits.processes"),
    ]


def test_row_15_byte_order_mark_and_carriage_returns_are_taken() -> None:
    (grant,) = contract_of("bom-crlf.yaml").env
    assert (grant.name, grant.default) == ("MODE", "bom")


def test_row_16_a_bomb_is_refused_before_it_grows() -> None:
    (finding,) = findings_of("bomb.yaml")
    assert finding.code == "E_ALIAS"
    assert "once its aliases are expanded" in finding.message


def test_row_16_within_200_megabytes_and_two_seconds() -> None:
    # Both bounds are the kernel's: RLIMIT_AS and RLIMIT_CPU.
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (200_000_000, 200_000_000))\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (2, 2))\n"
        "from agent_reach.contract.load import load\n"
        "from agent_reach.errors import ContractError\n"
        "try:\n"
        "    load('/srv/bomb.yaml', home='/', data=sys.stdin.buffer.read())\n"
        "except ContractError as error:\n"
        "    print(error.findings[0].code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=CONTRACTS["bomb.yaml"], capture_output=True, timeout=30, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"E_ALIAS\n", b"", 0)


def test_a_finding_never_shows_a_traceback() -> None:
    for name in sorted(set(CONTRACTS) - {"merge-ok.yaml", "bom-crlf.yaml"}):
        assert "Traceback" not in "\n".join(str(finding) for finding in findings_of(name))
