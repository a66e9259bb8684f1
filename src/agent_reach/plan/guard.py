"""The files of the Python-level guard: its code, its codec, and the table of what is granted."""

from __future__ import annotations

from agent_reach._util import protected
from agent_reach.plan import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.model import Contract
    from agent_reach.plan.facts import Facts


def table(contract: Contract, facts: Facts) -> bytes:
    """Write down what the guard may let pass without asking.

    The guard explains and does not enforce: a path that is missing here is asked for, and one that is listed
    too much is refused by the kernel.
    """
    known = facts.interpreter
    library = [*facts.system.directories, known.stdlib, *known.search, known.prefix, known.base_prefix]
    grants = list(zip(contract.files, facts.paths, strict=True))
    read = [*library, known.executable, known.real, "/proc", "/dev", layout.GUARD, layout.SECRETS]
    read += [name.rstrip("/") for name, _ in facts.system.files]
    read += [real for _, real in facts.system.files]
    read += ["/etc/passwd", "/etc/group", "/etc/hosts", "/etc/hostname", "/etc/nsswitch.conf", "/etc/resolv.conf"]
    read += [path for path, _ in facts.system.links]
    read += [facts.project.root] if facts.project.root else []
    read += [path.rstrip("/") for path in facts.project.files]
    read += layout.honoured(contract, facts)
    read += [path for command in facts.commands for pair in command.files for path in pair]
    read += [path for command in facts.commands for path in command.directories]
    fresh = [facts.private] if facts.private else ["/tmp", "/var/tmp", facts.caller.home]  # noqa: S108 - names inside
    scratch = [*fresh, "/dev", "/proc"]
    for grant, fact in grants:
        names = [grant.path] if grant.source else [fact.path, fact.real]
        read += names if grant.source or layout.reads(grant) else []
    granted = [name for grant, fact in grants if layout.writes(grant) for name in (fact.path, fact.real)]
    sections = {
        "read": read,
        "scratch": scratch,
        "write": scratch + granted,
        "granted": granted,
        "append": [name for grant, fact in grants if grant.mode.rstrip("b") == "a" for name in (fact.path, fact.real)],
        "protected": protected.NAMES,
        "port": [str(rule.port) for rule in contract.network],
        "hidden": [path for path, _ in facts.project.masks],
        "home": [] if facts.private else [facts.caller.home],
        "library": library,
        "start": [contract.options.multiprocessing_start_method],
        "host": [rule.host for rule in contract.network] + ["localhost"],
    }
    lines = [
        f"{section} {_escaped(value)}"
        for section, values in sections.items()
        for value in dict.fromkeys(values)
        if value
    ]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _escaped(value: str) -> str:
    """Keep one value on one line."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")
