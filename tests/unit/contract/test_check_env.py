from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.contract.support import loaded, refusal

if TYPE_CHECKING:
    from agent_reach.contract.model import EnvGrant


def env(text: str) -> dict[str, EnvGrant]:
    return {grant.name: grant for grant in loaded(f"resources:\n  env:\n{text}").env}


def one(text: str) -> EnvGrant:
    (grant,) = env(f"    - {text}\n").values()
    return grant


def refusal_of(text: str) -> tuple[str, str, str]:
    finding = refusal(f"resources:\n  env:\n    - {text}\n")
    return finding.code, finding.key, str(finding)


def test_list_and_mapping_say_the_same() -> None:
    listed = env(
        "    - {name: A, default: x}\n    - {name: B, source: 'env://B'}\n    - {name: C}\n    - {name: 'G_*'}\n"
    )
    mapped = env("    A: x\n    B: {source: 'env://B'}\n    C: {}\n    'G_*': {}\n")
    bare = [
        {name: grant.replace(origin=one("{name: A}").origin) for name, grant in form.items()}
        for form in (listed, mapped)
    ]
    assert bare[0] == bare[1]


@pytest.mark.parametrize(
    ("text", "required"),
    [
        ("{name: A}", False),
        ("{name: A, default: x}", False),
        ("{name: A, required: true}", True),
        ("{name: A, source: 'env://A'}", True),
        ("{name: A, source: 'env://A', default: ''}", False),
        ("{name: A, source: 'env://A', required: false}", False),
        ("{name: A, source: 'env://A', default: x, required: true}", True),
    ],
)
def test_required(text: str, required: bool) -> None:
    assert one(text).required is required


def test_an_empty_default_is_a_default() -> None:
    assert one("{name: A, default: ''}").default == ""
    assert one("{name: A}").default is None


@pytest.mark.parametrize(
    ("written", "value"), [("5432", "5432"), ("0", "0"), ("-1", "-1"), ("'007'", "007"), ("no", "no"), ("1:30", "1:30")]
)
def test_values_are_text(written: str, value: str) -> None:
    assert one(f"{{name: A, default: {written}}}").default == value
    assert env(f"    A: {written}\n")["A"].default == value


@pytest.mark.parametrize("written", ["007", "3.10", "1e3", "true", "0x10", "+1", ".inf"])
def test_what_yaml_would_change_asks_for_quotes(written: str) -> None:
    code, key, text = refusal_of(f"{{name: A, default: {written}}}")
    assert (code, key) == ("E_TYPE", "resources.env[0].default")
    assert f'quote it: "{written}"' in text
    assert refusal(f"resources: {{env: {{A: {written}}}}}\n").hint == f'quote it: "{written}"'


def test_nothing_is_not_a_value() -> None:
    finding = refusal("resources:\n  env:\n    A:\n")
    assert (finding.code, finding.key) == ("E_TYPE", "resources.env.A")
    assert "write {} to pass it through" in finding.hint


def test_prefixes_pass_through_and_have_no_value() -> None:
    assert one("{name: 'GITHUB_*'}").name == "GITHUB_*"
    for extra in ("default: x", "source: 'env://A'", "template: '{A}'"):
        assert refusal_of(f"{{name: 'G_*', {extra}}}\n    - {{name: A}}")[0] == "E_VALUE"


@pytest.mark.parametrize("name", ["1A", "A-B", "A B", "'*'", "'A*B'", "''", "ÄÖ", '"A\\0"', "A=b"])
def test_names(name: str) -> None:
    assert refusal_of(f"{{name: {name}}}")[0] == "E_VALUE"


@pytest.mark.parametrize("source", ["vault", "'://x'", "'env://'", "'env://${X}'", "'a b://x'"])
def test_sources(source: str) -> None:
    assert refusal_of(f"{{name: A, source: {source}}}")[:2] == ("E_VALUE", "resources.env[0].source")


@pytest.mark.parametrize(
    ("name", "deliver"),
    [
        ("PGSSLROOTCERT", "file"),
        ("PGSSLKEY", "file"),
        ("PGSSLMODE", "value"),
        ("REQUESTS_CA_BUNDLE", "file"),
        ("SSL_CERT_FILE", "file"),
        ("KUBECONFIG", "file"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "file"),
        ("POSTGRES_PASSWORD_FILE", "file"),
        ("DB_PASS", "value"),
    ],
)
def test_what_a_file_source_delivers(name: str, deliver: str) -> None:
    assert one(f"{{name: {name}, source: 'file:///x'}}").deliver == deliver
    assert one(f"{{name: {name}, source: 'env://X'}}").deliver == "value"
    assert one(f"{{name: {name}, source: 'env://X', deliver: file}}").deliver == "file"


def test_templates() -> None:
    template = 'postgres://u:{A}@db/x?{"a": {}}'
    assert env(f"    A: x\n    B: {{template: '{template}'}}\n")["B"].template == template


@pytest.mark.parametrize("template", ["{0.__class__}", "{A.b}", "{A-B}", "{}", "plain"])
def test_a_template_without_a_place_is_a_mistake(template: str) -> None:
    finding = refusal(f"resources:\n  env:\n    A: x\n    B: {{template: '{template}'}}\n")
    assert (finding.code, finding.key) == ("E_VALUE", "resources.env.B.template")


def test_a_template_names_what_is_there() -> None:
    assert "`MISSING`, which is not in `env`" in refusal("resources: {env: {B: {template: '{MISSING}'}}}\n").message
    text = "resources:\n  env:\n    A: {template: '{C}'}\n    C: x\n    B: {template: '{A}'}\n"
    assert "is a template itself" in refusal(text).message
    assert "has no `source`" in refusal("resources: {env: {A: {template: '{B}', default: y}, B: x}}\n").message


def test_a_template_may_use_what_a_farther_layer_declares() -> None:
    text = "resources: {env: {A: x}}\nprofiles: {dev: {resources: {env: {B: {template: '{A}'}}}}}\n"
    assert [grant.name for grant in loaded(text, "dev").env] == ["A", "B"]


def test_entries_twice() -> None:
    assert refusal_of("{name: A}\n    - {name: A, default: x}")[0] == "E_DUPLICATE_ENTRY"


def test_missing_and_unknown_keys() -> None:
    assert refusal_of("{default: x}")[0] == "E_MISSING"
    assert "did you mean `required`?" in refusal_of("{name: A, requird: true}")[2]
    assert refusal_of("DB_HOST")[0] == "E_TYPE"
    assert refusal("resources: {env: {A: {name: B}}}\n").code == "E_UNKNOWN_KEY"
