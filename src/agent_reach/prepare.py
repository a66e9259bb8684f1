"""From a request to a plan: find the contract, look at the host, build."""

from __future__ import annotations

import os

from agent_reach._util.record import Record
from agent_reach.audit.place import record_place
from agent_reach.contract import load
from agent_reach.errors import ContractError, Finding, Unavailable
from agent_reach.host import caller as host_caller
from agent_reach.host import commands, interpreter, paths, project, system
from agent_reach.host.compiled import compiled
from agent_reach.host.model import Interpreter, PathFact, ProjectFact
from agent_reach.linux import probe
from agent_reach.plan import build, guard, layout, reduced
from agent_reach.plan.facts import Facts, Invocation, Pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.contract.model import Contract
    from agent_reach.host.model import Caller, CommandFact
    from agent_reach.linux.probe import Abilities
    from agent_reach.plan.model import SandboxPlan

_TERMINAL_NAMES = ("LC_ALL", "TZ", "TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
_NEVER_A_PROJECT = ("/", "/tmp", "/var/tmp")  # noqa: S108 - names to compare with
_TIERS = {"none": -1, "advisory": 0, "reduced": 1, "full": 2}


class Request(Record):
    """What a door asks for.

    Args:
        kind: ``script``, ``module``, ``code``, ``stdin`` or ``command``.
        target: script as typed, module, code, ``-``, or the command's name.
        arguments: everything behind it.
        contract: path given by ``--contract``, or empty for discovery.
        contract_data: content given by ``--contract fd:N``, or None.
        profile: ``--env``, or None.
        targets: ``--target``.
        python: ``--python``.
        read, write, net, passes, commands, limits: what the command line adds.
        minimum: ``--minimum``.
        use_cache, use_record: cleared by ``--no-cache`` and ``--no-record``.
    """

    kind: str
    target: str
    arguments: tuple[str, ...] = ()
    contract: str = ""
    contract_data: bytes | None = None
    profile: str | None = None
    targets: tuple[str, ...] = ()
    python: str = ""
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    net: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    minimum: str = ""
    use_cache: bool = True
    use_record: bool = True


class Places(Record):
    """Where reach keeps what outlives a run.

    Args:
        state: directory of the records.
        cache: directory of compiled contracts, filters and interpreter answers; empty without a cache.
    """

    state: str
    cache: str


class Prepared(Record):
    """A plan, with what is needed to carry it out and to explain it; `script` is absolute, or empty."""

    request: Request
    contract: Contract
    caller: Caller
    facts: Facts
    places: Places
    abilities: Abilities
    plan: SandboxPlan
    script: str = ""


def places(environ: Mapping[str, str], home: str, *, use_cache: bool = True) -> Places:
    """Choose the directories of CONTRACT section 10."""
    cache = environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):
        cache = os.path.join(home, ".cache")
    return Places(record_place(environ, home), os.path.join(cache, "reach") if use_cache else "")


def find_document(request: Request, caller: Caller) -> tuple[str | None, bytes | None]:
    """Return the path of the document that belongs to a request, if any, and its content where it was read.

    Raises:
        ContractError: somebody else could have written it, or the block in the script cannot be read.
    """
    script = _script(request, caller)
    path = request.contract or load.discover(script or None, caller.cwd, caller.home)
    if script and not request.contract and not (path and path.endswith(".reach.yaml")):
        # The script's own word is nearer than a contract of its directory.
        data = load.inline(script)
        if data is not None:
            return script, data
    return path, request.contract_data


