"""Control groups of both versions: make one, move a process of ours in, read it back, kill, remove.

Source: Documentation/admin-guide/cgroup-v1/ and cgroup-v2.rst. Whether a directory can be used is found out by
using it: making a directory may be allowed where moving a process into it is not.
"""

from __future__ import annotations

import errno
import os

from agent_reach._util import held as held_directories
from agent_reach._util.record import Record
from agent_reach.linux import namespaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_PERIOD_MICROSECONDS = 100_000
_SIGKILL = 9
_KILL_ROUNDS = 50


class Group(Record):
    """A control group of one run.

    Args:
        version: 1 or 2.
        paths: its directory for each controller (version 2: one directory for all).
        leaf: where we moved ourselves, so that the parent may hand out controllers (version 2), or empty.
        locks: descriptors that say that the group is in use, for as long as a copy of them is open.
    """

    version: int
    paths: tuple[tuple[str, str], ...]
    locks: tuple[int, ...] = ()
    leaf: str = ""

    def path(self, controller: str) -> str:
        """Return the directory of a controller, or nothing."""
        return dict(self.paths).get(controller, "")


def create(name: str, wanted: Mapping[str, float]) -> Group | None:
    """Make a group that holds as many of the wanted limits as this host lets us.

    Args:
        name: name of the directory.
        wanted: ``memory`` and ``swap`` in bytes, ``cpus`` as a number of processors, ``processes`` as a count.

    Returns:
        The group, or None when no controller can be used.
    """
    return _create_v2(name, wanted) or _create_v1(name, wanted)


def held(group: Group) -> dict[str, str]:
    """Return limit name to mechanism for the limits that the group really holds, read back from the kernel."""
    found = {}
    label = f"cgroup v{group.version}"
    for limit, (controller, one, two) in _FILES.items():
        directory = group.path(controller)
        text = _read(os.path.join(directory, two if group.version == 2 else one)) if directory else ""
        if text and text.split()[0] not in {"max", "-1"} and not text.startswith("92233720368547"):
            found[limit] = f"{label} {controller}"
    return found


_FILES = {
    "memory": ("memory", "memory.limit_in_bytes", "memory.max"),
    "swap": ("memory", "memory.memsw.limit_in_bytes", "memory.swap.max"),
    "cpus": ("cpu", "cpu.cfs_quota_us", "cpu.max"),
    "processes": ("pids", "pids.max", "pids.max"),
}


def add(group: Group, pid: int) -> None:
    """Move a process of ours, with what it will fork, into the group.

    Raises:
        OSError: refused.
    """
    for directory in {path for _, path in group.paths}:
        namespaces.write_file(os.path.join(directory, "cgroup.procs"), b"%d" % pid)


def memory_peak(group: Group) -> int:
    """Return the most bytes the whole group held, 0 when nobody counted."""
    directory = group.path("memory")
    name = "memory.peak" if group.version == 2 else "memory.max_usage_in_bytes"
    text = _read(os.path.join(directory, name)) if directory else ""
    return int(text) if text.isdigit() else 0


def killed_by_memory(group: Group) -> bool:
    """Say whether the kernel killed a process of the group at its memory limit."""
    directory = group.path("memory")
    if not directory:
        return False
    name = "memory.events" if group.version == 2 else "memory.oom_control"
    for line in _read(os.path.join(directory, name)).split("\n"):
        word, _, count = line.partition(" ")
        if word == "oom_kill":
            return int(count or 0) > 0
    return False


def remove(group: Group) -> None:
    """Kill what is left in the group, remove its directories and let go of them."""
    for directory in {path for _, path in group.paths}:
        _remove(directory)
    for descriptor in group.locks:
        os.close(descriptor)
    if group.leaf:
        _move_back(group.leaf)


def _remove(directory: str) -> None:
    """Kill what is left in one directory and remove it."""
    import time

    for _ in range(_KILL_ROUNDS):
        for pid in _read(os.path.join(directory, "cgroup.procs")).split():
            try:
                os.kill(int(pid), _SIGKILL)
            except OSError:
                continue
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)  # a dead process leaves its group a moment later
        else:
            return


def collect(prefix: str, length: int) -> None:
    """Remove the groups of runs whose launcher and supervisor were both killed: nobody holds their locks.

    Args:
        prefix: how their names start.
        length: how long their names are; others beside them are somebody else's.
    """
    for _, _, parent in _places():
        try:
            names = [name for name in os.listdir(parent) if name.startswith(prefix) and len(name) == length]
        except OSError:
            continue
        for name in names:
            directory = os.path.join(parent, name)
            descriptor = held_directories.take(directory)
            if descriptor >= 0:
                _remove(directory)
                os.close(descriptor)


