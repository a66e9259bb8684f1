from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_reach.contract.load import load
from agent_reach.errors import ContractError
from unit.contract.support import HOME, VERSION, loaded, refusal, refused

if TYPE_CHECKING:
    from pathlib import Path

    from agent_reach.contract.model import Contract
    from agent_reach.errors import Finding


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(VERSION + text, encoding="utf-8")
    path.chmod(0o644)
    return str(path)


def load_file(path: str, profile: str | None = None) -> Contract:
    return load(path, profile=profile, home=HOME)


def findings_of(path: str, profile: str | None = None) -> tuple[Finding, ...]:
    with pytest.raises(ContractError) as caught:
        load_file(path, profile)
    return caught.value.findings


def names(contract: Contract) -> dict[str, str | None]:
    return {grant.name: grant.default for grant in contract.env}


# -- which keys are profiles


def test_profiles_in_both_forms() -> None:
    text = "profiles: {dev: {resources: {env: {A: x}}}}\nprod: {resources: {env: {A: y}}}\n"
    assert names(loaded(text, "dev")) == {"A": "x"}
    assert names(loaded(text, "prod")) == {"A": "y"}
    assert loaded(text, "dev").env[0].origin.profile == "dev"
    assert loaded(text, "prod").env[0].origin.profile == "prod"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("resuorces: {env: {A: x}}", "did you mean `resources`?"),
        ("network: {allow_outbound: []}", "did you mean `resources.network`?"),
        ("netwrok: {allow_outbound: []}", "did you mean `resources.network`?"),
        ("versoin: '1'", "did you mean `version`?"),
        ("profile: {dev: {resources: {}}}", "did you mean `profiles`?"),
        ("zebra: {}", "is empty"),
        ("zebra: {a: 1}", "anchors may stand in `x-…` and `base_…`"),
        ("zebra: 1", "anchors may stand in"),
    ],
)
def test_anything_else_is_a_typing_mistake(text: str, hint: str) -> None:
    finding = refusal(f"{text}\n")
    assert (finding.code, finding.line) == ("E_UNKNOWN_KEY", 2)
    assert hint in finding.hint


def test_a_typing_mistake_in_a_profile_is_found_there() -> None:
    finding = refusal("dev: {identity: {name: x}, resuorces: {}}\n", "dev")
    assert (finding.key, finding.code) == ("dev.resuorces", "E_UNKNOWN_KEY")


def test_free_blocks_hold_anything() -> None:
    assert loaded("x-notes: {a: [1, 2, {b: c}]}\nbase_x: 5\n").env == ()


def test_a_profile_has_one_definition_and_a_plain_name() -> None:
    assert refusal("profiles: {dev: {limits: {}}}\ndev: {limits: {}}\n", "dev").code == "E_DUPLICATE_KEY"
    assert refusal("profiles: {'a.b': {limits: {}}, dev: {limits: {}}}\n", "dev").code == "E_VALUE"
    assert refusal("profiles: [dev]\n").code == "E_TYPE"
    assert refusal("profiles: {dev: 5}\n").code == "E_TYPE"


def test_the_number_of_profiles_is_bounded() -> None:
    many = "".join(f"  p{number}: {{limits: {{wall: 5s}}}}\n" for number in range(80))
    assert refused(f"profiles:\n{many}", "p1")[0].code == "E_SIZE"


def test_every_profile_is_checked_not_only_the_chosen_one() -> None:
    text = "profiles:\n  dev: {limits: {wall: 5s}}\n  prod: {limits: {wall: 5}}\ntargets:\n  t: {limits: {cpus: x}}\n"
    assert [(finding.line, finding.code) for finding in refused(text, "dev")] == [(4, "E_UNIT"), (6, "E_VALUE")]


def test_a_mistake_in_an_inherited_block_is_said_once() -> None:
    text = "base_x: &x {limits: {wall: 5}}\ndev: {<<: *x}\nprod: {<<: *x}\n"
    finding = refusal(text, "dev")
    assert (finding.line, finding.key) == (2, "base_x.limits.wall")


# -- extends


def test_extends_names_profiles_and_later_is_nearer() -> None:
    text = (
        "profiles:\n"
        "  one: {resources: {env: {A: '1', B: '1'}}}\n"
        "  two: {resources: {env: {B: '2', C: '2'}}}\n"
        "  dev: {extends: [one, two], resources: {env: {C: dev}}}\n"
        "  prod: {extends: dev}\n"
    )
    assert names(loaded(text, "dev")) == {"A": "1", "B": "2", "C": "dev"}
    assert names(loaded(text, "prod")) == {"A": "1", "B": "2", "C": "dev"}


def test_what_two_profiles_share_is_laid_once() -> None:
    text = (
        "profiles:\n"
        "  root: {resources: {env: {A: root}}}\n"
        "  left: {extends: root, resources: {env: {A: left}}}\n"
        "  right: {extends: root}\n"
        "  dev: {extends: [left, right]}\n"
    )
    assert names(loaded(text, "dev")) == {"A": "left"}


