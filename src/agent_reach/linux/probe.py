"""What this host can do, found out by doing it in a throw-away child, never by reading a setting.

Ubuntu 24.04 lets the user namespace be made and refuses what is done in it; a container's masked /proc lets
everything pass but the mount of a new one. So the probe takes the whole chain of steps.
"""

from __future__ import annotations

import errno
import os

from agent_reach._util.record import Record
from agent_reach.linux import caps, identity, landlock, mounts, namespaces, netlink
from agent_reach.linux.abi import seccomp as abi_seccomp

_FORMAT = "4"
_CAPABILITIES = (("CAP_SETGID", 6), ("CAP_SETUID", 7), ("CAP_SYS_ADMIN", 21))


class Obstacle(Record):
    """Why a tier cannot be had.

    Args:
        feature: the mechanism, such as ``user namespaces``.
        found: the step and what the kernel answered.
        fix: the one thing to do on this host.
    """

    feature: str
    found: str
    fix: str


class Abilities(Record):
    """What this host offers to this caller.

    Args:
        tier: ``full``, ``reduced`` or ``none``.
        landlock: ABI, 0 for none.
        pidfd_getfd: descriptors of another process can be copied; a container's filter may forbid it.
        obstacle: what stands against ``full`` (or against ``reduced``, for ``none``).
    """

    tier: str
    landlock: int
    obstacle: Obstacle | None = None
    pidfd_getfd: bool = True


def abilities(cache_dir: str = "") -> Abilities:
    """Return what this host offers, remembered for as long as the boot and our own confinement last.

    Args:
        cache_dir: private directory, or empty to probe anew.
    """
    key = _key()
    if not key or not cache_dir:
        return examine()
    known = _remembered(cache_dir, key)
    if known is None:
        known = examine()
        _remember(cache_dir, key, known)
    return known


def examine() -> Abilities:
    """Probe now."""
    version = landlock.abi()
    copies = can_copy_descriptors()
    failed = _root_without_rights() or try_namespaces()
    if failed is None and not copies:
        failed = Obstacle(
            "pidfd_getfd", "refused by the filter of this container", "docker run --security-opt seccomp=unconfined"
        )
    listener = try_listener()
    if listener:
        obstacle = Obstacle("seccomp notification", listener, "run reach outside the other supervisor or container")
        return Abilities("none", version, obstacle)
    if failed is None:
        return Abilities("full", version)
    if version >= 2:
        return Abilities("reduced", version, failed, copies)
    return Abilities(
        "none",
        version,
        Obstacle(
            "Landlock",
            f"ABI {version}, and {failed.feature} are refused: {failed.found}",
            failed.fix + "; or boot with `lsm=landlock,...` (Linux 5.19 or newer)",
        ),
    )


def _root_without_rights() -> Obstacle | None:
    """Say what a root of a container lacks: the sandbox of a root must not stay that root on the host."""
    if os.geteuid() != 0:
        return None
    if not identity.holds_range(identity.FIRST_IN_CONTAINER, 2 * identity.SLOTS_IN_CONTAINER):
        return Obstacle(
            "an unprivileged uid",
            "this user namespace maps no id that the sandbox could run under",
            "start reach as an ordinary user, or map a range of ids (newuidmap, `podman run --userns=auto`)",
        )
    status = dict(line.split(":\t", 1) for line in _read("/proc/self/status").split("\n") if ":\t" in line)
    held = int(status.get("CapEff", "0"), 16)
    missing = [name for name, bit in _CAPABILITIES if not held >> bit & 1]
    if not missing:
        return None
    return Obstacle(
        "a root that can become another uid and mount",
        f"root without {', '.join(missing)}",
        "start reach as an ordinary user, or docker run --cap-add SYS_ADMIN --security-opt seccomp=unconfined",
    )


def try_namespaces() -> Obstacle | None:
    """Take the chain of steps of tier ``full`` in a child; return what failed, or None."""
    report_read, report_write = os.pipe()
    gate_read, gate_write = os.pipe()
    uid, gid = os.geteuid(), os.getegid()
    try:
        pid = namespaces.fork_into()
    except OSError as error:
        for descriptor in (report_read, report_write, gate_read, gate_write):
            os.close(descriptor)
        return _obstacle("namespaces", error.errno or 0)
    if pid == 0:
        os.close(gate_write)
        _chain(gate_read, report_write)
    os.close(report_write)
    os.close(gate_read)
    try:
        namespaces.write_map(pid, inner_uid=1000, outer_uid=uid, inner_gid=1000, outer_gid=gid)
        os.write(gate_write, b"m")
        answer = os.read(report_read, 64)
    except OSError as error:
        answer = b"id maps:%d" % (error.errno or 0)
    finally:
        os.close(gate_write)
        os.close(report_read)
        os.waitpid(pid, 0)
    if answer == b"done":
        return None
    step, _, number = (answer or b"namespaces:0").decode().partition(":")
    return _obstacle(step, int(number))


