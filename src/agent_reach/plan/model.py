"""The sandbox plan: what `sandbox` applies, step by step."""

from __future__ import annotations

from agent_reach._util.record import Record
from agent_reach.contract.model import NetRule, Origin


class Bind(Record):
    """Show a path of the host inside.

    Args:
        source: real absolute path on the host.
        target: absolute path inside.
        writable: else read-only.
        directory: what `source` is.
        device, inode: identity at plan time; another one at mount time refuses the run. 0 is not checked.
        owner: uid and gid of `source`, for an id-mapped mount when root starts the run; None binds plainly.
        shallow: without the mounts below `source`.
        why: the grant, for `explain`.
        origin: where that grant was written.
    """

    source: str
    target: str
    writable: bool = False
    directory: bool = True
    device: int = 0
    inode: int = 0
    owner: tuple[int, int] | None = None
    shallow: bool = False
    why: str = ""
    origin: Origin = Origin()


class Scratch(Record):
    """A directory of the private tmpfs, shown at `target` with permission bits `mode`."""

    target: str
    mode: int = 0o755


class Text(Record):
    """A small read-only file that reach writes: passwd, hosts, resolv.conf."""

    target: str
    content: bytes


class Link(Record):
    """A symlink at `target` that says `to`."""

    target: str
    to: str


class Mask(Record):
    """An existing path inside a mount that stays hidden or, with `keep`, visible and read-only."""

    target: str
    directory: bool
    keep: bool = False


class Pin(Record):
    """A directory of a writable mount, mounted on itself: a mount point cannot be renamed or removed.

    Without it the payload could rename the parent of a masked path and make the path anew.
    """

    target: str


class Staged(Record):
    """Content fetched or resolved outside, shown read-only at `target`; delivered by number when the run starts."""

    target: str
    number: int
    why: str = ""
    origin: Origin = Origin()


class Program(Record):
    """What is executed.

    Args:
        executable: absolute path inside.
        argv: arguments, the first one the name.
        cwd: working directory inside.
        guard: directory inside that holds the Python-level guard, empty for none.
    """

    executable: str
    argv: tuple[str, ...]
    cwd: str
    guard: str = ""


class Wanted(Record):
    """A limit as asked for, and whether anything below *enforced* refuses the run."""

    name: str
    value: float
    enforced: bool = False
    origin: Origin = Origin()


class SandboxPlan(Record):
    """Everything that decides what a run can reach.

    Args:
        tier: ``full`` or ``reduced``.
        hostname: name of the UTS namespace.
        user: login name inside.
        home: HOME inside.
        umask: file mode creation mask.
        inner_uid, inner_gid: ids inside.
        mounts: in order of application.
        writable: paths inside that Landlock lets be written.
        readable: paths that Landlock lets be read (`reduced`), with executables apart.
        executables: files that Landlock lets be executed (`reduced`).
        listable: directories whose names may be listed although not everything in them may be read (`reduced`).
        notify_socket: the supervisor makes the program's sockets, where it cannot copy descriptors (`reduced`).
        private: fresh directory of the run on the host (`reduced`), or empty.
        scratch, scratch_inodes: size of the private tmpfs.
        environment: names and values that are no secrets; resolved ones are added when the run starts.
        network: rules.
        limits: as asked for.
        program: what is executed.
        landlock: ABI to use, 0 for none.
        memory_cgroup: a memory cgroup holds `limits.memory` for the whole tree.
        on_denial: ``continue``, ``fail`` or ``kill``.
        notes: remarks for the receipt.
    """

    tier: str
    hostname: str
    user: str
    home: str
    umask: int
    inner_uid: int
    inner_gid: int
    mounts: tuple[Bind | Scratch | Text | Link | Mask | Pin | Staged, ...]
    writable: tuple[str, ...]
    readable: tuple[str, ...]
    executables: tuple[str, ...]
    scratch: int
    scratch_inodes: int
    environment: tuple[tuple[str, str], ...]
    network: tuple[NetRule, ...]
    limits: tuple[Wanted, ...]
    program: Program
    landlock: int
    memory_cgroup: bool = False
    notify_socket: bool = False
    listable: tuple[str, ...] = ()
    private: str = ""
    on_denial: str = "continue"
    notes: tuple[str, ...] = ()
