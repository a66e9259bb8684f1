"""The shipped completion scripts are those of the table, and the shells understand them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agent_reach.cli import shells
from agent_reach.cli.catalogue import COMMANDS

SHIPPED = Path(__file__).parents[3] / "completions"
FILES = {"bash": "reach.bash", "zsh": "_reach", "fish": "reach.fish"}


@pytest.mark.parametrize("shell", FILES)
def test_the_shipped_script_is_the_generated_one(shell) -> None:
    assert (SHIPPED / FILES[shell]).read_text() == shells.script(shell), f"reach completion {shell} > {FILES[shell]}"


@pytest.mark.parametrize("shell", FILES)
def test_every_command_and_long_option_is_offered(shell) -> None:
    text = shells.script(shell)
    for command in COMMANDS:
        assert command.name in text
        for option in command.options:
            if option.key.startswith("--"):
                assert (option.key if shell != "fish" else f"-l {option.key[2:]}") in text


def complete(words: str, cwd) -> list[str]:
    """Press TAB behind the words, in bash."""
    program = f"""
        source {SHIPPED / "reach.bash"}
        COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        _reach 2>/dev/null   # compopt complains outside of a real completion
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", program],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("reach ex", ["exec", "explain"]),
        ("reach run --en", ["--env"]),
        ("reach run --minimum ''", ["full", "reduced"]),
        ("reach run --minimum = re", ["reduced"]),
        ("reach run jo", ["job.py"]),
        ("reach run --env dev jo", ["job.py"]),
        ("reach run -- jo", ["job.py"]),
        ("reach run --contract jo", ["job.py"]),
        ("reach run job.py --en", []),
        ("reach run job.py jo", ["job.py"]),
        ("reach run -m tool --en", []),
        ("reach run --env jo", []),
        ("reach completion z", ["zsh"]),
        ("reach log v", ["verify"]),
        ("reach help ver", ["version"]),
        ("reach check --format ''", ["text", "json"]),
    ],
)
def test_bash_offers_what_can_follow(words, offered, tmp_path) -> None:
    (tmp_path / "job.py").touch()
    assert complete(words, tmp_path) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_parse_their_script(shell) -> None:
    if shutil.which(shell) is None:
        # Neither is part of a Debian base; the text is compared above.
        return
    done = subprocess.run(
        [shell, "-n", SHIPPED / FILES[shell]], capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
