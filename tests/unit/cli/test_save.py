"""`--save`: what the command line grants, in the contract afterwards."""

from __future__ import annotations

import os

import pytest

from agent_reach.cli.options import UsageError
from agent_reach.cli.save import save
from agent_reach.contract import load
from agent_reach.errors import ContractError
from agent_reach.host.model import Caller
from agent_reach.prepare import Request

HOME = "/home/alice"


def caller(cwd) -> Caller:
    return Caller(os.geteuid(), os.getegid(), "alice", HOME, str(cwd), 0o22)


def saved(cwd, text: str | None, *, profile: str | None = None, target: str = "job.py", **grants: tuple[str, ...]):
    """Save grants into a contract of that text and return the new text."""
    path = cwd / "reach.yaml"
    if text is not None:
        path.write_text(text)
    asked = Request("script", target, profile=profile, **grants)
    contract = load.load(str(path), profile=profile, home=HOME) if text is not None else load.empty()
    contract = load.with_cli_grants(contract, **grants, cwd=str(cwd), home=HOME)
    save(asked, contract, caller(cwd))
    return (path if text is not None else cwd / "job.reach.yaml").read_text()


def test_every_kind_of_grant_is_written(tmp_path) -> None:
    text = saved(
        tmp_path,
        'version: "1"\nresources:\n  files: []\n',
        read=("data/in.csv", "/etc/hostname"),
        write=("out/",),
        net=("db.internal:5432",),
        passes=("LANG",),
        commands=("git",),
        limits=("wall=10m", "io.read=3MB"),
    )
    for line in (
        "    - {path: ./data/in.csv, mode: r}\n    - {path: /etc/hostname, mode: r}\n    - {path: ./out/, mode: w}\n",
        "- {host: db.internal, port: 5432}\n",
        "- {name: LANG}\n",
        "- git\n",
        "  wall: 10m\n",
        "read: 3MB\n",
    ):
        assert line in text
    again = load.load(str(tmp_path / "reach.yaml"), home=HOME)
    assert [(grant.path, grant.mode) for grant in again.files] == [
        (f"{tmp_path}/data/in.csv", "r"),
        ("/etc/hostname", "r"),
        (f"{tmp_path}/out", "w"),
    ]


def test_what_is_granted_already_is_not_written_again(tmp_path) -> None:
    text = 'version: "1"\nresources:\n  files: [{path: a, mode: rw}]\n  commands: [git]\n'
    assert saved(tmp_path, text, read=("a",), commands=("git",)) == text


def test_the_chosen_profile_gets_the_entry(tmp_path) -> None:
    text = 'version: "1"\nprofiles:\n  dev: {resources: {commands: [sh]}}\n  prod: {resources: {commands: [tar]}}\n'
    after = saved(tmp_path, text, profile="prod", commands=("git",))
    assert "dev: {resources: {commands: [sh]}}" in after
    assert "prod: {resources: {commands: [git, tar]}}" in after


def test_variables_of_a_mapping_get_a_key(tmp_path) -> None:
    after = saved(tmp_path, 'version: "1"\nresources:\n  env:\n    A: b\n', passes=("LANG",))
    assert after.endswith("  env:\n    LANG: {}\n    A: b\n")


def test_without_a_contract_one_is_written_beside_the_script(tmp_path) -> None:
    text = saved(tmp_path, None, commands=("git",))
    assert text.startswith("# What job.py may reach.")
    assert [grant.name for grant in load.load(str(tmp_path / "job.reach.yaml"), home=HOME).commands] == ["git"]


def test_names_that_yaml_reads_otherwise_are_quoted(tmp_path) -> None:
    text = saved(tmp_path, 'version: "1"\n', read=("a, b: {c}", "*x y"[1:]))
    assert '- {path: "./a, b: {c}", mode: r}' in text


def test_another_mode_is_the_authors_to_decide(tmp_path) -> None:
    text = 'version: "1"\nresources:\n  files: [{path: a, mode: r}]\n'
    with pytest.raises(ContractError, match="adds entries and changes none"):
        saved(tmp_path, text, write=("a",))
    assert (tmp_path / "reach.yaml").read_text() == text


def test_a_shared_block_is_not_changed(tmp_path) -> None:
    text = 'version: "1"\nx-c: &c [sh]\nresources:\n  commands: *c\n'
    with pytest.raises(ContractError, match="add it yourself:  - git"):
        saved(tmp_path, text, commands=("git",))
    assert (tmp_path / "reach.yaml").read_text() == text


def test_the_file_keeps_its_mode_and_no_scratch_stays(tmp_path) -> None:
    (tmp_path / "reach.yaml").touch(mode=0o600)
    saved(tmp_path, 'version: "1"\n', commands=("git",))
    assert (tmp_path / "reach.yaml").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["reach.yaml"]


def test_a_contract_from_a_descriptor_cannot_be_saved_to(tmp_path) -> None:
    with pytest.raises(UsageError, match="came from a descriptor"):
        save(Request("script", "job.py", contract_data=b""), load.empty(), caller(tmp_path))


def test_a_contract_inside_a_script_is_the_authors_to_change(tmp_path) -> None:
    script = tmp_path / "job.py"
    script.write_text('# /// script\n# [tool.reach]\n# version = "1"\n# ///\n')
    contract = load.load(str(script), home=HOME, data=load.inline(str(script)))
    with pytest.raises(UsageError, match="does not write into a script"):
        save(Request("script", "./job.py", commands=("sh",)), contract, caller(tmp_path))
