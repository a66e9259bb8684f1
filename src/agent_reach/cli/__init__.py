"""The command line. `main` is the entry point of `reach`; one module for each command."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from agent_reach.cli.options import UsageError

_USAGE = 2
_STANDARD_ERROR = 2
_INTERRUPTED = 130
_BROKEN_PIPE = 141
_RUNS_PROGRAMS = ("run", "exec")
_PLANNED = ("diff", "repl", "why")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the status for the shell.

    Args:
        argv: words behind the program's name; those of this process when None.
    """
    _fill_missing()
    words = list(sys.argv[1:] if argv is None else argv)
    runs = words[:1] in (["run"], ["exec"])
    if runs:
        # A start makes no cycles worth collecting: looking for them costs 5 of its 17 ms of imports.
        gc.disable()
    try:
        status = _command(words)
        if sys.stdout is not None:  # the caller may have closed it
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # `reach log | head`: nobody reads on. The interpreter would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _BROKEN_PIPE
    if runs and argv is None:
        # Everything is written and closed: taking the interpreter apart piece by piece would take 3 ms more.
        os._exit(status)
    return status


def _fill_missing() -> None:
    """Open what the caller closed: a file of ours on 0, 1 or 2 would be taken for the caller's stream."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > _STANDARD_ERROR:
            os.close(descriptor)
            return


def _command(words: list[str]) -> int:
    """Find the command, take its words apart and execute it."""
    from agent_reach.cli import commands, options

    name = words[0] if words else "--help"
    command = commands.find({"-h": "help", "--help": "help", "-V": "version", "--version": "version"}.get(name, name))
    if command is None:
        return _no_command(name)
    if not words:
        _module("help_").overview(_STANDARD_ERROR)
        return _USAGE
    try:
        parsed = options.parse(command, words[1:])
        if parsed.has("--help"):
            return int(_module("help_").show(command))
        return int(_module(command.module).execute(parsed, os.environ))
    except options.UsageError as error:
        return _misused(command.name, error)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - nobody gets a traceback of ours unless they ask for it
        return _failed(command.name, error)


def _module(name: str) -> ModuleType:
    """Import the module of a command."""
    module: ModuleType = __import__(f"agent_reach.cli.{name}", fromlist=[name])
    return module


def _misused(command: str, error: UsageError) -> int:
    """Say what is wrong with a command line."""
    from agent_reach._util.visible import visible
    from agent_reach.cli.terminal import say
    from agent_reach.errors import EXIT_REACH_FAILED

    hint = f"\n       {visible(error.hint)}" if error.hint else ""
    say(f"reach {command}: {visible(error.message)}{hint}")
    return EXIT_REACH_FAILED if command in _RUNS_PROGRAMS else _USAGE


def _failed(command: str, error: Exception) -> int:
    """Say what failed; REACH_DEBUG=1 adds the traceback."""
    from agent_reach.cli import failures
    from agent_reach.cli.terminal import say
    from agent_reach.errors import EXIT_REACH_FAILED

    say(failures.words(error))
    if os.environ.get("REACH_DEBUG"):
        import traceback

        traceback.print_exception(error)
    return EXIT_REACH_FAILED if command in _RUNS_PROGRAMS else _USAGE


def _no_command(name: str) -> int:
    """Say that there is no such command, and what may have been meant."""
    from agent_reach._util.visible import visible
    from agent_reach.cli.catalogue import COMMANDS
    from agent_reach.cli.terminal import say
    from agent_reach.contract.sink import suggestion

    hint = suggestion(name, [command.name for command in COMMANDS]).replace("`", "`reach ", 1)
    if name in _PLANNED:
        hint = "planned, not in this version"
    elif name.endswith(".py") or os.path.isfile(name):
        hint = f"did you mean `reach run {name}`?"
    say(f"reach: there is no command {visible(name)}\n       {visible(hint or '`reach help` lists them')}")
    return _USAGE
