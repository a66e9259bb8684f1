from __future__ import annotations

import pytest

from unit.contract.support import loaded, refusal, refused

TWO = "profiles: {dev: {resources: {env: {A: dev}}}, prod: {resources: {env: {A: prod}}}}\n"


def test_without_a_choice_and_without_resources_at_the_top_one_is_asked_for() -> None:
    finding = refusal(TWO)
    assert finding.code == "E_CHOICE"
    assert finding.message == "choose a profile: dev, prod (--env dev)"


def test_the_default_profile_is_used() -> None:
    assert loaded(f"default_profile: prod\n{TWO}").profile == "prod"
    assert loaded(f"default_profile: prod\n{TWO}", "dev").profile == "dev"


def test_a_default_profile_that_is_not_there() -> None:
    finding = refusal(f"default_profile: prdo\n{TWO}")
    assert (finding.code, finding.key, finding.hint) == ("E_VALUE", "default_profile", "did you mean `prod`?")
    assert refusal(f"default_profile: 5\n{TWO}", "dev").code == "E_TYPE"


def test_the_top_level_alone_when_it_has_resources() -> None:
    contract = loaded(f"resources: {{env: {{B: top}}}}\n{TWO}")
    assert (contract.profile, [grant.name for grant in contract.env]) == ("", ["B"])


def test_the_top_level_alone_when_there_are_no_profiles() -> None:
    assert loaded("identity: {name: x}\n").profile == ""


@pytest.mark.parametrize(
    ("profile", "word"),
    [
        ("pord", "did you mean `prod`?"),
        ("zzz", "choose a profile: dev, prod (--env dev)"),
        ("", "there is no profile"),
        ("FOO=bar", "--env names a profile; to pass a variable use --pass FOO"),
        ("x\x1b[31m", r"`x\x1b[31m`"),
    ],
)
def test_a_profile_that_is_not_there(profile: str, word: str) -> None:
    finding = refusal(TWO, profile)
    assert finding.code == "E_CHOICE"
    assert word in str(finding)


def test_the_value_of_a_variable_is_not_repeated() -> None:
    assert "s3cret" not in str(refusal(TWO, "TOKEN=s3cret"))


def test_free_blocks_cannot_be_run() -> None:
    assert "block for anchors" in refusal("base_x: {resources: {}}\n", "base_x").message


def test_a_wrong_choice_comes_with_the_other_findings() -> None:
    findings = refused("limits: {wall: 5}\n", "dev")
    assert {finding.code for finding in findings} == {"E_CHOICE", "E_UNIT"}


def test_targets_are_laid_last_in_their_order() -> None:
    text = (
        "resources: {env: {A: top}}\n"
        "targets:\n"
        "  one: {resources: {env: {A: one, B: one}}}\n"
        "  two: {resources: {env: {B: two}}, limits: {wall: 5s}}\n"
    )
    contract = loaded(text, targets=("one", "two"))
    assert {grant.name: grant.default for grant in contract.env} == {"A": "one", "B": "two"}
    assert contract.targets == ("one", "two")
    assert {grant.name: grant.default for grant in loaded(text, targets=("two", "one")).env}["B"] == "one"
    assert loaded(text).targets == ()
    finding = refusal(text, targets=("tow",))
    assert (finding.code, finding.hint) == ("E_CHOICE", "did you mean `two`?")


def test_a_target_may_drop_what_only_the_chosen_profile_has() -> None:
    text = f"{TWO}targets: {{bare: {{drop: {{env: [A]}}}}}}\n"
    assert loaded(text, "dev", ("bare",)).env == ()


def test_a_target_may_build_on_a_profile() -> None:
    text = f"{TWO}targets: {{plus: {{extends: prod, limits: {{wall: 5s}}}}}}\n"
    contract = loaded(text, "dev", ("plus",))
    assert [grant.default for grant in contract.env] == ["prod"]
    assert [name for name, _limit in contract.limits] == ["wall"]
    assert refusal("targets: {plus: {extends: prdo}}\n").code == "E_EXTENDS"


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("", 'add the line: version: "1.0"'),
        ("version: 2\n", "is unknown"),
        ("version: '1.'\n", "is unknown"),
        ("version: '1.x'\n", "is unknown"),
        ("version: 01\n", "is unknown"),
        ("version: [1]\n", "expected a version"),
        ("version: true\n", "expected a version"),
        ("version: '1.1'\n", "needs a reach newer than"),
        ("version: 1.10\n", "needs a reach newer than"),
    ],
)
def test_other_versions_are_refused(line: str, word: str) -> None:
    finding = refusal(f"{line}limits: {{}}\n".encode())
    assert finding.code == "E_VERSION"
    assert finding.line == 1
    assert word in str(finding)


@pytest.mark.parametrize("line", ["version: '1'", "version: '1.0'", "version: 1", "version: 1.0", "version: '1.00'"])
def test_versions_that_are_known(line: str) -> None:
    assert loaded(f"{line}\n".encode()).profile == ""


@pytest.mark.parametrize("data", [b"", b"\n# nothing\n", b"{}", b"---\n", b"null\n", b"~"])
def test_an_empty_document_grants_nothing_and_says_so(data: bytes) -> None:
    assert refusal(data).code == "E_EMPTY"


@pytest.mark.parametrize("data", [b"- env\n", b"text\n", b"5\n"])
def test_the_top_is_a_mapping(data: bytes) -> None:
    finding = refusal(data)
    assert (finding.code, finding.line) == ("E_TYPE", 1)
    assert "expected a mapping" in finding.message


def test_of_many_findings_the_first_hundred_are_shown() -> None:
    text = "resources:\n  env:\n" + "".join(f"    A{number}: 1.5\n" for number in range(500))
    *shown, last = refused(text)
    assert len(shown) == 100
    assert last.message == "400 more findings are not shown"


def test_the_product_of_size_and_profiles_is_bounded() -> None:
    entries = "".join(f"    A{number}: {'x' * 100}\n" for number in range(1000))
    profiles = "".join(f"  p{number}: {{limits: {{wall: 5s}}}}\n" for number in range(60))
    finding = refusal(f"resources:\n  env:\n{entries}profiles:\n{profiles}")
    assert (finding.code, finding.message) == ("E_SIZE", "the contract has too many profiles for its size")
    assert len(loaded(f"resources:\n  env:\n{entries}").env) == 1000
