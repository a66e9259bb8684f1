from __future__ import annotations

import pytest

from agent_reach.contract.load import with_cli_grants
from agent_reach.contract.model import CommandGrant, Contract, EnvGrant, FileGrant, Limit, NetRule, Origin
from agent_reach.errors import ContractError
from unit.contract.support import HOME, loaded

CLI = Origin("cli")


def added(contract: Contract, **grants: tuple[str, ...]) -> Contract:
    return with_cli_grants(contract, cwd="/srv/job", home=HOME, **grants)  # type: ignore[arg-type]


def code_of(contract: Contract, **grants: tuple[str, ...]) -> str:
    with pytest.raises(ContractError) as caught:
        added(contract, **grants)
    (finding,) = caught.value.findings
    assert finding.file == "cli"
    return finding.code


def test_nothing_added_changes_nothing() -> None:
    contract = loaded("")
    assert with_cli_grants(contract) is contract


def test_each_addition_has_the_origin_cli() -> None:
    contract = added(
        loaded(""),
        read=("in.csv", "~/x/"),
        write=("out/",),
        net=("DB.internal:5432",),
        passes=("TOKEN", "GITHUB_*"),
        commands=("git",),
        limits=("memory=1GiB", "io.read=1MiB"),
    )
    assert contract.files == (
        FileGrant("/srv/job/in.csv", "r", origin=CLI),
        FileGrant("/home/alice/x", "r", directory=True, origin=CLI),
        FileGrant("/srv/job/out", "w", directory=True, origin=CLI),
    )
    assert contract.network == (NetRule("db.internal", 5432, "tcp", CLI),)
    assert contract.env == (EnvGrant("TOKEN", origin=CLI), EnvGrant("GITHUB_*", origin=CLI))
    assert contract.commands == (CommandGrant("git", origin=CLI),)
    assert dict(contract.limits) == {"memory": Limit(2**30, origin=CLI), "io_read": Limit(2**20, origin=CLI)}


@pytest.mark.parametrize(
    ("have", "read", "write", "mode"),
    [
        ("r", True, False, "r"),
        ("r", False, True, "rw"),
        ("w", True, False, "rw"),
        ("w", False, True, "w"),
        ("a", False, True, "w"),
        ("rw", True, True, "rw"),
        ("r+", True, False, "r+"),
        ("rb", True, False, "rb"),
    ],
)
def test_grants_only_add(have: str, read: bool, write: bool, mode: str) -> None:
    contract = loaded(f"resources: {{files: [{{path: /x, mode: {have}, required: true}}]}}\n")
    (grant,) = added(contract, read=("/x",) if read else (), write=("/x",) if write else ()).files
    assert grant.mode == mode
    assert grant.required
    assert (grant.origin == CLI) is (mode != have)


def test_reading_beside_appending_has_no_mode() -> None:
    contract = loaded("resources: {files: [{path: /x, mode: a}]}\n")
    assert code_of(contract, read=("/x",)) == "E_VALUE"


def test_a_staged_file_stays_read_only() -> None:
    contract = loaded("resources: {files: [{path: /x, source: 'https://e.com/x'}]}\n")
    assert code_of(contract, write=("/x",)) == "E_VALUE"


@pytest.mark.parametrize(
    ("option", "text", "code"),
    [
        ("read", "${X}", "E_PATH"),
        ("write", "*.csv", "E_PATH"),
        ("net", "db.internal", "E_VALUE"),
        ("net", "db.internal:0", "E_VALUE"),
        ("net", "db.internal:080", "E_VALUE"),
        ("net", "db.internal:99999", "E_VALUE"),
        ("net", "127.1:80", "E_HOST"),
        ("net", "*:443", "E_NOT_YET"),
        ("net", "[::1]:443", "E_NOT_YET"),
        ("passes", "A=b", "E_VALUE"),
        ("passes", "1A", "E_VALUE"),
        ("commands", "/bin/ls", "E_VALUE"),
        ("limits", "memory", "E_VALUE"),
        ("limits", "memory=5", "E_UNIT"),
        ("limits", "memroy=5MiB", "E_UNKNOWN_KEY"),
        ("limits", "connections=5", "E_UNKNOWN_KEY"),
    ],
)
def test_what_cannot_be_added(option: str, text: str, code: str) -> None:
    assert code_of(loaded(""), **{option: (text,)}) == code


def test_a_value_behind_pass_is_not_repeated() -> None:
    with pytest.raises(ContractError) as caught:
        added(loaded(""), passes=("TOKEN=s3cret",))
    assert "s3cret" not in str(caught.value)


def test_all_findings_at_once() -> None:
    with pytest.raises(ContractError) as caught:
        added(loaded(""), net=("x",), limits=("y",))
    assert [finding.key for finding in caught.value.findings] == ["--net", "--limit"]
