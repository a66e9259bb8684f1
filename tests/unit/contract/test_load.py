from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_reach.contract.load import choose_profile, empty, load
from agent_reach.errors import ContractError
from unit.contract.support import HOME, VERSION, loaded

if TYPE_CHECKING:
    from pathlib import Path

TEXT = f"{VERSION}profiles: {{dev: {{resources: {{env: {{A: dev}}}}}}, prod: {{resources: {{env: {{A: prod}}}}}}}}\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "reach.yaml"
    file.write_text(TEXT)
    file.chmod(0o644)
    return str(file)


def test_cold_and_warm_are_the_same(path: str, tmp_path: Path) -> None:
    where = str(tmp_path / "cache")
    plain = load(path, profile="dev", home=HOME)
    assert load(path, profile="dev", home=HOME, cache_dir=where) == plain
    assert load(path, profile="dev", home=HOME, cache_dir=where) == plain
    assert len(os.listdir(where)) == 1


def test_the_cache_tells_profile_home_path_and_content_apart(path: str, tmp_path: Path) -> None:
    where = str(tmp_path / "cache")
    assert load(path, profile="dev", home=HOME, cache_dir=where).env[0].default == "dev"
    assert load(path, profile="prod", home=HOME, cache_dir=where).env[0].default == "prod"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{VERSION}dev: {{resources: {{files: [{{path: ~/x}}]}}}}\n")
    assert load(path, profile="dev", home="/home/a", cache_dir=where).files[0].path == "/home/a/x"
    assert load(path, profile="dev", home="/home/b", cache_dir=where).files[0].path == "/home/b/x"
    with pytest.raises(ContractError):
        load(path, profile="prod", home=HOME, cache_dir=where)


def test_a_wrong_contract_is_wrong_every_time(path: str, tmp_path: Path) -> None:
    where = str(tmp_path / "cache")
    for _again in range(2):
        with pytest.raises(ContractError, match="choose a profile"):
            load(path, home=HOME, cache_dir=where)


def test_a_relative_path_is_shown_as_written(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.path.dirname(path))
    with pytest.raises(ContractError) as caught:
        load("./reach.yaml", profile="x", home=HOME)
    assert caught.value.findings[0].file == "./reach.yaml"
    assert load("./reach.yaml", profile="dev", home=HOME).path == path


def test_content_that_was_read_already() -> None:
    contract = loaded("resources: {files: [{path: ./x}]}\n", path="/somewhere/fd-3")
    assert contract.files[0].path == "/somewhere/x"
    assert contract.files[0].origin.file == "/somewhere/fd-3"


@pytest.mark.parametrize("kind", ["absent", "directory", "pipe", "writable"])
def test_what_cannot_be_believed_is_refused(path: str, kind: str) -> None:
    if kind == "writable":
        os.chmod(path, 0o646)
    else:
        os.unlink(path)
    if kind == "directory":
        os.mkdir(path)
    if kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(ContractError) as caught:
        load(path, profile="dev", home=HOME)
    (finding,) = caught.value.findings
    assert finding.code == ("E_PERMISSIONS" if kind == "writable" else "E_FILE")
    assert finding.file == path


def test_no_contract_grants_nothing() -> None:
    contract = empty("/srv/x.py")
    assert contract.path == "/srv/x.py"
    assert not (contract.files)
    assert not (contract.env)
    assert not (contract.network)
    assert not (contract.commands)
    assert contract.digest == ""


def test_the_profile_of_the_environment_is_second_and_reported() -> None:
    assert choose_profile("dev", {"REACH_ENV": "prod"}) == ("dev", "")
    assert choose_profile(None, {"REACH_ENV": "prod"}) == ("prod", "profile prod from REACH_ENV")
    assert choose_profile(None, {"REACH_ENV": ""}) == (None, "")
    assert choose_profile(None, {}) == (None, "")
