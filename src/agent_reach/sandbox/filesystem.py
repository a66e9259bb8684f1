"""Build the root that the program sees (tier ``full``); runs in init, in its own mount namespace."""

from __future__ import annotations

import os

from agent_reach.errors import SetupError
from agent_reach.linux import mounts
from agent_reach.plan.model import Bind, Link, Mask, Pin, Scratch, Staged, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.plan.model import SandboxPlan
    from agent_reach.sandbox.channel import Steps
    from agent_reach.sandbox.sources import Sources

_ROOT_SIZE = 4 << 20
_ROOT_INODES = 16_384
_DEVICE_LINKS = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
)
# Kernel files that are not namespaced: their owner on the host is root, so a mode or a mask is all that keeps
# a payload out that an administrator runs under a privileged uid by mistake.
_PROC_READ_ONLY = ("sys", "bus", "fs", "irq")
_PROC_HIDDEN = (
    "acpi",
    "kcore",
    "keys",
    "timer_list",
    "sched_debug",
    "scsi",
    "sysrq-trigger",
    "kallsyms",
    "latency_stats",
)
_STAGE = "/.stage"
_EMPTY = "/.empty"
_HIDDEN = "/.hidden"


class Built:
    """What the worker still needs of the file system.

    Args:
        scratch: descriptor of the private tmpfs, for the content of staged files.
        device: `st_dev` of the private tmpfs; sockets there are the run's own.
    """

    def __init__(self, scratch: int, device: int) -> None:
        self.scratch = scratch
        self.device = device


