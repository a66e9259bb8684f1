"""The parser: reach's own options end where the program begins."""

from __future__ import annotations

import pytest

from agent_reach.cli.catalogue import COMMANDS
from agent_reach.cli.commands import RUN, find
from agent_reach.cli.options import UsageError, parse


def run(*words: str):
    return parse(RUN, words)


@pytest.mark.parametrize(
    ("words", "ender", "target", "arguments"),
    [
        (["job.py"], "SCRIPT", "job.py", ()),
        (["job.py", "--env", "prod", "-v"], "SCRIPT", "job.py", ("--env", "prod", "-v")),
        (["job.py", "--", "-x"], "SCRIPT", "job.py", ("--", "-x")),
        (["--", "-odd.py", "a"], "--", "-odd.py", ("a",)),
        (["-m", "pkg.tool", "-v"], "-m", "pkg.tool", ("-v",)),
        (["-mpkg.tool", "-v"], "-m", "pkg.tool", ("-v",)),
        (["-c", "print(1)", "--env"], "-c", "print(1)", ("--env",)),
        (["-c", "-1"], "-c", "-1", ()),
        (["-", "a", "b"], "--stdin", "", ("a", "b")),
        (["--stdin", "--env", "x"], "--stdin", "", ("--env", "x")),
        (["--code-fd", "3", "a"], "--code-fd", "3", ("a",)),
        (["--code-fd=3", "a"], "--code-fd", "3", ("a",)),
        ([""], "SCRIPT", "", ()),
    ],
)
def test_everything_behind_the_program_is_its_own(words, ender, target, arguments) -> None:
    parsed = parse(RUN, words)
    assert (parsed.ender, parsed.target, parsed.words) == (ender, target, arguments)
    assert not parsed.has("--env")
    assert not parsed.has("--verbose")


def test_a_value_stands_behind_its_option_or_in_the_same_word() -> None:
    parsed = run("--env", "dev", "--contract=a=b.yaml", "--read", "x", "--read=y", "-q", "s.py")
    assert parsed.one("--env") == "dev"
    assert parsed.one("--contract") == "a=b.yaml"
    assert parsed.all("--read") == ("x", "y")
    assert parsed.has("--quiet")
    assert not parsed.has("--verbose")
    assert parsed.one("--python") is None


def test_an_empty_value_is_a_value() -> None:
    assert run("--env=", "s.py").one("--env") == ""


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--evn", "x", "s.py"], "there is no option --evn", "did you mean `--env`?"),
        (["--contarct=x", "s.py"], "there is no option --contarct", "did you mean `--contract`?"),
        (["--zzzz"], "there is no option --zzzz", "reach run --help lists them"),
        (["-z"], "there is no option -z", "reach run --help lists them"),
        (["--env"], "--env needs a value: --env PROFILE", ""),
        (["--env", "--verbose", "s.py"], "--env needs a value: --env PROFILE", ""),
        (["--env", "--", "s.py"], "--env needs a value: --env PROFILE", ""),
        (["--verbose=yes", "s.py"], "--verbose takes no value", ""),
        (["--env", "a", "--env", "b", "s.py"], "--env is given twice", ""),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(words, message, hint) -> None:
    with pytest.raises(UsageError) as caught:
        parse(RUN, words)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_exec_ends_its_options_at_the_command_or_the_script() -> None:
    command = find("exec")
    assert command is not None
    parsed = parse(command, ["--target", "db", "--script", "s.py", "--x"])
    assert (parsed.ender, parsed.target, parsed.words) == ("--script", "s.py", ("--x",))
    parsed = parse(command, ["--", "git", "--version"])
    assert (parsed.ender, parsed.target, parsed.words) == ("--", "git", ("--version",))


def test_options_of_a_command_without_a_program_stand_anywhere() -> None:
    command = find("log")
    assert command is not None
    parsed = parse(command, ["6929c1", "--json", "-n5"])
    assert (parsed.words, parsed.one("--count")) == (("6929c1",), "5")
    assert parsed.has("--json")
    with pytest.raises(UsageError, match="one word too many: b"):
        parse(command, ["a", "b"])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_table_is_consistent(command) -> None:
    names = [name for option in command.options for name in option.names]
    assert len(names) == len(set(names))
    assert "--help" in names
    assert find(command.name) is command
    assert command.summary.endswith(".")
    for option in command.options:
        assert option.doc.endswith(".")
        assert option.value or not option.ends or option.key == "--stdin"
        assert option.value or not option.complete
