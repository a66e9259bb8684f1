"""Order of source, default and failure; exact messages; all failures at once; no value in any of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agent_reach.contract.model import EnvGrant, Origin
from agent_reach.errors import ProviderError
from agent_reach.providers.resolve import resolve_env


@pytest.fixture
def resolve(tmp_path):
    """Resolve grants against an environment, with a home directory of the test's own."""
    home = tmp_path / "home"
    home.mkdir()

    def call(*grants, env=None, **more):
        return resolve_env(grants, caller_env=env or {}, home=str(home), contract_dir=str(tmp_path), **more)

    return call


def problems(resolve, *grants, env=None):
    with pytest.raises(ProviderError) as caught:
        resolve(*grants, env=env)
    return caught.value.problems


def test_default_without_source_is_the_value_and_the_caller_does_not_override_it(resolve):
    assert resolve(EnvGrant("TZ", default="UTC"), env={"TZ": "Asia/Shanghai"}).values == {"TZ": "UTC"}


def test_source_comes_before_default(resolve):
    grant = EnvGrant("TZ", source="env://TZ", default="UTC")
    assert resolve(grant, env={"TZ": "Asia/Shanghai"}).values == {"TZ": "Asia/Shanghai"}
    assert resolve(grant, env={}).values == {"TZ": "UTC"}


def test_empty_counts_as_missing(resolve):
    grant = EnvGrant("LOG_LEVEL", source="env://L", default="info")
    assert resolve(grant, env={"L": ""}).values == {"LOG_LEVEL": "info"}
    assert resolve(grant.replace(allow_empty=True), env={"L": ""}).values == {"LOG_LEVEL": ""}


def test_an_undeclared_name_is_absent_and_an_optional_one_too(resolve):
    resolved = resolve(EnvGrant("OPTIONAL", source="env://NOT_THERE"), EnvGrant("PASSED"), env={"OTHER": "x"})
    assert resolved.values == {}


def test_pass_through(resolve):
    resolved = resolve(
        EnvGrant("A"), EnvGrant("B"), EnvGrant("E"), EnvGrant("F", allow_empty=True), env={"A": "1", "E": "", "F": ""}
    )
    assert resolved.values == {"A": "1", "F": ""}
    assert resolved.injected == (("A", "env://A"), ("F", "env://F"))


def test_pass_through_by_prefix(resolve):
    env = {"GITHUB_SHA": "abc", "GITHUB_TOKEN": "t", "GITHUBX": "no", "HOME": "/h"}
    resolved = resolve(EnvGrant("GITHUB_*"), EnvGrant("GITHUB_TOKEN", default="mine"), env=env)
    assert resolved.values == {"GITHUB_SHA": "abc", "GITHUB_TOKEN": "mine"}


def test_passes_of_the_command_line(resolve):
    resolved = resolve(EnvGrant("A", default="1"), env={"A": "2", "C_X": "3"}, cli_passes=("A", "C_*"))
    assert resolved.values == {"A": "2", "C_X": "3"}


def test_exact_message_without_source(resolve):
    assert problems(resolve, EnvGrant("DB_NAME", required=True)) == (
        "Missing required environment variable DB_NAME (not set by the caller)",
    )


def test_set_but_empty_without_source(resolve):
    (problem,) = problems(resolve, EnvGrant("DB_NAME", required=True), env={"DB_NAME": ""})
    assert problem == "Missing required environment variable DB_NAME (set by the caller, but empty)"


def test_all_failures_at_once_in_order(resolve, tmp_path):
    found = problems(
        resolve,
        EnvGrant("A_UNSET", source="env://CASE_NOT_THERE", required=True),
        EnvGrant("B_BLANK", source="env://CASE_BLANK", required=True),
        EnvGrant("FINE", source="env://FINE"),
        EnvGrant("H_NOFILE", source="file://./secrets/none", required=True),
        EnvGrant("I_SCHEME", source="valt://a/b", required=True),
        EnvGrant("J_URI", source="env://${X}", required=True),
        EnvGrant("DB_NAME", required=True),
        env={"CASE_BLANK": "", "FINE": "ok"},
    )
    start = "Missing required environment variable "
    assert found == (
        start + "A_UNSET from env://CASE_NOT_THERE: CASE_NOT_THERE is not set",
        start + "B_BLANK from env://CASE_BLANK: CASE_BLANK is set but empty",
        start + f"H_NOFILE from file://./secrets/none: no such file: {tmp_path}/secrets/none",
        start + "I_SCHEME from valt://a/b: no provider serves valt://; vault:// exists",
        start + "J_URI from env://${X}: ${…} is not expanded; write the name itself",
        start + "DB_NAME (not set by the caller)",
    )


def test_a_source_that_cannot_answer_never_falls_back(resolve, tmp_path):
    (tmp_path / "dir").mkdir()
    (problem,) = problems(resolve, EnvGrant("X", source="file://dir", default="fallback"))
    assert problem == f"Cannot resolve environment variable X from file://dir: {tmp_path}/dir: not a regular file"
    assert resolve(EnvGrant("X", source="file://none", default="fallback")).values == {"X": "fallback"}


def test_relative_paths_belong_to_the_declaring_document(resolve, tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "s").write_text("from-base\n")
    (tmp_path / "s").write_text("from-contract\n")
    origin = Origin(file=str(tmp_path / "base" / "reach.base.yaml"), line=3)
    resolved = resolve(EnvGrant("A", source="file://./s", origin=origin), EnvGrant("B", source="file://./s"))
    assert resolved.values == {"A": "from-base", "B": "from-contract"}


