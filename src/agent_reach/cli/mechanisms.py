"""Every mechanism that a run may use, tried on this host in a throw-away child or on throw-away objects."""

from __future__ import annotations

import errno
import os

from agent_reach._util.record import Record
from agent_reach.cli import remedies
from agent_reach.errors import ReachError
from agent_reach.linux import landlock, probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.host.model import Caller
    from agent_reach.linux.probe import Obstacle

OK = "ok"
MISSING = "missing"
WEAK = "weak"
NOT_TRIED = "not tried"
_OLDEST = (5, 14)
_MACHINES = frozenset({"x86_64", "aarch64"})
_ALONE = 2
_ANY_UID = 1 << 20


class Check(Record):
    """One mechanism.

    Args:
        name: what it is called.
        state: ``ok``, ``missing`` (keeps tier full away), ``weak`` (something is best effort without it) or
            ``not tried``.
        found: what happened.
        fix: the one thing to do on this host, or empty.
    """

    name: str
    state: str
    found: str
    fix: str = ""


def all_checks(environ: Mapping[str, str], caller: Caller) -> list[Check]:
    """Try everything.

    Args:
        environ: the caller's environment.
        caller: who asks.
    """
    return [
        system(),
        *namespaces(),
        landlock_abi(),
        notification(),
        descriptors(),
        id_mapped_mounts(caller),
        control_groups(),
        interpreter(environ),
        record(environ, caller.home),
    ]


def system() -> Check:
    """Compare kernel and machine with the floor of tier full."""
    about = os.uname()
    numbers = about.release.split("-")[0].split(".")
    version = tuple(int(part) for part in numbers[:2] if part.isdigit())
    found = f"{about.sysname} {about.release} on {about.machine}"
    if about.machine not in _MACHINES:
        return Check("system", MISSING, found, "reach knows x86_64 and aarch64")
    if version < _OLDEST:
        return Check("system", MISSING, found, "tier full needs Linux 5.14 or newer")
    return Check("system", OK, found)


def namespaces() -> list[Check]:
    """Take the chain of steps of tier full, the mount of a procfs among them."""
    failed = probe.try_namespaces()
    names = ("user namespaces", "procfs")
    if failed is None:
        return [
            Check(names[0], OK, "made, ids mapped, tmpfs, terminals, loopback"),
            Check(names[1], OK, "a new one can be mounted"),
        ]
    fix = remedies.for_obstacle(failed)
    if "`proc`" in failed.found:
        return [Check(names[0], OK, "made, ids mapped"), Check(names[1], MISSING, failed.found, fix)]
    return [Check(names[0], MISSING, failed.found, fix), Check(names[1], NOT_TRIED, "needs a user namespace")]


def landlock_abi() -> Check:
    """Ask for the version of Landlock."""
    version = landlock.abi()
    if not version:
        fix = "boot with lsm=landlock,... in front (Linux 5.13 or newer)"
        return Check("Landlock", WEAK, "not there: files rest on the mount namespace alone", fix)
    if version < _ALONE:
        return Check("Landlock", WEAK, f"ABI {version}; tier reduced needs 2", "Linux 5.19 or newer")
    scope = "" if version >= landlock.ABI_SCOPE else "; signals are brokered, scopes come with ABI 6"
    return Check("Landlock", OK, f"ABI {version}{scope}")


def notification() -> Check:
    """Install a filter with a listener in a child."""
    failed = probe.try_listener()
    if failed:
        return Check("seccomp", MISSING, failed, "run reach outside the other supervisor or container")
    return Check("seccomp", OK, "a filter with a listener can be installed")


def descriptors() -> Check:
    """Fetch a descriptor out of a child, as the broker does with the sockets of a program."""
    from agent_reach.linux import pidfd

    hold_read, hold_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(hold_write)
        os.read(hold_read, 1)
        os._exit(0)
    try:
        process = pidfd.open(pid)
        try:
            os.close(pidfd.get_fd(process, hold_read))
        finally:
            os.close(process)
    except OSError as error:
        fix = remedies.in_container("SYS_PTRACE")
        return Check("pidfd_getfd", WEAK, f"{os.strerror(error.errno or 0)}: sockets are made by the broker", fix)
    finally:
        os.close(hold_read)
        os.close(hold_write)
        os.waitpid(pid, 0)
    return Check("pidfd_getfd", OK, "the broker can take over a program's socket")


