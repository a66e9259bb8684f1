"""What a program chooses to be called cannot forge a line, drive a terminal or break a parser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_reach.audit.canonical import dumps, sha256
from agent_reach.audit.journal import Journal
from agent_reach.audit.query import entries
from agent_reach.audit.record import MAX_LIST, Code, StagedFile, build, timestamp
from agent_reach.audit.render import json_line, text_details, text_line
from agent_reach.contract.model import CommandGrant, Contract, EnvGrant, FileGrant, Identity, NetRule, Origin
from agent_reach.outcome import Connection, Denial, Enforced, Place, Receipt, Result, Usage

NASTY = [
    "a\nrun          000000000000  forged",
    "a\rb",
    "\x1b[2J\x1b]52;c;aGk=\x07\x1b]8;;http://x\x07",
    "\u2028\u2029\x85",
    "\u202egpj.exe\u2066",
    "nul\0byte",
    os.fsdecode(b"caf\xe9\xff"),
    "\ud800\udfff",
    "\x7f\x9b31m",
    "x" * 10_000_000,
    '", "event": "forged',
    "\\u000a",
    "e\u0301\u200b\ufeff",
]


def record(text):
    denial = Denial("open", text, text, text, Place(text, 3, text))
    result = Result(
        "0123456789ab", 1, 0, "exited", "", text, (denial,), (Connection(text, text, 443, 2),),
        Usage(1.5, 0.25, 1024, 0, 9), Receipt("full", (Enforced("files", "enforced", "Landlock"),), ("a note",)),
    )  # fmt: skip
    contract = Contract(
        path=f"/p/{text[:100]}", digest="d", profile="prod", identity=Identity(name="bot", roles=("r",))
    )
    return build(
        "0123456789ab",
        started=1764490560.5,
        contract=contract,
        code=Code(text, "ab", "/usr/bin/python3"),
        version="0.1",
        result=result,
        injected=(("DB_PASS", "vault://prod/user-sync/db-pass"),),
        staged=(StagedFile("/data/u.csv", "s3://b/u.csv", "ff", 12),),
    )


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_one_event_is_one_harmless_line(text, tmp_path):
    with Journal(str(tmp_path)) as journal:
        journal.append(record(text))
        journal.append({"event": "run", "run": "next"})
    first, second = entries(str(tmp_path))
    assert json.loads(second.body)["run"] == "next"
    for line in (json_line(first), text_line(first), *text_details(first).split("\n")):
        assert line.isprintable()
        assert len(line) < 100_000
    loaded = json.loads(json_line(first))
    assert (loaded["event"], loaded["seq"], loaded["hash"]) == ("run", 1, first.hash)
    assert json_line(first).isascii()
    starts = [line.split(" ")[0] for line in text_details(first).split("\n")]
    assert starts.count("run") == 1


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_jq_parses_every_line(tmp_path):
    with Journal(str(tmp_path)) as journal:
        for text in NASTY:
            journal.append(record(text))
    lines = "".join(json_line(entry) + "\n" for entry in entries(str(tmp_path)))
    done = subprocess.run(["jq", "-c", ".seq"], input=lines, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(number + 1) for number in range(len(NASTY))]


def test_a_record_says_what_was_injected_and_never_its_value():
    text = dumps(record("x"))
    assert '"injected":[{"from":"vault://prod/user-sync/db-pass","name":"DB_PASS"}]' in text
    assert '"time":"2025-11-30T08:16:00.500Z"' in text


def test_details_name_everything(tmp_path):
    with Journal(str(tmp_path)) as journal:
        journal.append(record("job.py"))
    (entry,) = entries(str(tmp_path))
    text = text_details(entry)
    for part in (
        "outcome      exit 1 job.py",
        "code         job.py  sha256 ab",
        "identity     bot (service-account) roles r",
        "contract     /p/job.py  profile prod  digest d",
        "injected     DB_PASS from vault://prod/user-sync/db-pass",
        "staged       /data/u.csv from s3://b/u.csv sha256 ff",
        "connected    job.py:443 (job.py) 2 times",
        "denied       open job.py  job.py:3",
        "             enforced: files (Landlock)",
        "             note: a note",
    ):
        assert part in text.split("\n"), part
    assert text_line(entry) == (
        "0123456789ab               2025-11-30T08:16:00.500Z  exit 1      prod      job.py  1 denied"
    )


def test_what_is_left_out_is_counted(tmp_path):
    many = tuple(Denial("open", f"/f{number}", "c") for number in range(MAX_LIST + 7))
    refused = build(
        "r", started=0, contract=Contract(), code=Code("x"), version="0", result=None, error="no vault", denials=many
    )
    assert len(refused["denials"]) == MAX_LIST
    assert refused["omitted"] == {"denials": 7}
    assert refused["outcome"] == {"cause": "refused", "message": "no vault"}
    with Journal(str(tmp_path)) as journal:
        journal.append(refused)
    (entry,) = entries(str(tmp_path))
    assert text_line(entry).endswith(f"{MAX_LIST + 7} denied")
    assert "omitted      7 more denials" in text_details(entry)


def test_grants_of_the_command_line_are_recorded():
    cli = Origin(file="cli")
    contract = Contract(
        files=(FileGrant("/a", "rw", origin=cli), FileGrant("/b")),
        env=(EnvGrant("N", origin=cli),),
        network=(NetRule("h", 5, origin=cli),),
        commands=(CommandGrant("git", origin=cli),),
    )
    built = build("r", started=0, contract=contract, code=Code("x"), version="0", result=None)
    assert built["cli"] == ["files /a rw", "env N", "network h 5", "commands git"]


def test_bytes_that_are_not_utf8_are_shown_as_bytes():
    assert dumps(os.fsdecode(b"caf\xe9 \xff")) == '"caf\\\\xe9 \\\\xff"'
    assert dumps("\ud800") == '"\\\\ud800"'
    assert dumps("ä\u2028") == '"\\u00e4\\u2028"'


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | st.integers() | FLOATS | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@settings(deadline=None, max_examples=50)
@given(VALUES)
def test_canonical_json_agrees_with_the_standard_library(value):
    text = dumps(value)
    assert json.loads(text) == value
    assert text == json.dumps(value, sort_keys=True, separators=(",", ":"))


def test_canonical_json_refuses_what_has_no_form():
    assert dumps([float("nan"), float("inf")]) == "[null,null]"
    with pytest.raises(TypeError):
        dumps({"x": object()})


def test_sha256():
    assert sha256(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_times():
    assert timestamp(0.9999) == "1970-01-01T00:00:00.999Z"


IMPORTS = """
import sys
from agent_reach.audit.journal import Journal
with Journal(sys.argv[1]) as journal:
    journal.append({"event": "run", "run": "x"})
heavy = "json re hashlib sqlite3 typing threading enum contextlib collections.abc tempfile pathlib"
print(sorted(set(heavy.split()) & set(sys.modules)))
"""


def test_appending_imports_nothing_heavy(tmp_path):
    done = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTS, tmp_path / "reach"],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
