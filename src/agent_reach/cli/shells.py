"""Completion scripts for bash, zsh and fish, written from the tables of commands and options."""

from __future__ import annotations

from agent_reach.cli.catalogue import COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.cli.commands import Command
    from agent_reach.cli.options import Option

_PROGRAMS = "reach agent-reach-runtime"
_NOTE = "written by `reach completion {name}`; do not edit"


def script(shell: str) -> str:
    """Return the script for one shell.

    Args:
        shell: ``bash``, ``zsh`` or ``fish``.
    """
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()


# -- bash ------------------------------------------------------------------------------------------------

_BASH = r"""# bash completion for reach; {note}

_reach() {{
    local cur prev command index word values flags
    cur=${{COMP_WORDS[COMP_CWORD]}}
    prev=${{COMP_WORDS[COMP_CWORD - 1]}}
    COMPREPLY=()
    # bash splits --option=value into three words
    if [[ $cur == '=' ]]; then cur=; elif [[ $prev == '=' ]]; then prev=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W '{commands} --help --version' -- "$cur")
        return
    fi
    command=${{COMP_WORDS[1]}}
    case $command in
{table}
        *) return ;;
    esac
    # Behind the program's name every word is the program's own.
    if [[ $command == @({programs}) ]]; then
        for ((index = 2; index < COMP_CWORD; index++)); do
            word=${{COMP_WORDS[index]}}
            case $word in
                --) ((index + 1 < COMP_CWORD)) && _reach_files && return ;;
                {enders}) ((index + 1 < COMP_CWORD)) && _reach_files && return ;;
                -) _reach_files && return ;;
                =) ;;
                -*) [[ " $values " == *" $word "* ]] && ((index++)) ;;
                *) [[ ${{COMP_WORDS[index - 1]}} == '=' ]] || {{ _reach_files && return; }} ;;
            esac
        done
    fi
    case $prev in
{arguments}
    esac
    if [[ " $values " == *" $prev "* ]]; then return; fi
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$flags $values" -- "$cur")
        return
    fi
    case $command in
{words}
    esac
}}

_reach_files() {{
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    return 0
}}

complete -F _reach {names}
"""


def _bash() -> str:
    """Return the script for bash, 4.4 or newer."""
    table, words = [], []
    for command in COMMANDS:
        values = " ".join(name for option in command.options if option.value for name in option.names)
        flags = " ".join(name for option in command.options if not option.value for name in option.names)
        table.append(f"        {command.name}) values='{values}' flags='{flags}' ;;")
        action = _bash_words(command)
        if action:
            words.append(f"        {command.name}) {action} ;;")
    enders = [name for option in _all_options() if option.ends and option.value for name in option.names]
    return _BASH.format(
        note=_NOTE.format(name="bash"),
        commands=" ".join(command.name for command in COMMANDS),
        table="\n".join(table),
        programs="|".join(command.name for command in COMMANDS if command.program),
        enders=" | ".join(dict.fromkeys(enders)),
        arguments="\n".join(_bash_arguments()),
        words="\n".join(words),
        names=_PROGRAMS,
    )


def _bash_arguments() -> list[str]:
    """Return the branches that complete the value of an option."""
    lines = []
    for names, option in _by_names():
        action = _bash_value(option)
        if action:
            lines.append(f"        {' | '.join(names)}) {action} && return ;;")
    return lines


def _bash_value(option: Option) -> str:
    """Return what completes a value, or nothing."""
    if isinstance(option.complete, tuple):
        words = " ".join(option.complete)
        return f"mapfile -t COMPREPLY < <(compgen -W '{words}' -- \"$cur\")" if words else ""
    if option.complete == "command":
        return 'mapfile -t COMPREPLY < <(compgen -c -- "$cur")'
    return "_reach_files"


def _bash_words(command: Command) -> str:
    """Return what completes a plain word of a command, or nothing."""
    if command.name == "help":
        words = " ".join(other.name for other in COMMANDS)
        return f"mapfile -t COMPREPLY < <(compgen -W '{words}' -- \"$cur\")"
    if command.words:
        return f"mapfile -t COMPREPLY < <(compgen -W '{' '.join(command.words)}' -- \"$cur\")"
    if command.complete == "command":
        return 'mapfile -t COMPREPLY < <(compgen -c -- "$cur")'
    return "_reach_files" if command.complete == "file" else ""


# -- zsh -------------------------------------------------------------------------------------------------

_ZSH = r"""#compdef {names}
# zsh completion for reach; {note}

_reach() {{
    local context state state_descr line
    typeset -A opt_args
    _arguments -C '1:command:->command' '*::argument:->argument'
    case $state in
        command)
            local -a commands
            commands=(
{commands}
            )
            _describe command commands
            ;;
        argument)
            case $words[1] in
{table}
            esac
            ;;
    esac
}}

_reach "$@"
"""


def _zsh() -> str:
    """Return the script for zsh."""
    table = []
    for command in COMMANDS:
        specs = [_zsh_option(name, option) for option in command.options for name in option.names]
        specs += _zsh_words(command)
        lines = " \\\n                        ".join(specs)
        table.append(
            f"                {command.name})\n                    _arguments -s -S \\\n"
            f"                        {lines}\n                    ;;"
        )
    return _ZSH.format(
        names=_PROGRAMS,
        note=_NOTE.format(name="zsh"),
        commands="\n".join(f"                {_quoted(f'{c.name}:{c.summary}')}" for c in COMMANDS),
        table="\n".join(table),
    )


