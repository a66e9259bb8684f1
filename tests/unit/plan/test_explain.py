"""What `reach explain` says of a plan, and what it never says."""

from __future__ import annotations

import json

import pytest

from agent_reach.cli.explain import Page, amount_of
from agent_reach.cli.terminal import Paint
from agent_reach.contract.model import (
    CommandGrant,
    Contract,
    EnvGrant,
    FileGrant,
    Identity,
    Limit,
    NetRule,
    Origin,
)
from agent_reach.host.model import Caller, CommandFact, Interpreter, PathFact, ProjectFact
from agent_reach.host.system import SystemFact
from agent_reach.outcome import Enforced, Receipt
from agent_reach.plan.build import build
from agent_reach.plan.explain import explain
from agent_reach.plan.facts import Facts, Invocation

CONTRACT = Contract(
    path="/srv/job/reach.yaml",
    digest="00",
    profile="prod",
    identity=Identity(name="nightly", roles=("reader",)),
    files=(
        FileGrant("/srv/job/data", "rw", directory=True, origin=Origin("/srv/job/reach.yaml", 7, "prod")),
        FileGrant("/srv/link", "r", origin=Origin("cli")),
        FileGrant("/srv/gone", "rb", required=True, origin=Origin("/srv/job/reach.yaml", 8)),
        FileGrant("/srv/in.csv", source="https://host/in.csv?token=SECRET", origin=Origin("/srv/job/reach.yaml", 9)),
    ),
    env=(
        EnvGrant("LEVEL", default="SECRET-DEFAULT", origin=Origin("/srv/job/reach.yaml", 12)),
        EnvGrant("DB_PASS", source="vault://m/p#f", required=True, origin=Origin("/srv/job/reach.yaml", 13)),
        EnvGrant("HOST", origin=Origin("cli")),
        EnvGrant("CERT", source="file:///c", deliver="file", origin=Origin("/srv/job/reach.yaml", 14)),
        EnvGrant("DSN", template="x{DB_PASS}", origin=Origin("/srv/job/reach.yaml", 15)),
    ),
    network=(NetRule("db.internal", 5432, origin=Origin("/srv/job/reach.yaml", 20, "prod")),),
    commands=(CommandGrant("git"), CommandGrant("nope")),
    limits=(("wall", Limit(600.0)), ("memory", Limit(float(512 << 20), enforced=True))),
)
FACTS = Facts(
    tier="full",
    landlock=7,
    caller=Caller(1001, 1001, "alice", "/home/alice", "/srv/job", 0o22),
    interpreter=Interpreter(
        "/usr/bin/python3", "/usr/bin/python3.11", "3.11", "/usr", "/usr", "/usr/lib", (), (), "PATH"
    ),
    project=ProjectFact("/srv/job", (), (("/srv/job/.env", "file"), ("/srv/job/.git", "directory"))),
    system=SystemFact((), (), (), ()),
    paths=(
        PathFact("/srv/job/data", "/srv/job/data", "directory"),
        PathFact("/srv/link", "/data/real.txt", "file"),
        PathFact("/srv/gone"),
        PathFact("/srv/in.csv"),
    ),
    commands=(
        CommandFact("git", "/usr/bin/git", (("/usr/bin/git", "/usr/bin/git"), ("/bin/sh", "/usr/bin/dash"))),
        CommandFact("nope"),
    ),
)
RECEIPT = Receipt(
    "full",
    (
        Enforced("undeclared files", "enforced", "mount namespace"),
        Enforced("limits.wall", "enforced", "supervisor"),
        Enforced("limits.memory", "best effort", "rlimits, watchdog"),
    ),
    ("interpreter /usr/bin/python3 (PATH)", "a remark"),
)


@pytest.fixture(scope="module")
def value():
    plan = build(CONTRACT, FACTS, Invocation("script", "job.py", ("-x",), "/srv/job/job.py"))
    return explain(CONTRACT, FACTS, plan, RECEIPT)


@pytest.fixture(scope="module")
def text(value):
    return "\n".join(Page(value, "/srv/job", Paint(on=False)).lines(program=True))


def test_it_is_json_and_holds_no_value_of_a_variable(value, text) -> None:
    assert "SECRET" not in json.dumps(value)
    assert "SECRET" not in text


def test_every_entry_has_the_line_it_came_from(value) -> None:
    assert value["files"][0] | {"digest": ""} == {
        "path": "/srv/job/data",
        "real": "/srv/job/data",
        "mode": "rw",
        "kind": "directory",
        "required": False,
        "source": "",
        "sha256": "",
        "digest": "",
        "file": "/srv/job/reach.yaml",
        "line": 7,
        "profile": "prod",
    }
    assert value["network"] == [
        {
            "host": "db.internal",
            "port": 5432,
            "protocol": "tcp",
            "file": "/srv/job/reach.yaml",
            "line": 20,
            "profile": "prod",
        }
    ]


@pytest.mark.parametrize(
    "line",
    [
        "  contract      reach.yaml, profile prod",
        "  identity      nightly (service-account), roles reader (claims, not grants)",
        "  program       job.py -x",
        "  interpreter   /usr/bin/python3, Python 3.11 (first python3 on PATH)",
        "  user          alice, uid 1001; home /home/alice (private, empty)",
        "  read          /srv/job/  (the project)",
        "                but not .env, .git",
        "  read, write   /srv/job/data/  (reach.yaml:7, prod)",
        "  read          /srv/link  (command line)",
        "                is /data/real.txt",
        "  read          /srv/gone  (reach.yaml:8)",
        "                does not exist, and is required",
        "                fetched from https://host/in.csv?…",
        "  LEVEL         value in the contract  (reach.yaml:12)",
        "  DB_PASS       vault://m/p#f, required  (reach.yaml:13)",
        "  HOST          from the caller  (command line)",
        "                delivered as /run/secrets/CERT",
        "  DSN           made from other names  (reach.yaml:15)",
        "  tcp           db.internal:5432  (reach.yaml:20, prod)",
        "  git           /usr/bin/git  (default)",
        "                with /usr/bin/dash",
        "  nope          not on PATH  (default)",
        "  wall          600 s       enforced (supervisor)  (default)",
        "  memory        512 MiB     best effort (rlimits, watchdog)  (default)",
        "  tier              full (at least reduced)",
        "  note              a remark",
    ],
)
def test_a_person_reads(text, line) -> None:
    assert line in text.split("\n")


def test_lines_are_short_and_clean(text) -> None:
    assert [line for line in text.split("\n") if len(line) > 90 or line != line.rstrip()] == []


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("wall", 0.5, "0.5 s"),
        ("memory", float(3 << 29), "1.5 GiB"),
        ("output", 100.0, "100 B"),
        ("io_read", float(1 << 20), "1 MiB/s"),
        ("processes", 64.0, "64"),
        ("cpus", 1.5, "1.5"),
    ],
)
def test_amounts_have_units(name, value, shown) -> None:
    assert amount_of(name, value) == shown