def find_contract(request: Request, caller: Caller, where: Places, environ: Mapping[str, str]) -> Contract:
    """Load the contract that belongs to a request, with the command line's grants, narrowed by the system's.

    Raises:
        ContractError: it cannot be used.
    """
    path, data = find_document(request, caller)
    profile, note = load.choose_profile(request.profile, environ)
    cache_dir = os.path.join(where.cache, "contracts") if where.cache else None
    if not path:
        if request.profile is not None or request.targets:
            raise ContractError(
                (
                    Finding(
                        "E_NO_CONTRACT",
                        "--env and --target choose a part of a contract, and none was found",
                        hint="write one with `reach init`, or name it with --contract FILE",
                    ),
                )
            )
        contract = load.empty()
    else:
        contract = load.load(
            path,
            profile=profile,
            targets=request.targets,
            home=caller.home,
            cache_dir=cache_dir,
            data=data,
            origin_name=request.contract if request.contract_data is not None else None,
        )
    contract = load.with_cli_grants(
        contract,
        read=request.read,
        write=request.write,
        net=request.net,
        passes=request.passes,
        commands=request.commands,
        limits=request.limits,
        cwd=caller.cwd,
        home=caller.home,
    )
    contract = load.narrow_by_system(contract, home=caller.home, cache_dir=cache_dir)
    if any(grant.glob for grant in contract.files):
        from agent_reach.staging.glob import expand_grants

        files, left_out = expand_grants(contract.files)
        notes = tuple(f"left out, it leads out of its pattern's directory: {path}" for path in left_out)
        contract = contract.replace(files=files, notes=contract.notes + notes)
    return contract.replace(notes=(*contract.notes, note)) if note else contract


def _script(request: Request, caller: Caller) -> str:
    """Return the absolute path of the script, as typed, or nothing."""
    return os.path.normpath(os.path.join(caller.cwd, request.target)) if request.kind == "script" else ""


def prepare(request: Request, environ: Mapping[str, str]) -> Prepared:
    """Build the plan of a request.

    Raises:
        ContractError: the contract cannot be used.
        Unavailable: this host cannot do what it asks for.
    """
    caller = host_caller.look_at_caller(environ)
    where = places(environ, caller.home, use_cache=request.use_cache)
    contract = find_contract(request, caller, where, environ)
    abilities = probe.abilities(where.cache)
    tier = choose_tier(contract, request.minimum, abilities)
    script = _script(request, caller)
    root = _project_root(contract, script, caller)
    known = interpreter.discover(
        asked=request.python or contract.python,
        script=script,
        project_root=root,
        environ=environ,
        cache_dir=where.cache or None,
    )
    declared = tuple(paths.look(grant.path) if not grant.source else PathFact(grant.path) for grant in contract.files)
    shown = _project(contract, root, script, known, declared)
    facts = Facts(
        tier=tier,
        landlock=abilities.landlock,
        pidfd_getfd=abilities.pidfd_getfd,
        caller=caller,
        interpreter=known,
        project=shown,
        system=system.look_at_system(),
        paths=declared,
        specials=_specials(contract, declared),
        own=_own_places(where, tier, caller, contract, declared) + _own_in_project(where, root),
        protected=_protected(contract, declared, known),
        commands=_commands(contract, environ),
        private=f"/tmp/reach-run-{os.urandom(8).hex()}" if tier != "full" else "",  # noqa: S108 - 0700, ours
        terminal=tuple((name, environ[name]) for name in _TERMINAL_NAMES if name in environ) + _zone(contract),
        python_path=_python_path(environ),
        started_by_root=caller.uid == 0 and tier == "full",
    )
    if tier != "full":
        facts = facts.replace(entries=_entries(contract, facts), pieces=_pieces(contract, facts))
    if request.kind != "command":
        facts = facts.replace(guard_files=_guard_files(contract, facts, where.cache))
    invocation = Invocation(request.kind, request.target, request.arguments, script)
    plan = build.build(contract, facts, invocation)
    return Prepared(request, contract, caller, facts, where, abilities, plan, script)


def choose_tier(contract: Contract, minimum: str, abilities: Abilities) -> str:
    """Take the strongest tier that the host has, and refuse one below the minimum.

    Raises:
        Unavailable: the host has none that is strong enough.
    """
    asked = minimum or contract.sandbox.minimum
    if _TIERS[abilities.tier] >= _TIERS[asked] and abilities.tier != "none":
        return abilities.tier
    obstacle = abilities.obstacle
    raise Unavailable(
        f"tier `{asked}`",
        needed="--minimum"
        if minimum
        else f"sandbox.minimum ({contract.sandbox.origin.file}:{contract.sandbox.origin.line})",
        found=f"{obstacle.feature}: {obstacle.found}" if obstacle else f"tier `{abilities.tier}`",
        fix=obstacle.fix if obstacle else "run `reach doctor`",
    )