def _zsh_option(name: str, option: Option) -> str:
    """Return the spec of an option for `_arguments`."""
    doc = _short(option.doc).replace("[", "(").replace("]", ")").replace(":", "\\:")
    many = "*" if option.many else ""
    if not option.value:
        return _quoted(f"{many}{name}[{doc}]")
    equals = "=" if name.startswith("--") else "+"
    return _quoted(f"{many}{name}{equals}[{doc}]:{option.value.replace(':', ' ')}:{_zsh_value(option)}")


def _zsh_value(option: Option) -> str:
    """Return the action that completes a value."""
    if isinstance(option.complete, tuple):
        return f"({' '.join(option.complete)})" if option.complete else " "
    return "_command_names -e" if option.complete == "command" else "_files"


def _zsh_words(command: Command) -> list[str]:
    """Return the specs of plain words."""
    if command.name == "help":
        return [_quoted(f"1:command:({' '.join(other.name for other in COMMANDS)})")]
    if command.words:
        return [_quoted(f"1:word:({' '.join(command.words)})")]
    if command.program:
        action = "_command_names -e" if command.complete == "command" else "_files"
        return [_quoted(f"1:program:{action}"), _quoted("*::arguments:_normal")]
    return [_quoted("1:file:_files")] if command.complete == "file" else []


def _quoted(text: str) -> str:
    """Return a word in single quotes, as every shell reads it."""
    return "'" + text.replace("'", "'\\''") + "'"


# -- fish ------------------------------------------------------------------------------------------------


_FISH = r"""# fish completion for reach; {note}

# Whether the words are those of one command, and not yet those of the program that it runs.
function __reach_at -a name
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $name; or return 1
    contains -- $name {programs}; or return 0
    set -l pending
    for word in $words[3..-1]
        if test "$pending" = program
            return 1
        else if test -n "$pending"
            set pending
            continue
        end
        switch $word
            case - --stdin
                return 1
            case -- {enders}
                set pending program
            case {values}
                set pending value
            case '-*'
            case '*'
                return 1
        end
    end
    return 0
end

function __reach_in_program
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] {programs}; and not __reach_at $words[2]
end

"""


def _fish() -> str:
    """Return the script for fish."""
    taking = [option for option in _all_options() if option.value]
    lines = []
    for program in _PROGRAMS.split():
        lines += [f"complete -c {program} -f", f"complete -c {program} -n __reach_in_program -F"]
        lines += [
            f"complete -c {program} -n __fish_use_subcommand -a {command.name} -d {_fish_quoted(command.summary)}"
            for command in COMMANDS
        ]
        for command in COMMANDS:
            lines += _fish_command(program, command)
        lines.append("")
    head = _FISH.format(
        note=_NOTE.format(name="fish"),
        programs=" ".join(command.name for command in COMMANDS if command.program),
        enders=" ".join(dict.fromkeys(name for option in taking if option.ends for name in option.names)),
        values=" ".join(dict.fromkeys(name for option in taking if not option.ends for name in option.names)),
    )
    return head + "\n".join(lines)


def _fish_command(program: str, command: Command) -> list[str]:
    """Return the lines of one command."""
    start = f"complete -c {program} -n '__reach_at {command.name}'"
    lines = []
    for option in command.options:
        names = " ".join(_fish_name(name) for name in option.names if name != "-")
        lines.append(f"{start} {names}{_fish_value(option)} -d {_fish_quoted(_short(option.doc))}")
    if command.name == "help":
        lines.append(f"{start} -a '{' '.join(other.name for other in COMMANDS)}'")
    elif command.words:
        lines.append(f"{start} -a '{' '.join(command.words)}'")
    if command.complete == "command":
        lines.append(f"{start} -a '(__fish_complete_command)'")
    elif command.complete == "file":
        lines.append(f"{start} -F")
    return lines


def _fish_name(name: str) -> str:
    """Return an option's name as `complete` takes it."""
    return f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"


def _fish_value(option: Option) -> str:
    """Return what `complete` needs for a value."""
    if not option.value:
        return ""
    if isinstance(option.complete, tuple):
        return f" -x -a '{' '.join(option.complete)}'" if option.complete else " -x"
    return " -x -a '(__fish_complete_command)'" if option.complete == "command" else " -r -F"


def _fish_quoted(text: str) -> str:
    """Return a word in single quotes, as fish reads it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# -- all -------------------------------------------------------------------------------------------------


def _all_options() -> list[Option]:
    """Return every option of every command."""
    return [option for command in COMMANDS for option in command.options]


def _by_names() -> list[tuple[tuple[str, ...], Option]]:
    """Return each option once."""
    found: dict[tuple[str, ...], Option] = {}
    for option in _all_options():
        found.setdefault(option.names, option)
    return list(found.items())


def _short(doc: str) -> str:
    """Return the first clause of a sentence, for the one line of a menu."""
    return doc.partition(". ")[0].partition(": ")[0].rstrip(".")