def _places() -> list[tuple[int, str, str]]:
    """List version, controller and directory of our own groups."""
    own = {}
    for line in _read("/proc/self/cgroup").split("\n"):
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        for name in names.split(",") if names else [""]:
            own[name if number != "0" else ""] = path
    found = []
    for line in _read("/proc/self/mounts", 1 << 20).split("\n"):
        fields = line.split(" ")
        if len(fields) < 4:
            continue
        place, kind, options = fields[1], fields[2], fields[3].split(",")
        if kind == "cgroup2":
            found.append((2, "", place + own.get("", "").rstrip("/")))
        elif kind == "cgroup":
            found += [
                (1, name, place + own[name].rstrip("/"))
                for name in ("memory", "cpu", "pids")
                if name in options and name in own
            ]
    return found


def _create_v2(name: str, wanted: Mapping[str, float]) -> Group | None:
    """Use a delegated directory of version 2, where the controllers that are needed can be enabled."""
    parents = [path for version, _, path in _places() if version == 2]
    for parent in parents:
        controllers = set(_read(os.path.join(parent, "cgroup.controllers")).split())
        needed = {_FILES[limit][0] for limit in wanted if limit in _FILES}
        if not needed or not needed & controllers:
            continue
        directory = os.path.join(parent, name)
        try:
            leaf = _hand_out(parent, needed & controllers)
            lock = held_directories.make(directory, 0o755)
        except OSError:
            continue
        paths = tuple((controller, directory) for controller in sorted(needed & controllers))
        group = Group(2, paths, (lock,), leaf)
        if _usable(group, wanted):
            return group
        remove(group)
    return None


def _hand_out(parent: str, controllers: set[str]) -> str:
    """Let the children of a group have controllers; return the leaf that we had to move to, or nothing.

    A group with processes in it may not hand controllers on (cgroups(7), "no internal processes"). In a scope that
    was made for us (systemd-run --scope) we are the only one, and make room; with others in it we leave it alone.

    Raises:
        OSError: refused.
    """
    control = os.path.join(parent, "cgroup.subtree_control")
    enable = " ".join(f"+{controller}" for controller in sorted(controllers)).encode()
    try:
        namespaces.write_file(control, enable)
    except OSError as error:
        if error.errno != errno.EBUSY or _read(os.path.join(parent, "cgroup.procs")).split() != [str(os.getpid())]:
            raise
    else:
        return ""
    leaf = os.path.join(parent, f"reach-launcher-{os.getpid()}")
    os.mkdir(leaf)
    try:
        namespaces.write_file(os.path.join(leaf, "cgroup.procs"), b"0")
        namespaces.write_file(control, enable)
    except OSError:
        _move_back(leaf)
        raise
    return leaf


def _move_back(leaf: str) -> None:
    """Go back to the group that we came from, which takes processes again once it hands nothing out."""
    parent = os.path.dirname(leaf)
    control = os.path.join(parent, "cgroup.subtree_control")
    try:
        for controller in _read(control).split():
            namespaces.write_file(control, b"-" + controller.encode())
        namespaces.write_file(os.path.join(parent, "cgroup.procs"), b"0")
        os.rmdir(leaf)
    except OSError:
        return  # the scope and all below it go with its last process


def _create_v1(name: str, wanted: Mapping[str, float]) -> Group | None:
    """Use the hierarchies of version 1 that we may write to."""
    needed = {_FILES[limit][0] for limit in wanted if limit in _FILES}
    paths, locks = [], []
    for version, controller, parent in _places():
        if version != 1 or controller not in needed:
            continue
        directory = os.path.join(parent, name)
        try:
            locks.append(held_directories.make(directory, 0o755))
        except OSError:
            continue
        paths.append((controller, directory))
    if not paths:
        return None
    group = Group(1, tuple(paths), tuple(locks))
    if _usable(group, wanted):
        return group
    remove(group)
    return None


def _usable(group: Group, wanted: Mapping[str, float]) -> bool:
    """Write the limits and move a throw-away process in: only what was done is believed."""
    for limit, value in wanted.items():
        if limit in _FILES:
            _write_limit(group, limit, value)
    pid = os.fork()
    if pid == 0:
        try:
            add(group, os.getpid())
        except OSError:
            os._exit(1)
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return status == 0


def _write_limit(group: Group, limit: str, value: float) -> None:
    """Write one limit; `held` tells afterwards whether the kernel took it."""
    controller, one, two = _FILES[limit]
    directory = group.path(controller)
    if not directory:
        return
    text = b"%d" % int(value)
    if limit == "cpus":
        quota = max(1000, int(value * _PERIOD_MICROSECONDS))
        text = b"%d %d" % (quota, _PERIOD_MICROSECONDS) if group.version == 2 else b"%d" % quota
    try:
        namespaces.write_file(os.path.join(directory, two if group.version == 2 else one), text)
    except OSError:
        return


def _read(path: str, most: int = 1 << 16) -> str:
    """Read a kernel file, or nothing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(most).strip()
    except OSError:
        return ""