def _project_root(contract: Contract, script: str, caller: Caller) -> str:
    """Return the directory of the contract, else of the script; places that hold more than a project are none."""
    base = os.path.dirname(contract.path or script) or caller.cwd
    root = os.path.realpath(base)
    return "" if root in _NEVER_A_PROJECT or paths.beneath(os.path.realpath(caller.home), root) else root


def _project(
    contract: Contract, root: str, script: str, known: Interpreter, declared: tuple[PathFact, ...]
) -> ProjectFact:
    """Say what of the project is shown."""
    beside: list[str] = []
    if script and not (root and paths.beneath(os.path.realpath(script), root) and paths.beneath(script, root)):
        beside = project.beside(script)
    if contract.project_read == "none" and script:
        return ProjectFact(files=tuple(dict.fromkeys((script, os.path.realpath(script)))))
    if not root or contract.project_read == "none":
        return ProjectFact(files=tuple(beside))
    skip = tuple({known.prefix, known.base_prefix} - {root})
    shown = tuple(fact.real for fact in declared)
    fact = project.look_at_project(
        root, skip=skip, contract=contract.path, shown=shown, code_only=contract.project_read == "code"
    )
    return fact.replace(files=tuple(beside))


def _entries(contract: Contract, facts: Facts) -> tuple[str, ...]:
    """List what of the project tier ``reduced`` may read: not what is granted for writing alone."""
    if not facts.project.root:
        return ()
    pairs = zip(contract.files, facts.paths, strict=True)
    write_only = (fact.real for grant, fact in pairs if layout.writes(grant) and not layout.reads(grant))
    return project.entries_beside(facts.project.root, (*_kept(facts), *write_only), reduced.MOST_ENTRIES)


def _kept(facts: Facts) -> tuple[str, ...]:
    """List what may not be read wherever a grant or the project would show it."""
    masks = [path for path, kind in facts.project.masks if kind != "symlink"]
    return (*masks, *(path for path, _ in facts.specials), *facts.own)


def _pieces(contract: Contract, facts: Facts) -> tuple[Pieces, ...]:
    """Take granted directories apart in which something is kept from the program: Landlock cannot subtract."""
    found = []
    unread = _kept(facts)
    unwritten = (*unread, *(path for path, _ in facts.protected))
    for grant, fact in zip(contract.files, facts.paths, strict=True):
        hidden = unwritten if layout.writes(grant) else unread
        kept = tuple(path for path in hidden if path.startswith(fact.real + "/"))
        if fact.kind != "directory" or not kept:
            continue
        readable = project.entries_beside(fact.real, unread, reduced.MOST_ENTRIES) if layout.reads(grant) else ()
        writable = project.entries_beside(fact.real, unwritten, reduced.MOST_ENTRIES) if layout.writes(grant) else ()
        found.append(Pieces(fact.real, kept, readable, writable))
    return tuple(found)


def _specials(contract: Contract, declared: tuple[PathFact, ...]) -> tuple[tuple[str, str], ...]:
    """List sockets, FIFOs and devices in granted directories; a grant of such a thing itself is refused."""
    found: list[tuple[str, str]] = []
    for grant, fact in zip(contract.files, declared, strict=True):
        if fact.kind in {"socket", "fifo", "device"}:
            raise ContractError(
                (
                    Finding(
                        "E_FILE_KIND",
                        f"{grant.path} is a {fact.kind}; only files and directories can be granted",
                        file=grant.origin.file,
                        line=grant.origin.line,
                    ),
                )
            )
        if fact.kind == "directory" and not grant.source:
            found += project.special_entries(fact.real)
    return tuple(dict.fromkeys(found))


