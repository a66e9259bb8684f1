"""All commands: what each is called, takes and does."""

from __future__ import annotations

from agent_reach.cli import options
from agent_reach.cli.commands import RUN, Command
from agent_reach.cli.options import HELP, JSON, Option

SHELLS = ("bash", "zsh", "fish")

COMMANDS = (
    RUN,
    Command(
        "exec",
        "exec_",
        "Run a command, or a script, under a contract.",
        ("[OPTIONS] -- COMMAND [ARGUMENTS]", "[OPTIONS] --script SCRIPT [ARGUMENTS]"),
        options.EXEC,
        program="command",
        complete="command",
        about="The command has to be granted: in resources.commands, or with --command.",
        examples=(
            ("reach exec --target prod-db --script ./sync.py", "a script, with a target's grants"),
            ("reach exec --command git -- git status", "a command"),
        ),
    ),
    Command(
        "check",
        "check",
        "Say what is wrong with a contract.",
        ("[OPTIONS] [SCRIPT | CONTRACT]",),
        (
            *options.PROGRAM,
            *options.CHOICE,
            *options.GRANTS,
            *options.HOUSE,
            Option(("--format",), "FORMAT", "text or json.", "Output", complete=("text", "json")),
            HELP,
        ),
        program="script",
        complete="file",
        about="Exit status: 0 clean, 1 findings, 2 the contract cannot be used.",
        examples=(
            ("reach check", "the reach.yaml of this directory, every profile"),
            ("reach check --env prod job.py", "the contract of job.py, one profile"),
            ("reach check --format json reach.yaml", "for an editor or CI"),
        ),
    ),
    Command(
        "explain",
        "explain",
        "Show what a program would get, and from which line.",
        ("[OPTIONS] [SCRIPT | CONTRACT | -m MODULE] [ARGUMENTS]",),
        (*options.RUN[:-1], JSON, HELP),
        program="script",
        complete="file",
        examples=(
            ("reach explain --env prod job.py", "everything that job.py gets with the profile prod"),
            ("reach explain --json job.py", "the same for machines"),
        ),
    ),
    Command(
        "init",
        "init",
        "Write a commented contract to start from.",
        ("[--output FILE|-] [SCRIPT]",),
        (Option(("--output",), "FILE|-", "Write there; - is standard output.", complete="file"), HELP),
        most_words=1,
        complete="file",
        about="Writes SCRIPT.reach.yaml, or reach.yaml without a script. Overwrites nothing.",
        examples=(
            ("reach init job.py", "writes job.reach.yaml"),
            ("reach init", "writes reach.yaml, for the whole directory"),
        ),
    ),
    Command(
        "doctor",
        "doctor",
        "Try each mechanism of the sandbox on this host.",
        ("[--json | --apparmor]",),
        (
            Option(("--apparmor",), doc="Print the AppArmor profile for hosts that restrict user namespaces."),
            JSON,
            HELP,
        ),
        about="Exit status: 0 when the tier is full, 1 otherwise.",
        examples=(
            ("reach doctor", "what works, what is missing, the one fix"),
            ("reach doctor --apparmor | sudo tee /etc/apparmor.d/reach", "the profile for Ubuntu 24.04"),
        ),
    ),
    Command(
        "log",
        "log",
        "Show the records of runs.",
        ("[-n N] [--json]", "[--json] RUN", "[--json] verify"),
        (
            Option(("-n", "--count"), "N", "How many runs, the newest ones; 20 by default, `all` for every one."),
            Option(("--json",), doc="One event a line."),
            HELP,
        ),
        most_words=1,
        words=("verify",),
        examples=(
            ("reach log", "the newest runs"),
            ("reach log 6929c1", "one run; the start of its name is enough"),
            ("reach log --json -n all", "everything, one event a line"),
            ("reach log verify", "is the chain of records whole? exit 1 if not"),
        ),
    ),
    Command("schema", "schema", "Print the JSON Schema of a contract.", ("",), (HELP,)),
    Command("version", "version", "Print the version.", ("[--json]",), (JSON, HELP)),
    Command(
        "completion",
        "completion",
        "Print a completion script.",
        ("(bash | zsh | fish)",),
        (HELP,),
        most_words=1,
        words=SHELLS,
        examples=(
            ('eval "$(reach completion bash)"', "in ~/.bashrc"),
            ("reach completion zsh > ~/.zfunc/_reach", "zsh, with ~/.zfunc in fpath"),
            ("reach completion fish > ~/.config/fish/completions/reach.fish", "fish"),
        ),
    ),
    Command("help", "help_", "Show help for a command.", ("[COMMAND]",), (HELP,), most_words=1),
)