def id_mapped_mounts(caller: Caller) -> Check:
    """Try an id-mapped mount on the file system of each place that matters; only a run that root starts needs it."""
    name = "id-mapped mounts"
    if caller.uid != 0:
        return Check(name, OK, "not needed: the program has your own ids")
    can: dict[str, None] = {}
    cannot: dict[str, None] = {}
    for place in dict.fromkeys((caller.cwd, caller.home, "/tmp", "/")):  # noqa: S108 - file systems to try
        if not os.path.isdir(place):
            continue
        failed = _try_id_map(place)
        if failed == errno.EPERM:
            return Check(name, NOT_TRIED, "needs CAP_SYS_ADMIN")
        (cannot if failed else can)[remedies.file_system(place)] = None
    cannot = {kind: None for kind in cannot if kind not in can}
    if cannot:
        fix = "start reach as the owner of the files, or keep them on ext4, xfs, btrfs or tmpfs"
        return Check(name, WEAK, f"not on {', '.join(cannot)}" + (f"; on {', '.join(can)}" if can else ""), fix)
    return Check(name, OK, f"on {', '.join(can)}")


def _try_id_map(place: str) -> int:
    """Map one place in a detached tree, which nobody sees; return 0 or the error number."""
    from agent_reach.linux import mounts
    from agent_reach.linux import namespaces as kernel

    try:
        tree = mounts.clone_tree(place, recursive=False)
        try:
            about = os.fstat(tree)
            mapping = kernel.map_for_mounts(about.st_uid, about.st_gid, _ANY_UID, _ANY_UID)
            try:
                mounts.set_idmap(tree, mapping)
            finally:
                os.close(mapping)
        finally:
            os.close(tree)
    except OSError as error:
        return error.errno or errno.EINVAL
    return 0


def control_groups() -> Check:
    """Make a group, move a child in, read the limits back, remove it."""
    from agent_reach.linux import cgroups

    wanted = {"memory": float(64 << 20), "processes": 64.0, "cpus": 1.0}
    name = "control groups"
    group = cgroups.create(f"reach-doctor-{os.getpid()}", wanted)
    if group is None:
        return Check(name, WEAK, "none to write to: limits are best effort", remedies.for_control_groups())
    held = cgroups.held(group)
    cgroups.remove(group)
    lost = [limit for limit in wanted if limit not in held]
    if lost:
        found = f"version {group.version}: {', '.join(held) or 'nothing'}; best effort: {', '.join(lost)}"
        return Check(name, WEAK, found, remedies.for_control_groups())
    return Check(name, OK, f"version {group.version}: {', '.join(held)}")


def interpreter(environ: Mapping[str, str]) -> Check:
    """Find the Python that would run a script here."""
    from agent_reach.host.interpreter import discover

    try:
        known = discover(asked="", script="", project_root="", environ=environ, cache_dir=None)
    except ReachError as error:
        return Check("interpreter", WEAK, str(error).partition("\n")[0], "name one: --python PATH")
    return Check("interpreter", OK, f"{known.executable}, Python {known.version} ({known.chosen_by})")


def record(environ: Mapping[str, str], home: str) -> Check:
    """Open the directory of the records."""
    from agent_reach.audit.place import open_place, record_place
    from agent_reach.errors import Unavailable

    where = record_place(environ, home)
    try:
        os.close(open_place(where))
    except Unavailable as error:
        return Check("record", WEAK, error.found, error.fix)
    return Check("record", OK, where)


def root_rights(obstacle: Obstacle | None) -> list[Check]:
    """Say what a root without rights lacks, as the probe found it."""
    if obstacle is None or not obstacle.feature.startswith("a root"):
        return []
    return [Check("root", MISSING, obstacle.found, remedies.for_obstacle(obstacle))]