def _own_places(
    where: Places, tier: str, caller: Caller, contract: Contract, declared: tuple[PathFact, ...]
) -> tuple[str, ...]:
    """List our own directories in writable grants, made if they are missing, so that they can be mounted over.

    Code that could write there would run outside with the next start of reach (the cache, `providers.py`), or
    edit its own record. The default places count as well: the next run may have another environment.

    Raises:
        ContractError: a grant names one of them, or something in it.
        Unavailable: this tier cannot take them out of a grant.
    """
    home = caller.home
    defaults = (".cache/reach", ".local/state/reach", ".config/reach", ".reach")
    places_ = {os.path.realpath(os.path.join(home, name)) for name in defaults}
    places_ |= {os.path.realpath(place) for place in (where.state, where.cache) if place}
    written = [(grant, fact) for grant, fact in zip(contract.files, declared, strict=True) if layout.writes(grant)]
    findings = tuple(
        Finding(
            "E_FILE_OWN",
            f"{grant.path} lies in {place}, where reach keeps what it runs and records",
            file=grant.origin.file,
            line=grant.origin.line,
            key="resources.files",
            hint="grant another place for writing",
        )
        for grant, fact in written
        for place in sorted(places_)
        if not grant.source and paths.beneath(fact.real, place)
    )
    if findings:
        raise ContractError(findings)
    writable = [fact.real for _, fact in written if fact.kind == "directory"]
    own = tuple(place for place in sorted(places_) if any(paths.beneath(place, directory) for directory in writable))
    if own and tier != "full":
        raise Unavailable(
            "a directory without one of its parts",
            needed=f"to keep {own[0]} out of a writable grant",
            found="tier `reduced`, where Landlock cannot subtract",
            fix="grant the directories that the program needs instead",
        )
    for place in own:
        os.makedirs(place, mode=0o700, exist_ok=True)
    return own


def _own_in_project(where: Places, root: str) -> tuple[str, ...]:
    """List our own directories that the project would show for reading."""
    found = (os.path.realpath(place) for place in (where.state, where.cache) if place)
    return tuple(place for place in found if root and place.startswith(root + "/") and os.path.isdir(place))


def _protected(contract: Contract, declared: tuple[PathFact, ...], known: Interpreter) -> tuple[tuple[str, str], ...]:
    """List what stays read-only inside writable grants, unless it is named exactly."""
    named = {fact.real for fact in declared}
    found: list[tuple[str, str]] = []
    for grant, fact in zip(contract.files, declared, strict=True):
        if fact.kind == "directory" and layout.writes(grant):
            found += project.protected_below(fact.real, contract=contract.path, environment=known.prefix)
    return tuple((path, kind) for path, kind in dict.fromkeys(found) if path not in named)


def _commands(contract: Contract, environ: Mapping[str, str]) -> tuple[CommandFact, ...]:
    """Resolve the granted commands."""
    return tuple(commands.find_command(grant.name, grant.with_, environ) for grant in contract.commands)


def _python_path(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the directories of the caller's PYTHONPATH."""
    entries = environ.get("PYTHONPATH", "").split(":")
    return tuple(os.path.abspath(entry) for entry in entries if entry and os.path.isdir(entry))


def _zone(contract: Contract) -> tuple[tuple[str, str], ...]:
    """Return TZ when the contract sets it by a plain value, so that /etc/localtime agrees."""
    zones = [grant.default for grant in contract.env if grant.name == "TZ" and not grant.source]
    return (("TZ", zones[-1]),) if zones and zones[-1] else ()


def _guard_files(contract: Contract, facts: Facts, cache: str) -> tuple[tuple[str, bytes], ...]:
    """Collect the files of the Python-level guard from our own package."""
    here = os.path.dirname(os.path.abspath(__file__))
    startup = os.path.join(here, "inside/startup.py")
    code = compiled(cache, facts.interpreter, startup, f"{layout.GUARD}/sitecustomize.py") if cache else None
    files = [] if code else [("sitecustomize.py", startup)]
    files += [(f"agent_reach/{name}", name) for name in ("wire/__init__.py", "wire/frames.py", "wire/reports.py")]
    read = [("sitecustomize.pyc", code)] if code else []
    for inside, outside in files:
        with open(os.path.join(here, outside), "rb") as stream:
            read.append((inside, stream.read()))
    return (("grants", guard.table(contract, facts)), ("agent_reach/__init__.py", b""), *read)