def test_a_value_is_never_read_as_a_reference(resolve):
    tricky = {"A": "env://SECRET", "B": "${SECRET}", "C": "{SECRET}", "SECRET": "s3cret"}
    resolved = resolve(*(EnvGrant(name, source=f"env://{name}") for name in "ABC"), env=tricky)
    assert resolved.values == {name: tricky[name] for name in "ABC"}


def test_template_by_plain_replacement_once(resolve):
    resolved = resolve(
        EnvGrant("USER_NAME", default="u"),
        EnvGrant("DB_PASS", source="env://P"),
        EnvGrant("DSN", template="postgres://{USER_NAME}:{DB_PASS}@db/x"),
        EnvGrant("JSON", template='{"p": "{DB_PASS}", "n": {}, "c": "{0.__class__}"}'),
        env={"P": "{USER_NAME}%s{0}"},
    )
    assert resolved.values["DSN"] == "postgres://u:{USER_NAME}%s{0}@db/x"
    assert resolved.values["JSON"] == '{"p": "{USER_NAME}%s{0}", "n": {}, "c": "{0.__class__}"}'
    assert ("DSN", "template") in resolved.injected


def test_template_with_a_missing_name(resolve):
    optional = EnvGrant("P", source="env://P")
    assert "DSN" not in resolve(optional, EnvGrant("DSN", template="x{P}")).values
    (problem,) = problems(resolve, optional, EnvGrant("DSN", template="x{P}", required=True))
    assert problem == "Missing required environment variable DSN: its template names P, which has no value"
    (problem,) = problems(resolve, EnvGrant("DSN", template="x{TYPO}"))
    assert problem == "Cannot resolve environment variable DSN: its template names TYPO, which is not in resources.env"


def test_deliver_file_keeps_every_byte_and_value_drops_the_line_end(resolve, tmp_path):
    (tmp_path / "ca.pem").write_bytes(b"-----BEGIN\x00\xff\n\n")
    (tmp_path / "s").write_bytes(b"pw \n")
    resolved = resolve(EnvGrant("CA", source="file://ca.pem", deliver="file"), EnvGrant("S", source="file://s"))
    assert resolved.files == {"CA": b"-----BEGIN\x00\xff\n\n"}
    assert resolved.values == {"S": "pw "}


def test_what_execve_cannot_pass_is_refused_before(resolve, tmp_path):
    (tmp_path / "nul").write_bytes(b"a\0b")
    (tmp_path / "long").write_bytes(b"x" * 200_000)
    nul, long = problems(resolve, EnvGrant("N", source="file://nul"), EnvGrant("L", source="file://long"))
    assert nul.endswith("the value has a NUL byte, which no variable can hold; use deliver: file")
    assert "the kernel passes at most 131072" in long
    (tmp_path / "fits").write_bytes(b"x" * (131072 - 3))
    assert subprocess.run(["true"], env=resolve(EnvGrant("L", source="file://fits")).values, check=True).returncode == 0


def test_bytes_that_are_not_utf8_arrive_unchanged(resolve, tmp_path):
    (tmp_path / "raw").write_bytes(b"\xff\xfe")
    assert os.fsencode(resolve(EnvGrant("R", source="file://raw")).values["R"]) == b"\xff\xfe"


def test_repr_of_the_result_shows_no_value(resolve):
    resolved = resolve(EnvGrant("A", source="env://A"), env={"A": "s3cret-value"})
    assert "s3cret-value" not in repr(resolved)
    assert "'A'" in repr(resolved)


def test_fields_of_a_json_file(resolve, tmp_path):
    (tmp_path / "s.json").write_text('{"user": "u", "port": 5432, "big": 1e400, "on": true, "no": null, "in": {}}')
    resolved = resolve(*(EnvGrant(key.upper(), source=f"file://s.json#{key}") for key in ("user", "port", "big", "on")))
    assert resolved.values == {"USER": "u", "PORT": "5432", "BIG": "1e400", "ON": "true"}
    null, nested, typo = problems(
        resolve, *(EnvGrant(key.upper(), source=f"file://s.json#{key}", required=True) for key in ("no", "in", "usr"))
    )
    assert null.endswith("s.json` is null")
    assert nested.endswith("is a list or an object, not one value")
    assert typo.endswith("; it has `user`")


CHEAP = """\
import sys
from agent_reach.contract.model import EnvGrant
from agent_reach.providers.resolve import resolve_env
grants = (
    EnvGrant("A", source="env://PATH"),
    EnvGrant("B", default="1"),
    EnvGrant("T", template="{{B}}"),
    EnvGrant("C", source="file://s"),
)
resolved = resolve_env(grants, caller_env={{"PATH": "/bin"}}, home={home!r}, contract_dir={home!r})
assert resolved.values == {{"A": "/bin", "B": "1", "C": "x", "T": "1"}}, resolved
heavy = "threading json re typing socket subprocess enum dataclasses yaml collections importlib.metadata"
print(sorted(set(heavy.split()) & set(sys.modules)))
"""


def test_cheap_contracts_import_nothing_heavy(tmp_path):
    (tmp_path / "s").write_text("x")
    code = CHEAP.format(home=str(tmp_path))
    # -S: what site-packages import by .pth files is not ours
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
