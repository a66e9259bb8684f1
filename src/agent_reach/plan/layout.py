"""The file system inside: which part comes from where, in the order in which it is mounted."""

from __future__ import annotations

from agent_reach.plan.model import Bind, Link, Mask, Pin, Scratch, Staged, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.model import Contract, FileGrant
    from agent_reach.plan.facts import Facts

    Mount = Bind | Scratch | Text | Link | Mask | Pin | Staged

GUARD = "/run/reach"
SECRETS = "/run/secrets"
STUB_ADDRESS = "127.0.0.53"
_SCRATCH = (("/tmp", 0o1777), ("/var/tmp", 0o1777), ("/dev/shm", 0o1777), ("/run/user", 0o755))  # noqa: S108 - names inside


def mounts_of(contract: Contract, facts: Facts) -> tuple[Mount, ...]:
    """List every mount of tier ``full``; a parent always comes before what lies below it."""
    mounts: list[Mount] = [
        *_system(facts),
        *_accounts(facts),
        *_network_files(),
        *_interpreter(facts, honoured(contract, facts)),
    ]
    mounts += [Scratch(target, mode) for target, mode in _SCRATCH]
    mounts += [Scratch(facts.caller.home, 0o755)]
    mounts += _project(facts)
    mounts += _commands(facts)
    mounts += _grants(contract, facts)
    mounts += _secrets(contract)
    mounts += [Mask(path, kind == "directory") for path, kind in facts.specials]
    mounts += [Mask(path, kind == "directory", keep=True) for path, kind in facts.protected]
    mounts += [Mask(path, directory=True) for path in facts.own]
    mounts += _pins(contract, facts)
    mounts += [Text(f"{GUARD}/{name}", content) for name, content in facts.guard_files]
    return _in_order(mounts)


def _pins(contract: Contract, facts: Facts) -> list[Mount]:
    """Pin every directory between a writable grant and something in it that must stay as it is."""
    kept = [path for path, _ in facts.protected] + list(facts.own)
    pins: list[Mount] = []
    for grant, fact in zip(contract.files, facts.paths, strict=True):
        if fact.kind != "directory" or not writes(grant):
            continue
        for path in kept:
            if path.startswith(fact.real + "/"):
                parts = path[len(fact.real) + 1 :].split("/")[:-1]
                pins += [Pin("/".join((fact.real, *parts[: count + 1]))) for count in range(len(parts))]
    return pins


def _in_order(mounts: list[Mount]) -> tuple[Mount, ...]:
    """Sort by depth, keep the order of declaration within one depth, and drop what is said twice."""
    chosen: dict[tuple[str, bool], Mount] = {}
    for mount in mounts:
        chosen[mount.target, isinstance(mount, (Mask, Pin))] = mount
    # A mask hides what a mount above it shows, so it comes right behind the mounts of its own depth.
    return tuple(sorted(chosen.values(), key=lambda mount: (mount.target.count("/"), isinstance(mount, (Mask, Pin)))))


def _system(facts: Facts) -> list[Mount]:
    """Libraries and shared data of the host, and the files of /etc without secrets."""
    system = facts.system
    mounts: list[Mount] = [Bind(path, path, why="system") for path in system.directories]
    mounts += [Link(path, to) for path, to in system.links]
    for name, real in system.files:
        directory = name.endswith("/")
        if name != "/etc/localtime" or not _zone(facts):
            mounts += [Bind(real, name.rstrip("/"), directory=directory, why="system")]
    return mounts


def _zone(facts: Facts) -> str:
    """Return the zone file that TZ names, so that /etc/localtime agrees with it."""
    zone = dict(facts.terminal).get("TZ", "").lstrip(":")
    return f"/usr/share/zoneinfo/{zone}" if zone and not zone.startswith("/") and ".." not in zone else ""


def _accounts(facts: Facts) -> list[Mount]:
    """Make passwd and group with one entry each, the caller's name; names of other users stay outside."""
    name, home = facts.caller.name, facts.caller.home
    uid, gid = inner_ids(facts)
    passwd = f"{name}:x:{uid}:{gid}::{home}:/bin/sh\n"
    zone = _zone(facts)
    return [
        Text("/etc/passwd", passwd.encode()),
        Text("/etc/group", f"{name}:x:{gid}:\nroot:x:0:\nnogroup:x:65534:\n".encode()),
        *([Link("/etc/localtime", zone)] if zone else []),
    ]


def inner_ids(facts: Facts) -> tuple[int, int]:
    """Return uid and gid inside: the caller's own, or 1000 when root starts the run."""
    return (1000, 1000) if facts.started_by_root else (facts.caller.uid, facts.caller.gid)


def _network_files() -> list[Mount]:
    """Files of the name resolver: localhost from the file, everything else from the stub inside."""
    hosts = "127.0.0.1 localhost reach\n::1 localhost ip6-localhost\n"
    switch = "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"
    resolver = f"nameserver {STUB_ADDRESS}\noptions timeout:2 attempts:2\n"
    return [
        Text("/etc/hosts", hosts.encode()),
        Text("/etc/hostname", b"reach\n"),
        Text("/etc/nsswitch.conf", switch.encode()),
        Text("/etc/resolv.conf", resolver.encode()),
    ]


