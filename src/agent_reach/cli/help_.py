"""Help, written from the tables of commands and options, for 80 columns."""

from __future__ import annotations

import os
import sys

from agent_reach.cli.catalogue import COMMANDS
from agent_reach.cli.commands import Command, find
from agent_reach.cli.options import UsageError
from agent_reach.cli.terminal import Paint, paint_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_reach.cli.options import Option, Parsed

WIDTH = 80
_COLUMN = 24


def execute(parsed: Parsed, environ: Mapping[str, str]) -> int:  # noqa: ARG001 - every command takes both
    """Show the help of one command, or the list of all.

    Raises:
        UsageError: there is no such command.
    """
    if not parsed.words:
        overview(1)
        return 0
    command = find(parsed.words[0])
    if command is None:
        raise UsageError(f"there is no command {parsed.words[0]}", "`reach help` lists them")
    return show(command)


def show(command: Command) -> int:
    """Print the help of a command."""
    print(text(command, paint_for(1, os.environ)))
    return 0


def overview(descriptor: int) -> None:
    """Print what there is.

    Args:
        descriptor: 1 for standard output, 2 for standard error.
    """
    paint = paint_for(descriptor, os.environ)
    lines = [
        "Run Python that you did not write, under a contract that the kernel enforces.",
        "",
        paint("bold", "Usage:") + " reach COMMAND [OPTIONS] …",
        "",
        *_table([(command.name, command.summary) for command in COMMANDS], paint),
        "",
        paint("bold", "First steps:"),
        *_table(
            [
                ("reach doctor", "what this host can enforce"),
                ("reach run job.py", "run job.py: its own files, no network, no secrets"),
                ("reach init job.py", "write a contract to grant it more"),
                ("reach COMMAND --help", "options and examples of a command"),
            ],
            paint,
        ),
    ]
    print("\n".join(lines), file=sys.stdout if descriptor == 1 else sys.stderr)


def text(command: Command, paint: Paint) -> str:
    """Return the help of a command.

    Args:
        command: the command.
        paint: for a terminal with or without colour.
    """
    lines = [command.summary, "", *_usage(command, paint)]
    if command.about:
        lines += ["", command.about]
    groups: dict[str, list[Option]] = {}
    for option in command.options:
        groups.setdefault(option.group, []).append(option)
    ordered = sorted(groups.items(), key=lambda item: item[0] == "Options")
    for group, members in ordered:
        rows = [(_head(option), option.doc) for option in members]
        lines += ["", paint("bold", f"{group}:"), *_table(rows, paint)]
    if command.examples:
        lines += ["", paint("bold", "Examples:")]
        for line, does in command.examples:
            lines += [f"  {paint('green', line)}", f"      {does}"]
    return "\n".join(lines)


def _usage(command: Command, paint: Paint) -> list[str]:
    """Return one line for each form."""
    forms = [f"reach {command.name} {form}".rstrip() for form in command.usage]
    lines: list[str] = []
    for number, form in enumerate(forms):
        head = paint("bold", "Usage:") + " " if number == 0 else "       "
        wrapped = list(wrap(form, WIDTH - 7 - 8))
        lines += [f"{head}{wrapped[0]}", *[f"               {part}" for part in wrapped[1:]]]
    return lines


def _head(option: Option) -> str:
    """Return how an option is written."""
    names = ", ".join(option.names)
    return f"{names} {option.value}" if option.value else names


def _table(rows: list[tuple[str, str]], paint: Paint) -> list[str]:
    """Return two columns; a head that is too long stands on a line of its own."""
    lines: list[str] = []
    for head, doc in rows:
        parts = list(wrap(doc, WIDTH - _COLUMN - 2))
        colored = paint("green", head)
        if len(head) > _COLUMN - 2:
            lines.append(f"  {colored}")
        else:
            lines.append(f"  {colored}{' ' * (_COLUMN - len(head))}{parts.pop(0) if parts else ''}".rstrip())
        lines += [f"  {' ' * _COLUMN}{part}" for part in parts]
    return lines


def wrap(text_: str, width: int) -> Iterator[str]:
    """Yield lines of at most `width` characters, broken at blanks."""
    line = ""
    for word in text_.split(" "):
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line
