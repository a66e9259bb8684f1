"""`reach explain`: the resolved plan in plain words, each part with the line that it came from."""

from __future__ import annotations

import os

from agent_reach import engine, prepare
from agent_reach._util.visible import visible
from agent_reach.cli import failures, request
from agent_reach.cli.clauses import shorten
from agent_reach.cli.terminal import Paint, paint_for, say
from agent_reach.errors import ContractError, ReachError
from agent_reach.plan.explain import explain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from agent_reach.cli.options import Parsed
    from agent_reach.prepare import Prepared

_UNUSABLE = 2
_FAILED = 1
_WIDE = 12
_NAMES = 10
_MODES = {"r": "read", "w": "write", "a": "append", "rw": "read, write", "r+": "read, write"}
_CHOSEN = {
    "python": "asked for",
    "shebang": "first line of the script",
    "VIRTUAL_ENV": "active virtual environment",
    ".venv": ".venv of the project",
    "CONDA_PREFIX": "active conda environment",
    "PATH": "first python3 on PATH",
}


def execute(parsed: Parsed, environ: Mapping[str, str]) -> int:
    """Show what a program would get; nothing is run and no secret is asked for.

    Raises:
        UsageError: the command line cannot be understood.
    """
    try:
        asked = request.for_contract(parsed)
        prepared = prepare.prepare(asked, environ)
        if parsed.has("--save"):
            from agent_reach.cli.save import save

            save(asked, prepared.contract, prepared.caller)
        receipt = engine.make_receipt(prepared, _held(prepared))
    except (ReachError, OSError) as error:
        say(failures.words(error))
        return _UNUSABLE if isinstance(error, ContractError) else _FAILED
    value = explain(prepared.contract, prepared.facts, prepared.plan, receipt)
    if parsed.has("--json"):
        import json

        print(json.dumps(value))
    else:
        anything = asked.kind != "module" or bool(asked.target)
        print("\n".join(Page(value, prepared.caller.cwd, paint_for(1, environ)).lines(program=anything)))
    return 0


def _held(prepared: Prepared) -> dict[str, str]:
    """Find out what would hold each limit, by making the run's control group and removing it again."""
    from agent_reach.linux import cgroups
    from agent_reach.sandbox import limits

    plan = prepared.plan
    held = limits.held_without(plan, 1 if prepared.facts.started_by_root else os.geteuid())
    wanted = limits.by_control_group(plan)
    group = cgroups.create(f"reach-explain-{os.getpid()}", wanted) if wanted else None
    if group is not None:
        held |= cgroups.held(group)
        cgroups.remove(group)
    return held