def honoured(contract: Contract, facts: Facts) -> tuple[str, ...]:
    """Return the caller's PYTHONPATH as far as the contract lets it in."""
    return () if contract.options.context_isolation else facts.python_path


def _interpreter(facts: Facts, python_path: tuple[str, ...]) -> list[Mount]:
    """Everything that the interpreter said it is made of, also below a private home."""
    known = facts.interpreter
    mounts: list[Mount] = []
    roots = [known.prefix, known.base_prefix, *known.search, *known.extra, *python_path]
    shown = list(facts.system.directories)
    for root in dict.fromkeys(roots):
        if root in {"/", "/usr", "/usr/local", facts.caller.home} or _covered(root, shown):
            continue
        is_directory = not root.endswith((".zip", ".egg", ".whl"))
        mounts.append(Bind(root, root, directory=is_directory, why="interpreter"))
        shown.append(root)
    # Started by its own path, so that `getpath` finds pyvenv.cfg beside it; the binary behind the links as well.
    names = [name for name in dict.fromkeys((known.executable, known.real)) if not _covered(name, shown)]
    mounts += [Bind(known.real, name, directory=False, why="interpreter") for name in names]
    directory = known.executable.rpartition("/")[0]
    if not _covered(directory, shown):
        base = known.executable.rpartition("/")[2]
        mounts += [Link(f"{directory}/{name}", base) for name in ("python3", "python") if name != base]
    return mounts


def _covered(path: str, shown: list[str]) -> bool:
    """Say whether a mount in the list shows `path`."""
    return any(path == root or path.startswith(root + "/") for root in shown)


def _project(facts: Facts) -> list[Mount]:
    """The project, read-only, minus what stays hidden."""
    project = facts.project
    mounts: list[Mount] = []
    if project.root:
        mounts.append(Bind(project.root, project.root, device=project.device, inode=project.inode, why="project"))
        mounts += [Mask(path, kind == "directory") for path, kind in project.masks]
    mounts += [
        Bind(path.rstrip("/"), path.rstrip("/"), directory=path.endswith("/"), why="project") for path in project.files
    ]
    return mounts


def _commands(facts: Facts) -> list[Mount]:
    """One file for each name: no directory of executables is ever shown whole."""
    mounts: list[Mount] = []
    for command in facts.commands:
        why = f"commands: {command.name}"
        for inside, real in command.files:
            if not _covered(inside, list(facts.system.directories)):
                mounts.append(Bind(real, inside, directory=False, why=why))
        mounts += [Bind(path, path, why=why) for path in command.directories]
    return mounts


def _grants(contract: Contract, facts: Facts) -> list[Mount]:
    """File grants: the tree at its real place, and a link under the declared name when that differs."""
    mounts: list[Mount] = []
    for number, (grant, fact) in enumerate(zip(contract.files, facts.paths, strict=True)):
        why = f"files: {grant.path} ({grant.mode})"
        if grant.source:
            mounts.append(Staged(grant.path, number, why=why, origin=grant.origin))
            continue
        if fact.kind not in {"file", "directory"}:
            continue
        mounts.append(
            Bind(
                source=fact.real,
                target=fact.real,
                writable=writes(grant),
                directory=fact.kind == "directory",
                device=fact.device,
                inode=fact.inode,
                owner=(fact.uid, fact.gid),
                why=why,
                origin=grant.origin,
            )
        )
        if fact.path != fact.real:
            mounts.append(Link(fact.path, fact.real))
    return mounts


def delivered(contract: Contract, private: str = "") -> dict[str, tuple[int, str]]:
    """Number and path inside of each variable that is delivered as a file; numbers follow those of the file grants.

    Args:
        contract: the contract.
        private: fresh directory of the run in tier ``reduced``, or empty.
    """
    names = [grant.name for grant in contract.env if grant.deliver == "file"]
    first = len(contract.files)
    if private:
        return {name: (first + index, f"{private}/staged-{first + index}") for index, name in enumerate(names)}
    return {name: (first + index, f"{SECRETS}/{name}") for index, name in enumerate(names)}


def _secrets(contract: Contract) -> list[Mount]:
    """Show each variable that is delivered as a file as an empty one, filled when its value is there."""
    origins = {grant.name: grant.origin for grant in contract.env}
    return [
        Staged(path, number, why=f"env: {name}", origin=origins[name])
        for name, (number, path) in delivered(contract).items()
    ]


def writes(grant: FileGrant) -> bool:
    """Say whether a grant allows any writing."""
    return grant.mode.rstrip("b") in {"w", "a", "rw", "r+"}


def reads(grant: FileGrant) -> bool:
    """Say whether a grant allows reading content."""
    return grant.mode.rstrip("b") in {"r", "rw", "r+"}
