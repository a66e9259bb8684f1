"""What people read on standard error."""

from __future__ import annotations

import pytest

from agent_reach.cli.report import MOST_DENIALS, Report, receipt_lines
from agent_reach.cli.terminal import paint_for
from agent_reach.contract.model import Contract
from agent_reach.linux.probe import Abilities, Obstacle
from agent_reach.outcome import Connection, Denial, Enforced, Place, Receipt, Result, Usage

PLACE = Place("/srv/job/sync_users.py", 18, "main")
CONNECT = Denial(
    "connect",
    "db.internal:5432",
    "not in resources.network.allow_outbound",
    "- {host: db.internal, port: 5432, protocol: tcp}",
    PLACE,
)
RECEIPT = Receipt("full", (Enforced("undeclared files", "enforced", "mount namespace"),), ("https not checked",))


def result(**changes: object) -> Result:
    base = Result(
        run_id="6929c1-00",
        exit_code=0,
        signal=0,
        cause="exited",
        limit="",
        message="",
        denials=(),
        connections=(),
        usage=Usage(wall=1.5, cpu=0.25, max_rss=12_000_000),
        receipt=RECEIPT,
    )
    return base.replace(**changes)


@pytest.fixture
def contract(tmp_path, monkeypatch):
    path = tmp_path / "reach.yaml"
    path.write_text(
        'version: "1"\nresources:\n  files: []\nprofiles:\n  prod:\n    resources:\n      network:\n'
        "        # rules\n        allow_outbound:\n          - {host: a, port: 1}\n"
    )
    monkeypatch.chdir(tmp_path)
    return Contract(path=str(path), profile="prod")


def report(contract: Contract, cwd: str, **options: bool) -> Report:
    made = Report({}, **options)
    made.about(contract, cwd)
    return made


def test_the_block_is_that_of_the_design(contract, tmp_path) -> None:
    denial = CONNECT.replace(place=Place(f"{tmp_path}/sync_users.py", 18, "main"))
    assert report(contract, str(tmp_path)).block(denial) == (
        "reach: denied connect db.internal:5432  sync_users.py:18 in main\n"
        "       not in resources.network.allow_outbound (reach.yaml:9, profile prod)\n"
        "       to allow it add:  - {host: db.internal, port: 5432, protocol: tcp}"
    )


def test_without_place_entry_or_contract_the_block_is_shorter() -> None:
    denial = Denial("exec", "/usr/bin/id", "not in resources.commands")
    assert report(Contract(), "/").block(denial) == (
        "reach: denied exec /usr/bin/id\n       not in resources.commands (no contract)"
    )


def test_a_clause_that_names_its_place_already_is_kept(contract, tmp_path) -> None:
    denial = CONNECT.replace(clause="not in resources.files (other.yaml:3)", place=None)
    assert "(other.yaml:3)\n" in report(contract, str(tmp_path)).block(denial)


def test_a_section_that_is_not_written_has_the_line_of_what_holds_it(contract, tmp_path) -> None:
    denial = Denial("exec", "git", "not in resources.commands")
    assert "not in resources.commands (reach.yaml:6, profile prod)" in report(contract, str(tmp_path)).block(denial)


@pytest.mark.parametrize(
    ("clause", "shown"),
    [
        ("granted for reading only", "granted for reading only (reach.yaml:3, profile prod)"),
        ("disabled in restricted context", "disabled in restricted context"),
    ],
)
def test_only_a_clause_of_the_contract_has_a_line(clause, shown, contract, tmp_path) -> None:
    block = report(contract, str(tmp_path)).block(Denial("write", "/x", clause))
    assert block == f"reach: denied write /x\n       {shown}"


def test_a_contract_that_has_gone_has_no_line(contract, tmp_path) -> None:
    (tmp_path / "reach.yaml").unlink()
    assert "allow_outbound (reach.yaml, profile prod)" in report(contract, str(tmp_path)).block(CONNECT)


