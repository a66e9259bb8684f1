"""Help comes from the table, fits a terminal of 80 columns and has examples."""

from __future__ import annotations

import pytest

from agent_reach.cli import help_, main
from agent_reach.cli.catalogue import COMMANDS
from agent_reach.cli.terminal import Paint

PLAIN = Paint(on=False)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_help_fits_80_columns_and_names_every_option(command) -> None:
    text = help_.text(command, PLAIN)
    assert [line for line in text.split("\n") if len(line) > help_.WIDTH] == []
    assert [line for line in text.split("\n") if line != line.rstrip()] == []
    for option in command.options:
        assert all(name in text for name in option.names)
    for example, _ in command.examples:
        assert example in text


def test_run_help_shows_usage_examples_and_the_status() -> None:
    text = help_.text(COMMANDS[0], PLAIN)
    assert "Usage: reach run [OPTIONS] SCRIPT [ARGUMENTS]\n" in text
    assert "Examples:\n  reach run job.py --verbose\n" in text
    assert "124 wall limit; 125 reach refused or failed" in text


def test_colour_changes_nothing_but_colour() -> None:
    painted = help_.text(COMMANDS[0], Paint(on=True))
    assert "\x1b[1m" in painted
    for code in ("0", "1", "32"):
        painted = painted.replace(f"\x1b[{code}m", "")
    assert painted == help_.text(COMMANDS[0], PLAIN)


@pytest.mark.parametrize("words", [["help"], ["--help"], ["-h"], ["help", "run"], ["run", "--help"], ["log", "-h"]])
def test_every_way_to_ask_for_help(words, capsys) -> None:
    assert main(words) == 0
    assert "reach" in capsys.readouterr().out


def test_without_a_command_the_overview_is_an_error(capsys) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Usage: reach COMMAND" in captured.err


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["rnu"], 2, "did you mean `reach run`?"),
        (["job.py"], 2, "did you mean `reach run job.py`?"),
        (["repl"], 2, "planned, not in this version"),
        (["qqqq"], 2, "`reach help` lists them"),
        (["help", "qqqq"], 2, "`reach help` lists them"),
        (["log", "--jsno"], 2, "did you mean `--json`?"),
        (["run", "--jsno"], 125, "there is no option --jsno"),
        (["run"], 125, "nothing to run"),
        (["exec", "--"], 125, "nothing to run"),
        (["completion", "tcsh"], 2, "one of: bash, zsh, fish"),
        (["run", "--env", "FOO=bar", "x.py"], 125, "--env names a profile; to pass a variable use --pass FOO"),
        (["run", "--minimum", "advisory", "x.py"], 125, "the tiers are full and reduced"),
        (["check", "--format", "xml"], 2, "text or json"),
    ],
)
def test_a_mistake_ends_with_a_hint(words, status, text, capfd) -> None:
    assert main(words) == status
    captured = capfd.readouterr()
    assert text in captured.err
    assert captured.err.startswith("reach")
    assert captured.out == ""


def test_the_overview_lists_every_command(capsys) -> None:
    help_.overview(1)
    text = capsys.readouterr().out
    assert all(f"  {command.name} " in text for command in COMMANDS)
    assert [line for line in text.split("\n") if len(line) > help_.WIDTH] == []