def _chain(gate: int, report: int) -> None:
    """Be the child: take each step and report the first that fails."""
    step = "id maps"
    try:
        if not os.read(gate, 1):
            os._exit(1)
        mounts.stop_propagation()
        step = "tmpfs"
        mounts.mount_tmpfs("/tmp", size=1 << 16, inodes=64, mode=0o755)  # noqa: S108 - in our own namespace
        step = "proc"
        os.mkdir("/tmp/proc")  # noqa: S108
        mounts.mount_proc("/tmp/proc")  # noqa: S108
        step = "devpts"
        os.mkdir("/tmp/pts")  # noqa: S108
        mounts.mount_devpts("/tmp/pts")  # noqa: S108
        step = "loopback"
        netlink.bring_up(())
        step = "hostname"
        namespaces.set_hostname("reach")
        caps.drop_all()
        os.write(report, b"done")
    except OSError as error:
        os.write(report, f"{step}:{error.errno or 0}".encode())
    finally:
        os._exit(0)


def can_copy_descriptors() -> bool:
    """Say whether pidfd_getfd(2) works (Linux 5.6, and no filter in the way): tried on ourselves."""
    from agent_reach.linux import pidfd

    try:
        ours = pidfd.open(os.getpid())
    except OSError:
        return False
    read, write = os.pipe()
    try:
        os.close(pidfd.get_fd(ours, read))
    except OSError:
        return False
    finally:
        for descriptor in (ours, read, write):
            os.close(descriptor)
    return True


def try_listener() -> str:
    """Install a filter with a listener in a child; return what failed, or nothing."""
    from struct import pack

    from agent_reach.linux.seccomp import notify

    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            caps.no_new_privileges()
            # One instruction: return ALLOW.
            notify.install(pack("=HBBI", 0x06, 0, 0, abi_seccomp.SECCOMP_RET_ALLOW))
            code = 0
        except OSError as error:
            code = min(error.errno or 255, 255)
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    number = os.waitstatus_to_exitcode(status)
    return "" if number == 0 else f"installing a filter with a listener: {os.strerror(number)}"


def _obstacle(step: str, number: int) -> Obstacle:
    """Name the cause of a failed step and its one fix."""
    found = f"step `{step}`: {os.strerror(number)}"
    if step == "proc" and number == errno.EPERM:
        return Obstacle(
            "a new procfs",
            found + " (the visible /proc has masked paths, as in a container)",
            "docker run --security-opt systempaths=unconfined, or Kubernetes `procMount: Unmasked`",
        )
    if number == errno.ENOSPC:
        return Obstacle("user namespaces", found + " (limit reached)", "sysctl -w user.max_user_namespaces=15000")
    return Obstacle("user namespaces", found, _namespace_fix())


def _namespace_fix() -> str:
    """Return the fix that fits what forbids user namespaces here."""
    if _read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return "install the AppArmor profile that `reach doctor --apparmor` prints"
    if _read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        return "sysctl -w kernel.unprivileged_userns_clone=1"
    if _read("/proc/sys/user/max_user_namespaces") == "0":
        return "sysctl -w user.max_user_namespaces=15000"
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        return "docker run --security-opt seccomp=unconfined (or a profile that allows clone and unshare)"
    return "allow clone(CLONE_NEWUSER) in the seccomp profile or container that this shell runs in"


def _read(path: str) -> str:
    """Read a small kernel file, or nothing."""
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            return stream.read(4096).strip()
    except OSError:
        return ""


def _key() -> str:
    """Sum up what decides the answer: boot, kernel, ids, our own confinement.

    Nothing when a filter of somebody else's is on us: one cannot be told from another.
    """
    status = _read("/proc/self/status").split("\n")
    if "Seccomp:\t0" not in status:
        return ""
    mine = [line for line in status if line.startswith(("CapEff", "NoNewPrivs"))]
    parts = [_FORMAT, _read("/proc/sys/kernel/random/boot_id"), os.uname().release, str(os.geteuid())]
    parts += [_read("/proc/sys/user/max_user_namespaces"), _read("/proc/self/attr/current"), *mine]
    # The number of a namespace is used again when it has gone; its maps tell more.
    parts += _read("/proc/self/uid_map").split()
    for name in ("user", "mnt"):
        try:
            parts.append(os.readlink(f"/proc/self/ns/{name}"))
        except OSError:
            parts.append("-")
    return "|".join(parts)


def _remembered(cache_dir: str, key: str) -> Abilities | None:
    """Read the cache; only the answer ``full`` is believed, a weaker one is always checked again."""
    try:
        about = os.stat(cache_dir)
        if about.st_uid != os.geteuid() or about.st_mode & 0o077:
            return None
        text = _read(os.path.join(cache_dir, "abilities"))
    except OSError:
        return None
    known, _, rest = text.partition("\0")
    if known != key or not rest.isdigit():
        return None
    return Abilities("full", int(rest))


def _remember(cache_dir: str, key: str, known: Abilities) -> None:
    """Keep the answer ``full``; a weaker one may be mended by the user at any time."""
    if known.tier != "full":
        return
    from agent_reach._util.atomic import put

    try:
        os.makedirs(cache_dir, mode=0o700, exist_ok=True)
        put(os.path.join(cache_dir, "abilities"), f"{key}\0{known.landlock}".encode("ascii"))
    except OSError:
        return
