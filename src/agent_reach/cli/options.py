"""The options of every command, in one table: it drives parsing, help and completion.

`argparse` costs 7 ms of import and 5 ms a parse, a third of what a whole `reach run` may add.
"""

from __future__ import annotations

from agent_reach._util.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_reach.cli.commands import Command


class Option(Record):
    """One option.

    Args:
        names: as written, the long one last; its last name is the key of its values.
        value: placeholder of the value, empty for a flag.
        doc: what it does, one or two sentences.
        group: heading in the help.
        many: may be given several times.
        ends: everything behind its value belongs to the program.
        complete: what its value is, for completion: ``file``, ``directory``, ``command`` or the words themselves.
    """

    names: tuple[str, ...]
    value: str = ""
    doc: str = ""
    group: str = "Options"
    many: bool = False
    ends: bool = False
    complete: str | tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Name under which its values are found."""
        return self.names[-1]


class UsageError(Exception):
    """The command line cannot be understood.

    Args:
        message: what is wrong.
        hint: what to write instead, or empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class Parsed(Record):
    """A command line, taken apart.

    Args:
        command: name of the command.
        values: values by option; a flag that is there has one empty value.
        ender: option that named the program, ``SCRIPT`` for a plain word, ``--`` behind it, or empty.
        target: what the program is: path, module, code, descriptor, command.
        words: arguments of the program, or of a command that has none.
    """

    command: str
    values: dict[str, list[str]]
    ender: str = ""
    target: str = ""
    words: tuple[str, ...] = ()

    def one(self, name: str) -> str | None:
        """Return the value of an option, None when it is not there."""
        found = self.values.get(name)
        return found[-1] if found else None

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value of an option, in order."""
        return tuple(self.values.get(name, ()))

    def has(self, name: str) -> bool:
        """Say whether an option is there."""
        return name in self.values


_CONTRACT = "Contract"
_GRANTS = "Grants for this run, recorded as `cli`"
_OUTPUT = "Output"

HELP = Option(("-h", "--help"), doc="Show this text.")
JSON = Option(("--json",), doc="Write JSON for machines.")

CHOICE = (
    Option(
        ("--contract",),
        "FILE|fd:N",
        "The contract, instead of SCRIPT.reach.yaml or the nearest reach.yaml upward; fd:N reads it from a descriptor.",
        _CONTRACT,
        complete="file",
    ),
    Option(("--env",), "PROFILE", "Use this profile of the contract.", _CONTRACT),
    Option(("--target",), "NAME", "Lay this target of the contract over it.", _CONTRACT, many=True),
    Option(
        ("--minimum",),
        "TIER",
        "Refuse a sandbox weaker than this: full, reduced.",
        _CONTRACT,
        complete=("full", "reduced"),
    ),
    Option(("--python",), "PYTHON", "Interpreter: a path, or a name on PATH.", _CONTRACT, complete="file"),
)
GRANTS = (
    Option(
        ("--read",), "PATH", "Let it read a file or, with a trailing /, a directory.", _GRANTS, True, complete="file"
    ),
    Option(("--write",), "PATH", "Let it write a file or directory.", _GRANTS, True, complete="file"),
    Option(("--net",), "HOST:PORT", "Let it connect there.", _GRANTS, True),
    Option(("--pass",), "NAME", "Pass one of your environment variables on.", _GRANTS, True),
    Option(("--command",), "NAME", "Let it start this command.", _GRANTS, True, complete="command"),
    Option(("--limit",), "NAME=VALUE", "Set a limit, such as wall=10m or memory=512MiB.", _GRANTS, True),
    Option(("--save",), doc="Write the grants above into the contract.", group=_GRANTS),
    Option(
        ("--locked",), doc="Refuse every option of this group and --minimum: the contract alone decides.", group=_GRANTS
    ),
)
HOUSE = (
    Option(("--no-cache",), doc="Use no cached contract, filter or interpreter answer.", group=_OUTPUT),
    Option(("--no-record",), doc="Leave no record of this run.", group=_OUTPUT),
    Option(("--audit",), doc="Not there yet: refuse nothing, record what would be refused.", group=_OUTPUT),
    Option(
        ("--result",),
        "FILE|fd:N",
        "Write what came of the run, as JSON, also when reach fails.",
        _OUTPUT,
        complete="file",
    ),
    Option(("-q", "--quiet"), doc="Show no denials and no remarks.", group=_OUTPUT),
    Option(("-v", "--verbose"), doc="Show the receipt, remarks and every denial at the end.", group=_OUTPUT),
)
PROGRAM = (
    Option(("-m",), "MODULE", "Run a module, as python -m does.", "Program", ends=True),
    Option(("-c",), "CODE", "Run this code.", "Program", ends=True),
    Option(("-", "--stdin"), doc="Run the code on standard input.", group="Program", ends=True),
    Option(("--code-fd",), "N", "Run the code on descriptor N; standard input is the program's.", "Program", ends=True),
)
SCRIPT = (Option(("--script",), "SCRIPT", "Run a script, as reach run does.", "Program", ends=True, complete="file"),)

RUN = (*PROGRAM, *CHOICE, *GRANTS, *HOUSE, HELP)
EXEC = (*SCRIPT, *CHOICE, *GRANTS, *HOUSE, HELP)


def parse(command: Command, argv: Sequence[str]) -> Parsed:
    """Take apart the words behind the name of a command.

    Args:
        command: the command.
        argv: the words.

    Raises:
        UsageError: an option is unknown, has no value, is given twice, or a word is too many.
    """
    known = {name: option for option in command.options for name in option.names}
    values: dict[str, list[str]] = {}
    words: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            if command.program and rest:
                return Parsed(command.name, values, "--", rest[0], tuple(rest[1:]))
            words += rest
            break
        option, value = _option(word, known, command)
        if option is None:
            if command.program:
                return Parsed(command.name, values, "SCRIPT", word, tuple(rest))
            words.append(word)
            continue
        if option.value and value is None:
            value = _next(word, rest, known)
        _keep(values, option, value or "")
        if option.ends:
            return Parsed(command.name, values, option.key, value or "", tuple(rest))
    if len(words) > command.most_words:
        raise UsageError(f"one word too many: {words[command.most_words]}")
    return Parsed(command.name, values, words=tuple(words))


def _option(word: str, known: dict[str, Option], command: Command) -> tuple[Option | None, str | None]:
    """Return the option that a word is, and the value that is part of the word; (None, None) for a plain word.

    Raises:
        UsageError: it looks like an option and is none.
    """
    if word in known:
        return known[word], None
    if not word.startswith("-") or word == "-":
        return None, None
    name, assigned, value = word.partition("=")
    if word.startswith("--") and name in known and assigned:
        if not known[name].value:
            raise UsageError(f"{name} takes no value")
        return known[name], value
    short = known.get(word[:2])
    if short is not None and short.value and not word.startswith("--"):
        return short, word[2:]
    raise unknown("option", name, known, command.name)


def unknown(kind: str, name: str, known: dict[str, Option], command: str) -> UsageError:
    """Return the error for a name that no table has, with the nearest name that one has."""
    from agent_reach.contract.sink import suggestion

    near = suggestion(name, [candidate for candidate in known if len(candidate) > 2]) if len(name) > 2 else ""
    return UsageError(f"there is no {kind} {name}", near or f"reach {command} --help lists them".replace("  ", " "))


def _next(word: str, rest: list[str], known: dict[str, Option]) -> str:
    """Take the value of an option from the words behind it."""
    if not rest or rest[0] == "--" or (rest[0] in known and rest[0] != "-"):
        raise UsageError(f"{word} needs a value: {word} {known[word].value}")
    return rest.pop(0)


def _keep(values: dict[str, list[str]], option: Option, value: str) -> None:
    """Note a value; two answers to one question are a mistake, not a preference."""
    found = values.setdefault(option.key, [])
    if found and option.value and not option.many:
        raise UsageError(f"{option.key} is given twice")
    found.append(value)