@pytest.mark.parametrize("hostile", ["a\x1b[2Jb", "a\nreach: all fine", "a\u202eb", "a\r", "a\udcffb", "a\x00b"])
def test_no_text_of_the_program_acts_on_the_terminal(hostile) -> None:
    denial = Denial("open", hostile, "not in resources.files", hostile, Place(hostile, 1, hostile))
    block = report(Contract(), "/").block(denial)
    assert len(block.split("\n")) == 3
    assert all(line.isprintable() for line in block.split("\n"))


def test_code_from_a_descriptor_is_called_code() -> None:
    made = Report({}, code_name="<code>")
    assert made.block(CONNECT.replace(place=Place("<string>", 3))).startswith(
        "reach: denied connect db.internal:5432  <code>:3\n"
    )


def test_one_block_for_each_action_object_and_line(capfd) -> None:
    made = report(Contract(), "/")
    for denial in (CONNECT, CONNECT, CONNECT.replace(place=Place("a.py", 19)), CONNECT.replace(subject="x:1")):
        made.deny(denial)
    assert capfd.readouterr().err.count("reach: denied") == 3


def test_twenty_blocks_and_then_where_to_look(capfd) -> None:
    made = report(Contract(), "/")
    for number in range(MOST_DENIALS + 5):
        made.deny(CONNECT.replace(subject=f"host{number}:1"))
    made.end(result(), recorded=True)
    err = capfd.readouterr().err
    assert err.count("reach: denied") == 20
    assert err.endswith("reach: 5 more: reach log 6929c1-00\n")


def test_without_a_record_the_rest_is_elsewhere(capfd) -> None:
    made = report(Contract(), "/")
    for number in range(MOST_DENIALS + 1):
        made.deny(CONNECT.replace(subject=f"host{number}:1"))
    made.end(result(), recorded=False)
    assert capfd.readouterr().err.endswith("reach: 1 more: -v shows them; there is no record\n")


def test_quiet_says_nothing_of_denials_and_tiers(capfd) -> None:
    made = report(Contract(), "/", quiet=True)
    made.deny(CONNECT)
    made.tier(Abilities("reduced", 7, Obstacle("user namespaces", "step `proc`: EPERM", "fix")))
    made.end(result(cause="limit", message="limits.wall reached"), recorded=True)
    assert capfd.readouterr().err == ""


def test_verbose_shows_what_was_not_shown_and_the_receipt(capfd) -> None:
    made = report(Contract(), "/", verbose=True)
    hidden = CONNECT.replace(shown=False)
    made.end(result(denials=(hidden,), connections=(Connection("a.b", "10.0.0.1", 443, 2),)), recorded=True)
    err = capfd.readouterr().err
    assert "reach: denied connect" in err
    assert "reach: run 6929c1-00: exit 0; 1.50 s, 0.25 s of CPU, 12 MB\n" in err
    assert "       connected to a.b:443 (10.0.0.1), 2 times\n" in err
    assert (
        "       tier full\n       undeclared files  enforced (mount namespace)\n       note: https not checked\n" in err
    )


def test_a_limit_is_named_at_the_end(capfd) -> None:
    report(Contract(), "/").end(result(cause="limit", message="limits.wall reached"), recorded=True)
    assert capfd.readouterr().err == "reach: limits.wall reached\n"


def test_a_weaker_tier_is_one_line_and_full_is_none(capfd) -> None:
    made = report(Contract(), "/")
    made.tier(Abilities("full", 7))
    assert capfd.readouterr().err == ""
    made.tier(Abilities("reduced", 7, Obstacle("user namespaces", "step `proc`: Operation not permitted", "fix")))
    assert capfd.readouterr().err == (
        "reach: tier reduced: user namespaces: step `proc`: Operation not permitted (`reach doctor` has the fix)\n"
    )


def test_not_enforced_has_no_mechanism() -> None:
    lines = receipt_lines(Receipt("full", (Enforced("append", "not enforced", ""),)))
    assert lines == ["       tier full", "       append  not enforced"]


@pytest.mark.parametrize(
    ("environ", "coloured"),
    [
        ({}, False),
        ({"TERM": "xterm"}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
def test_colour_without_a_terminal(environ, coloured, tmp_path) -> None:
    with open(tmp_path / "out", "wb") as stream:
        assert ("\x1b" in paint_for(stream.fileno(), environ)("red", "x")) is coloured