class Page:
    """The text for people.

    Args:
        value: what `plan.explain` says.
        cwd: the caller's working directory, for short paths.
        paint: for a terminal with or without colour.
    """

    def __init__(self, value: dict[str, Any], cwd: str, paint: Paint) -> None:
        self._value = value
        self._cwd = cwd
        self._paint = paint

    def lines(self, *, program: bool) -> list[str]:
        """Return the whole page.

        Args:
            program: whether a program is named, and not the contract alone.
        """
        found = [*self._about(program=program), *self._files(), *self._environment(), *self._network()]
        return [*found, *self._commands(), *self._limits(), *self._sandbox()]

    def _section(self, title: str, rows: Iterable[str]) -> list[str]:
        """Return a heading and its rows."""
        return ["", self._paint("bold", title), *(f"  {row}" for row in rows)]

    def _row(self, head: str, text: str, item: Mapping[str, Any] | None = None, *, wide: int = _WIDE) -> str:
        """Return one line: a head, a text, and where it was written."""
        where = self._where(item) if item else ""
        line = f"{visible(head).ljust(wide)}  {text}".rstrip()
        return f"{line}  {self._paint('dim', where)}" if where else line

    def _where(self, item: Mapping[str, Any]) -> str:
        """Return file, line and profile of an entry."""
        file, line, profile = (item.get(key) for key in ("file", "line", "profile"))
        if file == "default":
            return "(default)"
        if file == "cli":
            return "(command line)"
        return f"({visible(self._path(str(file)))}:{line}{', ' + visible(str(profile)) if profile else ''})"

    def _path(self, path: str) -> str:
        """Return a path as a person in the working directory would write it."""
        return visible(shorten(path, self._cwd), 300)

    def _about(self, *, program: bool) -> list[str]:
        """Say what would run, under which contract, as whom."""
        value = self._value
        contract, identity, python = value["contract"], value["identity"], value["interpreter"]
        user = value["user"]
        parts = [self._path(contract["path"])] if contract["path"] else ["none: nothing is granted"]
        parts += [f"profile {contract['profile']}"] if contract["profile"] else []
        parts += [f"target {target}" for target in contract["targets"]]
        roles = f", roles {', '.join(identity['roles'])} (claims, not grants)" if identity["roles"] else ""
        why = _CHOSEN.get(python["chosen_by"], python["chosen_by"])
        rows = [self._row("contract", visible(", ".join(parts)))]
        if identity["name"]:
            rows.append(self._row("identity", visible(f"{identity['name']} ({identity['type']}){roles}")))
        if program:
            argv = " ".join(value["program"]["argv"][1:])
            rows.append(self._row("program", visible(argv, 200)))
        rows.append(self._row("interpreter", f"{self._path(python['executable'])}, Python {python['version']} ({why})"))
        rows.append(
            self._row(
                "user", f"{visible(user['name'])}, uid {user['uid']}; home {visible(user['home'])} (private, empty)"
            )
        )
        return [self._paint("bold", "Run"), *(f"  {row}" for row in rows)]

    def _files(self) -> list[str]:
        """Say which files it sees."""
        value, rows = self._value, []
        project = value["project"]
        if project["root"]:
            what = "its Python source and package data" if project["read"] == "code" else "the project"
            rows.append(self._row("read", f"{visible(project['root'])}/  {self._paint('dim', f'({what})')}"))
            rows += self._hidden(project["hidden"], project["root"])
        rows += [
            self._row("read", f"{visible(path)}  {self._paint('dim', '(the program itself)')}")
            for path in project["files"]
        ]
        for item in value["files"]:
            rows += self._file(item)
        rows += [self._row("read only", self._path(path)) for path in value["read_only"]]
        rows += [self._row("hidden", f"{self._path(path)} (a socket, FIFO or device)") for path in value["hidden"]]
        rows.append(self._row("read", "the interpreter, system libraries, /usr/share, parts of /etc"))
        full = value["sandbox"]["tier"] == "full"
        scratch = "/tmp, /var/tmp, /dev/shm and the home" if full else "a TMPDIR and a HOME of the run's own"  # noqa: S108
        rows.append(self._row("scratch", f"{scratch}, gone at the end"))
        return self._section("Files", rows)

    def _hidden(self, paths: list[str], root: str) -> list[str]:
        """Name what of the project stays hidden."""
        if not paths:
            return []
        names = [visible(shorten(path, root)) for path in paths[:_NAMES]]
        more = f" and {len(paths) - _NAMES} more" if len(paths) > _NAMES else ""
        return [self._row("", f"but not {', '.join(names)}{more}")]

    def _file(self, item: dict[str, Any]) -> list[str]:
        """Describe one file grant."""
        mode = _MODES.get(item["mode"].removesuffix("b"), item["mode"])
        slash = "/" if item["kind"] == "directory" else ""
        rows = [self._row(mode, f"{visible(item['path'])}{slash}", item)]
        if item["kind"] == "staged":
            rows.append(self._row("", f"fetched from {visible(item['source'])}"))
        elif item["kind"] == "missing":
            rows.append(self._row("", "does not exist" + (", and is required" if item["required"] else "")))
        elif item["real"] and item["real"] != item["path"]:
            rows.append(self._row("", f"is {visible(item['real'])}"))
        return rows

    def _environment(self) -> list[str]:
        """Say which names exist and where their values come from."""
        environment = self._value["environment"]
        declared = environment["declared"]
        wide = max([_WIDE, *(len(item["name"]) for item in declared if len(item["name"]) < 2 * _WIDE)])
        rows = []
        for item in declared:
            rows.append(self._row(item["name"], _origin_of(item), item, wide=wide))
            rows += [self._row("", f"delivered as {item['delivered_at']}", wide=wide)] if item["delivered_at"] else []
        always = ", ".join(environment["always"])
        rows += _folded("also", always, wide)
        return self._section("Environment (no other name exists)", rows)

    def _network(self) -> list[str]:
        """Say where it may connect to."""
        rules = self._value["network"]
        rows = [self._row(rule["protocol"], visible(f"{rule['host']}:{rule['port']}"), rule) for rule in rules]
        free = "its own loopback" if self._value["sandbox"]["tier"] == "full" else ""
        rows += [self._row("free", free)] if free else []
        return self._section("Network", rows or ["nothing"])

    def _commands(self) -> list[str]:
        """Say which commands it may start."""
        rows = []
        for item in self._value["commands"]:
            found = visible(item["found"]) or self._paint("yellow", "not on PATH")
            rows.append(self._row(item["name"], found, item))
            others = [path for path in (*item["files"], *item["directories"]) if path != item["found"]]
            rows += [self._row("", f"with {visible(path)}") for path in others]
        return self._section("Commands", [*rows, self._row("always", "the interpreter")])

    def _limits(self) -> list[str]:
        """Say what is limited and how firmly."""
        rows = []
        for item in self._value["limits"]:
            amount = amount_of(item["name"], item["value"])
            by = f" ({visible(item['by'])})" if item["by"] else ""
            level = item["level"] if item["level"] == "enforced" else self._paint("yellow", item["level"])
            rows.append(self._row(item["name"], f"{amount:<10}  {level}{by}", item))
        return self._section("Limits", rows)

    def _sandbox(self) -> list[str]:
        """Say what enforces all this."""
        value = self._value
        sandbox = value["sandbox"]
        wide = max(len(line["what"]) for line in value["receipt"])
        rows = [self._row("tier", f"{sandbox['tier']} (at least {sandbox['minimum']})", wide=wide)]
        if sandbox["on_denial"] != "continue":
            rows.append(self._row("on denial", sandbox["on_denial"], wide=wide))
        rows += [
            self._row(line["what"], f"{line['level']} ({visible(line['by'])})", wide=wide) for line in value["receipt"]
        ]
        rows += [
            self._row("note", visible(note), wide=wide)
            for note in value["notes"]
            if not note.startswith("interpreter ")  # said above
        ]
        return self._section("Enforcement", rows)


def _origin_of(item: dict[str, Any]) -> str:
    """Say where the value of a name comes from."""
    source = visible(item["from"])
    words = {"contract": "value in the contract", "caller": "from the caller", "template": "made from other names"}
    text = words.get(source, source)
    if source not in words:
        text += ", else a default" if item["default"] else ""
    return f"{text}, required" if item["required"] else text


def _folded(head: str, text: str, wide: int, width: int = 76) -> list[str]:
    """Return a list of words under one head, folded at commas."""
    from agent_reach.cli.help_ import wrap

    parts = list(wrap(text, width - wide - 2))
    return [f"{(head if number == 0 else '').ljust(wide)}  {part}" for number, part in enumerate(parts)]


def amount_of(name: str, value: float) -> str:
    """Write the amount of a limit with its unit.

    Args:
        name: name of the limit.
        value: seconds, bytes, bytes per second or a count.
    """
    if name in {"wall", "grace", "cpu_time"}:
        return f"{value:g} s"
    if name in {"memory", "swap", "scratch", "output", "io_read", "io_write"}:
        rate = "/s" if name.startswith("io_") else ""
        for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
            if value >= size:
                return f"{value / size:g} {unit}{rate}"
        return f"{value:g} B{rate}"
    return f"{value:g}"
