"""Tier ``reduced``: the host's own file system, seen through Landlock rules alone.

Landlock grants by hierarchy and cannot subtract: what lies beside something hidden is listed entry by entry.
"""

from __future__ import annotations

from agent_reach.errors import Unavailable
from agent_reach.plan import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.model import Contract
    from agent_reach.plan.facts import Facts

MOST_ENTRIES = 4096
# Not pts: the terminals of the same user are there, with what is typed on them. The worker adds its own.
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")
_PROC = ("self", "meminfo", "cpuinfo", "stat", "filesystems", "loadavg", "uptime", "version", "sys/kernel/random")
# Without nsswitch.conf and hosts the C library asks DNS, and so the resolver of ours that knows what is granted;
# a name that it found in the host's own files would arrive here as an address that no rule names.
_ACCOUNTS = ("/etc/passwd", "/etc/group", "/etc/resolv.conf")
_PROTOCOLS = ("tcp", "http", "https")


def check(contract: Contract) -> None:
    """Refuse what this tier cannot give, by name, before anything runs.

    Raises:
        Unavailable: a grant needs tier ``full``.
    """
    for grant in contract.files:
        if grant.source:
            raise Unavailable(
                "a file at another path than its own",
                needed=f"resources.files: {grant.path} with `source` ({grant.origin.file}:{grant.origin.line})",
                found="tier `reduced`, which shows the host's own paths only",
                fix="run `reach doctor` for what keeps tier `full` away",
            )


def readable(contract: Contract, facts: Facts) -> tuple[str, ...]:
    """List the paths to read; a directory that hides something is replaced by its other entries."""
    known, system = facts.interpreter, facts.system
    paths = [*system.directories, *(real for _, real in system.files), *_ACCOUNTS]
    paths += [known.executable, known.real, known.prefix, known.base_prefix, *known.search, *known.extra]
    paths += [path for command in facts.commands for pair in command.files for path in pair]
    paths += [path for command in facts.commands for path in command.directories]
    paths += facts.entries
    paths += [path.rstrip("/") for path in facts.project.files]
    pieces = {piece.path: piece.readable for piece in facts.pieces}
    for grant, fact in zip(contract.files, facts.paths, strict=True):
        if layout.reads(grant):
            paths += pieces.get(fact.real, (fact.real,))
    paths += [f"/dev/{name}" for name in _DEVICES] + [f"/proc/{name}" for name in _PROC]
    paths += [facts.private]
    too_wide = {"/", "/usr", "/usr/local", facts.caller.home}
    return tuple(path for path in dict.fromkeys(paths) if path and path not in too_wide)


def listable(facts: Facts) -> tuple[str, ...]:
    """List directories whose names may be listed although not all of their content may be read."""
    return (*((facts.project.root,) if facts.project.root else ()), *(piece.path for piece in facts.pieces))


def writable(contract: Contract, facts: Facts) -> tuple[str, ...]:
    """List the paths to write."""
    pieces = {piece.path: piece.writable for piece in facts.pieces}
    grants: list[str] = []
    for grant, fact in zip(contract.files, facts.paths, strict=True):
        if layout.writes(grant):
            grants += pieces.get(fact.real, (fact.real,))
    return (*grants, facts.private, *(f"/dev/{name}" for name in _DEVICES))


def environment(facts: Facts) -> dict[str, str]:
    """Return the names that differ from tier ``full``: fresh directories, and name lookups over TCP.

    The broker answers TCP; a datagram of the C library's resolver would leave the host unseen.
    """
    return {
        "HOME": f"{facts.private}/home",
        "TMPDIR": f"{facts.private}/tmp",  # noqa: S108 - below the private directory
        "RES_OPTIONS": "use-vc timeout:2 attempts:2",
    }


def notes(contract: Contract, facts: Facts) -> tuple[str, ...]:
    """Say where a grant gives less than it says: who may create in a directory may create below it, everywhere."""
    written = {fact.real for grant, fact in zip(contract.files, facts.paths, strict=True) if layout.writes(grant)}
    return tuple(
        f"files: {piece.path}: nothing is created or removed beside {piece.kept[0]}, which the program may not change"
        for piece in facts.pieces
        if piece.path in written
    )
