"""The table of grants that the guard inside reads."""

from __future__ import annotations

from agent_reach.contract.model import Contract, FileGrant, NetRule, Options
from agent_reach.host.model import CommandFact, PathFact, ProjectFact
from agent_reach.plan.guard import table
from unit.plan.support import FULL, REDUCED, granting


def sections(contract: Contract, facts: object = FULL) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in table(contract, facts).decode().split("\n"):
        name, _, value = line.partition(" ")
        found.setdefault(name, []).append(value)
    return found


def test_grants_are_listed_by_what_they_allow() -> None:
    found = sections(*granting(FileGrant("/data/in"), FileGrant("/data/out", "w"), FileGrant("/data/db", "rw")))
    assert {"/data/in", "/data/db"} <= set(found["read"])
    assert "/data/out" not in found["read"]
    assert {"/data/out", "/data/db"} <= set(found["write"])
    assert "/data/in" not in found["write"]


def test_a_granted_symlink_is_known_by_both_names() -> None:
    contract = Contract(files=(FileGrant("/srv/link", "r"),))
    found = sections(contract, FULL.replace(paths=(PathFact("/srv/link", "/data/real", "file"),)))
    assert {"/srv/link", "/data/real"} <= set(found["read"])


def test_a_staged_file_can_be_read_at_its_path() -> None:
    found = sections(*granting(FileGrant("/data/in.csv", source="https://host/in.csv")))
    assert "/data/in.csv" in found["read"]


def test_a_secret_that_is_delivered_as_a_file_can_be_read() -> None:
    assert "/run/secrets" in sections(Contract())["read"]


def test_what_the_plan_shows_besides_is_not_asked_about() -> None:
    facts = FULL.replace(
        project=ProjectFact("/srv/job", ("/opt/beside.py", "/opt/pkg/"), (("/srv/job/.env", "file"),)),
        commands=(CommandFact("git", "/usr/bin/git", (("/usr/bin/git", "/usr/bin/git"),), ("/opt/git",)),),
    )
    found = sections(Contract(), facts)
    expected = "/srv/job /opt/beside.py /opt/pkg /usr/bin/git /opt/git /usr/lib /etc/hosts /etc/localtime /lib"
    assert set(expected.split()) <= set(found["read"])
    assert found["hidden"] == ["/srv/job/.env"]
    assert not {"/", "/etc", "/home", "/home/alice"} & set(found["read"])


def test_the_runs_own_places_are_those_of_its_tier() -> None:
    full, reduced = sections(Contract()), sections(Contract(), REDUCED)
    assert {"/home/alice", "/tmp", "/var/tmp"} <= set(full["write"])
    assert full["home"] == ["/home/alice"]
    assert REDUCED.private in reduced["write"]
    assert not {"/home/alice", "/tmp", "/var/tmp"} & set(reduced["write"])
    assert "home" not in reduced


def test_hosts_and_the_start_method_are_there_when_the_contract_names_them() -> None:
    contract = Contract(network=(NetRule("db.internal", 5432),), options=Options(multiprocessing_start_method="spawn"))
    found = sections(contract)
    assert found["host"] == ["db.internal", "localhost"]
    assert found["start"] == ["spawn"]
    assert "start" not in sections(Contract())


def test_a_path_with_a_line_end_or_a_byte_that_is_no_text_stays_on_one_line() -> None:
    name = "/data/a\nwrite /etc\\n\udcff"
    data = table(*granting(FileGrant(name)))
    assert b"read /data/a\\nwrite /etc\\\\n\xff" in data.split(b"\n")
    assert b"write /etc" not in data.split(b"\n")