def build_root(plan: SandboxPlan, sources: Sources, steps: Steps) -> Built:
    """Make a fresh root, show in it what the plan lists, and leave the old one.

    Args:
        plan: mounts in order.
        sources: opened trees.
        steps: told each step.

    Raises:
        OSError: a step was refused.
    """
    os.umask(0o022)
    copies = sum(len(content) for content in sources.copies.values())
    base = "/tmp" if os.path.isdir("/tmp") else "/mnt"  # noqa: S108 - any directory to mount over, in our own namespace
    steps.at("mount root", base)
    mounts.mount_tmpfs(base, size=_ROOT_SIZE + copies, inodes=_ROOT_INODES, mode=0o755)
    os.chdir(base)
    steps.at("pivot root")
    mounts.pivot_here()
    os.mkdir("/proc", 0o555)
    steps.at("mount proc")
    # The old procfs must still be in the namespace: the kernel compares how much of it can be seen.
    mounts.mount_proc("/proc")
    steps.at("leave the old root")
    mounts.detach_old_root()
    steps.at("mount scratch")
    os.mkdir(_STAGE, 0o700)
    mounts.mount_tmpfs(_STAGE, size=plan.scratch, inodes=plan.scratch_inodes, mode=0o755)
    scratch = os.open(_STAGE, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.mkdir(_EMPTY, 0o000)
    _write(_HIDDEN, b"", 0o000)
    steps.at("make devices")
    _make_devices(sources)
    for number, mount in enumerate(plan.mounts):
        steps.at(f"mount {type(mount).__name__.lower()}", mount.target)
        _apply(mount, number, sources)
    _make_cwd(plan.program.cwd, steps)
    steps.at("mask proc")
    _mask_proc()
    steps.at("hide the stage")
    mounts.unmount(_STAGE)
    os.rmdir(_STAGE)
    steps.at("make root read-only")
    mounts.set_read_only("/")
    return Built(scratch, os.fstat(scratch).st_dev)


def hide_mountinfo() -> None:
    """Hide the calling process's mount table, which tells the host's path of every bind mount.

    This covers the worker's own table only: a process that it forks can read the same in its own. The name of a
    granted path on the host is what leaks there, never content.
    """
    mounts.attach(mounts.clone_tree(_HIDDEN), "/proc/self/mountinfo")


def _apply(mount: Bind | Scratch | Text | Link | Mask | Pin | Staged, number: int, sources: Sources) -> None:
    """Apply one mount of the plan."""
    target = mount.target
    if isinstance(mount, Bind):
        if target in sources.copies:
            _ensure_parent(target)
            _write(target, sources.copies[target], 0o444)
            return
        _ensure_place(target, mount.directory)
        mounts.attach(sources.trees[target], target)
        os.close(sources.trees[target])
    elif isinstance(mount, Scratch):
        _mount_scratch(target, number, mount.mode)
    elif isinstance(mount, Text):
        _ensure_parent(target)
        _write(target, mount.content, 0o444)
    elif isinstance(mount, Link):
        _ensure_parent(target)
        if not os.path.lexists(target):
            os.symlink(mount.to, target)
    elif isinstance(mount, Staged):
        _mount_staged(target, mount.number)
    elif isinstance(mount, Pin):
        mounts.attach(mounts.clone_tree(target), target)
    else:
        _mask(mount)


def _mount_scratch(target: str, number: int, mode: int) -> None:
    """Show a directory of the private tmpfs: all of them share one size."""
    inner = f"{_STAGE}/{number}"
    os.mkdir(inner)
    os.chmod(inner, mode)
    _ensure_place(target, directory=True)
    mounts.attach(mounts.clone_tree(inner), target)


def _mount_staged(target: str, number: int) -> None:
    """Show an empty file read-only; the worker fills it through the stage's descriptor when the content is there."""
    inner = f"{_STAGE}/staged-{number}"
    _write(inner, b"", 0o444)
    _ensure_place(target, directory=False)
    tree = mounts.clone_tree(inner)
    mounts.set_attributes(tree, mounts.MOUNT_ATTR_RDONLY)
    mounts.attach(tree, target)


def _mask(mount: Mask) -> None:
    """Hide a path, or keep it visible and make it read-only."""
    if os.path.islink(mount.target) or not os.path.lexists(mount.target):
        return
    tree = mounts.clone_tree(mount.target if mount.keep else _EMPTY if mount.directory else _HIDDEN)
    mounts.set_attributes(tree, mounts.MOUNT_ATTR_RDONLY)
    mounts.attach(tree, mount.target)


def _make_devices(sources: Sources) -> None:
    """Fill /dev with the harmless devices of the host and a terminal file system of our own."""
    os.mkdir("/dev", 0o755)
    for target, tree in sources.trees.items():
        if target.startswith("/dev/"):
            _write(target, b"", 0o666)
            mounts.attach(tree, target)
            os.close(tree)
    for name, to in _DEVICE_LINKS:
        os.symlink(to, f"/dev/{name}")
    os.mkdir("/dev/pts", 0o755)
    mounts.mount_devpts("/dev/pts")
    os.mkdir("/dev/shm", 0o755)  # noqa: S108 - a name inside


def _mask_proc() -> None:
    """Make the writable parts of /proc read-only and hide what tells of the host."""
    for name in (*_PROC_READ_ONLY, *_PROC_HIDDEN):
        path = f"/proc/{name}"
        if os.path.lexists(path):
            _mask(Mask(path, os.path.isdir(path), keep=name in _PROC_READ_ONLY))


def _make_cwd(path: str, steps: Steps) -> None:
    """Make sure that the working directory keeps its path; one that is not granted is empty and read-only."""
    steps.at("make working directory", path)
    if not os.path.isdir(path):
        _ensure_parent(path + "/x")
        os.chmod(path, 0o555)  # noqa: S103 - an empty directory


def _ensure_place(target: str, directory: bool) -> None:
    """Make the mount point, if it is not there."""
    _ensure_parent(target)
    try:
        if directory:
            os.mkdir(target, 0o755)
        else:
            _write(target, b"", 0o444)
    except FileExistsError:
        return
    except OSError as error:
        raise SetupError("make mount point", error.errno or 0, target) from error


def _ensure_parent(target: str) -> None:
    """Make the directories above a mount point."""
    parent = target.rpartition("/")[0]
    if parent and not os.path.isdir(parent):
        _ensure_parent(parent)
        os.mkdir(parent, 0o755)


def _write(path: str, content: bytes, mode: int) -> None:
    """Make a file that is not there yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
