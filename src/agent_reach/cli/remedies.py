"""The one fix that fits this host: for a container its own flags, for a plain host a setting or a profile."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.linux.probe import Obstacle

_POD = "pod spec: `hostUsers: false` and `securityContext: {procMount: Unmasked, seccompProfile: {type: Unconfined}}`"
_DOCKER = "docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
_DELEGATE = "systemd-run --user --scope -p Delegate=yes reach run ..."
_BOOT_WORDS = "add `cgroup_enable=memory cgroup_memory=1` to /boot/firmware/cmdline.txt and reboot"

_PROFILE = """\
# AppArmor profile for reach: it may make user namespaces; nothing else changes for it or for anybody else.
#
#   reach doctor --apparmor | sudo tee /etc/apparmor.d/reach
#   sudo apparmor_parser -r /etc/apparmor.d/reach
#
# The profile is attached to the script {path}, not to Python. Whoever can write that file
# can use the permission: keep it root's (sudo pipx install --global, or a package).
abi <abi/4.0>,
include <tunables/global>

profile reach "{path}" flags=(unconfined) {{
  userns,

  include if exists <local/reach>
}}
"""


def apparmor_profile() -> str:
    """Return the profile for the installed command."""
    return _PROFILE.format(path=command_path())


def command_path() -> str:
    """Return the real path of the `reach` script: the kernel attaches a profile by it."""
    started = os.path.abspath(sys.argv[0]) if sys.argv and sys.argv[0] else ""
    if os.path.basename(started) not in {"reach", "agent-reach-runtime"}:
        started = os.path.join(os.path.dirname(sys.executable), "reach")
    return os.path.realpath(started)


def place() -> str:
    """Say what this process runs in: ``kubernetes``, ``docker``, or nothing."""
    if os.path.exists("/var/run/secrets/kubernetes.io") or "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        return "docker"
    return ""


def for_obstacle(obstacle: Obstacle) -> str:
    """Return the fix for what keeps tier full away."""
    if place() == "kubernetes":
        return _POD
    own = obstacle.feature.startswith("a root") or "sysctl" in obstacle.fix
    return _DOCKER if place() == "docker" and not own else obstacle.fix


def in_container(capability: str) -> str:
    """Return how a container gets a capability; nothing outside of one."""
    if place() == "kubernetes":
        return f"pod spec: securityContext: {{capabilities: {{add: [{capability}]}}}}"
    return f"docker run --cap-add {capability}" if place() == "docker" else ""


def for_control_groups() -> str:
    """Return how limits become enforced here."""
    if place() == "kubernetes":
        return "set resources.limits in the pod spec"
    if place() == "docker":
        return "docker run --memory ... --pids-limit ... --cpus ... for the whole container"
    if _is_raspberry() and "memory" not in _read("/sys/fs/cgroup/cgroup.controllers").split():
        return _BOOT_WORDS
    return _DELEGATE


def file_system(path: str) -> str:
    """Return the kind of file system that a path is on.

    Args:
        path: absolute.
    """
    best, kind = "", "unknown"
    for line in _read("/proc/self/mounts", 1 << 20).split("\n"):
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        if len(point) >= len(best) and (path == point or path.startswith(point.rstrip("/") + "/")):
            best, kind = point, fields[2]
    return kind


def _is_raspberry() -> bool:
    """Say whether this is a Raspberry Pi, whose firmware switches the memory controller off."""
    return "Raspberry Pi" in _read("/proc/device-tree/model")


def _read(path: str, most: int = 4096) -> str:
    """Read a kernel file, or nothing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(most)
    except OSError:
        return ""