def test_extends_takes_free_blocks() -> None:
    assert names(loaded("base_x: {resources: {env: {A: x}}}\ndev: {extends: base_x}\n", "dev")) == {"A": "x"}


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [
        ("dev: {extends: dev}", "E_EXTENDS", "builds on itself"),
        ("dev: {extends: prod}\nprod: {extends: dev}", "E_EXTENDS", "builds on itself"),
        ("dev: {extends: prdo}\nprod: {limits: {}}", "E_EXTENDS", "did you mean `prod`?"),
        ("dev: {extends: 5}", "E_TYPE", "expected the name"),
        ("dev: {extends: {a: b}}", "E_TYPE", "expected the name"),
    ],
)
def test_extends_that_leads_nowhere(text: str, code: str, word: str) -> None:
    findings = refused(f"{text}\n", "dev")
    assert {finding.code for finding in findings} == {code}
    assert word in str(findings[0])


def test_extends_takes_files_with_their_own_directory(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(
        tmp_path / "shared" / "base.yaml",
        "resources: {files: [{path: ./data/}]}\nprofiles: {prod: {resources: {env: {A: base, B: base}}}}\n",
    )
    main = write(
        tmp_path / "job" / "reach.yaml",
        "profiles:\n"
        "  dev:\n"
        "    extends: [../shared/base.yaml#prod]\n"
        "    resources: {env: {B: own}, files: [{path: ./data/}]}\n",
    )
    contract = load_file(main, "dev")
    assert [grant.path for grant in contract.files] == [str(tmp_path / "shared/data"), str(tmp_path / "job/data")]
    assert names(contract) == {"A": "base", "B": "own"}
    assert contract.files[0].origin.file == str(tmp_path / "shared/base.yaml")
    before = contract.digest
    write(tmp_path / "shared" / "base.yaml", "profiles: {prod: {resources: {env: {A: new}}}}\n")
    assert load_file(main, "dev").digest != before


def test_the_top_level_extends_a_file(tmp_path: Path) -> None:
    write(tmp_path / "base.yaml", "resources: {env: {A: base}}\nlimits: {wall: 5s}\n")
    main = write(tmp_path / "reach.yaml", "extends: ./base.yaml\nresources: {env: {B: own}}\n")
    contract = load_file(main)
    assert names(contract) == {"A": "base", "B": "own"}
    assert [name for name, _limit in contract.limits] == ["wall"]


def test_a_file_outside_the_repository_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "base.yaml", "limits: {wall: 5s}\n")
    (tmp_path / "job" / ".git").mkdir(parents=True)
    main = write(tmp_path / "job" / "reach.yaml", "extends: ../base.yaml\n")
    (finding,) = findings_of(main)
    assert (finding.code, finding.key) == ("E_EXTENDS", "extends")
    assert "out of the repository" in finding.message


def test_a_link_out_of_the_repository_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "base.yaml", "limits: {wall: 5s}\n")
    (tmp_path / "job" / ".git").mkdir(parents=True)
    (tmp_path / "job" / "base.yaml").symlink_to(tmp_path / "base.yaml")
    main = write(tmp_path / "job" / "reach.yaml", "extends: ./base.yaml\n")
    assert [finding.code for finding in findings_of(main)] == ["E_EXTENDS"]


def test_files_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "base.yaml", "extends: ./reach.yaml\n")
    main = write(tmp_path / "reach.yaml", "extends: ./base.yaml\n")
    assert "E_EXTENDS" in {finding.code for finding in findings_of(main)}


def test_a_mistake_in_another_file_is_shown_with_its_name(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path / "base.yaml", "limits: {wall: 5}\n")
    main = write(tmp_path / "job" / "reach.yaml", "extends: ../base.yaml\n")
    (finding,) = findings_of(main)
    assert finding.file == str(tmp_path / "base.yaml")
    assert (finding.line, finding.code) == (2, "E_UNIT")


def test_a_file_that_is_not_there_or_not_ours_is_refused(tmp_path: Path) -> None:
    main = write(tmp_path / "reach.yaml", "extends: ./base.yaml\n")
    assert [finding.code for finding in findings_of(main)] == ["E_FILE"]
    base = write(tmp_path / "base.yaml", "limits: {}\n")
    (tmp_path / "base.yaml").chmod(0o666)
    (finding,) = findings_of(main)
    assert (finding.code, finding.file) == ("E_PERMISSIONS", main)
    assert base in finding.message


def test_another_file_needs_its_own_version(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("limits: {wall: 5s}\n")
    main = write(tmp_path / "reach.yaml", "extends: ./base.yaml\n")
    assert [finding.code for finding in findings_of(main)] == ["E_VERSION"]


def test_the_root_may_merge(tmp_path: Path) -> None:
    assert names(loaded("x-a: &a {resources: {env: {A: x}}}\n<<: *a\n")) == {"A": "x"}
    both = "x-a: &a {resources: {env: {A: x}}}\n<<: *a\nresources: {env: {B: y}}\n"
    assert names(loaded(both)) == {"A": "x", "B": "y"}
    assert tmp_path.exists()
