"""init, check, schema, version, completion: run in this process, they need no kernel."""

from __future__ import annotations

import json

import pytest

import agent_reach
from agent_reach.cli import main
from agent_reach.contract.load import load


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("REACH_ENV", raising=False)
    return tmp_path


def test_version(capsys) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"reach {agent_reach.__version__}\n"
    assert main(["--version"]) == 0
    assert main(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.split("\n")[-2])["reach"] == agent_reach.__version__


def test_schema_is_json(capsys) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "reach contract"


def test_init_writes_a_contract_that_loads_and_grants_nothing(tmp_path, capfd) -> None:
    (tmp_path / "job.py").touch()
    assert main(["init", "job.py"]) == 0
    contract = load(str(tmp_path / "job.reach.yaml"), home="/home/alice")
    assert (contract.files, contract.env, contract.network, contract.commands) == ((), (), (), ())
    assert "wrote job.reach.yaml" in capfd.readouterr().err


def test_init_without_a_script_writes_reach_yaml(tmp_path) -> None:
    assert main(["init"]) == 0
    assert (tmp_path / "reach.yaml").is_file()


def test_init_never_overwrites(tmp_path, capfd) -> None:
    (tmp_path / "reach.yaml").write_text("mine")
    (tmp_path / "link.yaml").symlink_to("nowhere")
    assert main(["init"]) == 1
    assert main(["init", "--output", "link.yaml"]) == 1
    assert (tmp_path / "reach.yaml").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    assert "exists and stays as it is" in capfd.readouterr().err


def test_init_to_standard_output_writes_no_file(tmp_path, capsys) -> None:
    assert main(["init", "--output", "-"]) == 0
    assert 'version: "1.0"' in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_init_for_a_script_that_is_not_there(capfd) -> None:
    assert main(["init", "nope.py"]) == 2
    assert "there is no file nope.py" in capfd.readouterr().err


CLEAN = 'version: "1"\nresources:\n  files: [{path: out/, mode: rw}]\n'


def test_check_of_a_clean_contract(tmp_path, capfd) -> None:
    (tmp_path / "reach.yaml").write_text(CLEAN)
    assert main(["check"]) == 0
    assert capfd.readouterr().out == "reach.yaml: clean\n"


def test_check_finds_what_can_be_used_but_surprises(tmp_path, capfd) -> None:
    (tmp_path / "reach.yaml").write_text('version: "1"\nresources:\n  files:\n    - {path: a.db, mode: rw}\n')
    assert main(["check"]) == 1
    out = capfd.readouterr().out
    assert out.startswith("reach.yaml:4: `resources.files`:")
    assert "[W_SINGLE_FILE]" in out
    assert "grant the directory" in out
    assert out.endswith("reach.yaml: usable, 1 finding\n")


@pytest.mark.parametrize("entry", ["{path: a.db, mode: a}", "{path: a.db, mode: r}", "{path: sub, mode: rw}"])
def test_check_says_nothing_of_appending_reading_and_directories(entry, tmp_path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "reach.yaml").write_text(f'version: "1"\nresources:\n  files:\n    - {entry}\n')
    assert main(["check"]) == 0


@pytest.mark.parametrize("path", ["/", "~/"])
def test_check_warns_of_grants_of_everything(path, tmp_path, capfd) -> None:
    (tmp_path / "reach.yaml").write_text(f'version: "1"\nresources:\n  files:\n    - {{path: {path}, mode: r}}\n')
    assert main(["check"]) == 1
    assert "[W_WIDE]" in capfd.readouterr().out


def test_check_of_a_contract_that_cannot_be_used_shows_all_findings(tmp_path, capfd) -> None:
    (tmp_path / "reach.yaml").write_text('version: "1"\nresources:\n  filez: []\n  commands: 3\n')
    assert main(["check"]) == 2
    out = capfd.readouterr().out
    assert (
        "reach.yaml:3:3: `resources.filez`: `filez` is not a key here [E_UNKNOWN_KEY]\n    did you mean `files`?\n"
        in out
    )
    assert out.endswith("reach.yaml: cannot be used, 2 findings\n")


PROFILES = (
    'version: "1"\nprofiles:\n  dev: {resources: {commands: [sh]}}\n'
    "  prod: {resources: {files: [{path: a.db, mode: rw}]}}\n"
)


def test_check_takes_every_profile_unless_one_is_named(tmp_path, capfd) -> None:
    (tmp_path / "reach.yaml").write_text(PROFILES)
    assert main(["check"]) == 1
    assert capfd.readouterr().out.endswith("reach.yaml: usable, 1 finding (profiles dev, prod)\n")
    assert main(["check", "--env", "dev"]) == 0
    assert main(["check", "--env", "nope"]) == 2


def test_reach_env_does_not_choose_what_is_checked(tmp_path, monkeypatch) -> None:
    (tmp_path / "reach.yaml").write_text(PROFILES)
    monkeypatch.setenv("REACH_ENV", "dev")
    assert main(["check"]) == 1


def test_check_for_machines(tmp_path, capfd) -> None:
    (tmp_path / "c.yaml").write_text(PROFILES)
    assert main(["check", "--format", "json", "c.yaml"]) == 1
    value = json.loads(capfd.readouterr().out)
    assert (value["contract"], value["profiles"], value["usable"]) == ("c.yaml", ["dev", "prod"], True)
    assert value["findings"][0]["code"] == "W_SINGLE_FILE"


def test_check_without_a_contract(capfd) -> None:
    assert main(["check"]) == 2
    assert "there is no contract here" in capfd.readouterr().err


def test_check_finds_the_contract_of_a_script(tmp_path, capfd) -> None:
    (tmp_path / "job.py").touch()
    (tmp_path / "job.reach.yaml").write_text(CLEAN)
    (tmp_path / "reach.yaml").write_text("version: 9\n")
    assert main(["check", "job.py"]) == 0
    assert capfd.readouterr().out == "job.reach.yaml: clean\n"


INLINE = '# /// script\n# [tool.reach]\n# version = "1"\n# [tool.reach.resources]\n# {}\n# ///\n'


def test_check_finds_the_contract_inside_a_script(tmp_path, capfd) -> None:
    (tmp_path / "job.py").write_text(INLINE.format('commands = ["sh"]'))
    (tmp_path / "reach.yaml").write_text("version: 9\n")
    assert main(["check", "job.py"]) == 0
    assert capfd.readouterr().out == "job.py: clean\n"


def test_check_shows_what_is_wrong_inside_a_script(tmp_path, capfd) -> None:
    (tmp_path / "job.py").write_text(INLINE.format("filez = []"))
    (tmp_path / "reach.yaml").write_text(CLEAN)
    assert main(["check", "job.py"]) == 2
    assert capfd.readouterr().out.startswith("job.py:4:3: `resources.filez`: `filez` is not a key here")
