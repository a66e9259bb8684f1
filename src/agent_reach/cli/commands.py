"""What a command is, and the one that has to start fast; the others are in `catalogue`."""

from __future__ import annotations

from agent_reach._util.record import Record
from agent_reach.cli import options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.cli.options import Option


class Command(Record):
    """One command.

    Args:
        name: as typed.
        module: module of `agent_reach.cli` with its `execute`.
        summary: what it does, in one line.
        usage: forms, without ``reach NAME`` in front.
        options: its options.
        program: ``script`` or ``command`` when its first plain word names a program; empty otherwise.
        most_words: how many plain words it takes when it has no program.
        words: the plain words that completion offers.
        complete: what other plain words are: ``file`` or nothing.
        about: what the help adds.
        examples: command line and what it does.
    """

    name: str
    module: str
    summary: str
    usage: tuple[str, ...]
    options: tuple[Option, ...]
    program: str = ""
    most_words: int = 0
    words: tuple[str, ...] = ()
    complete: str = ""
    about: str = ""
    examples: tuple[tuple[str, str], ...] = ()


_PROGRAM = ("[OPTIONS] SCRIPT [ARGUMENTS]", "[OPTIONS] (-m MODULE | -c CODE | - | --code-fd N) [ARGUMENTS]")

RUN = Command(
    "run",
    "run",
    "Run a Python program under its contract.",
    _PROGRAM,
    options.RUN,
    program="script",
    complete="file",
    about="Everything behind SCRIPT, -m MODULE, -c CODE, - or --code-fd N is the program's.\n"
    "Exit status: the program's own; 124 wall limit; 125 reach refused or failed;\n"
    "126, 127 not runnable, not found; 128+N ended by signal N.",
    examples=(
        ("reach run job.py --verbose", "run job.py; --verbose is its own argument"),
        ("reach run --env prod job.py", "with the profile prod"),
        ("reach run --read data/ --net db.internal:5432 job.py", "with two grants more"),
        ("reach run --result out.json -m package.tool", "a module; the result as JSON"),
        ("echo 'print(1)' | reach run -", "code from standard input"),
    ),
)


def find(name: str) -> Command | None:
    """Return the command of that name."""
    if name == RUN.name:
        return RUN
    from agent_reach.cli.catalogue import COMMANDS

    return next((command for command in COMMANDS if command.name == name), None)
