"""Turn wanted limits into resource limits and filter options, and say what holds each of them."""

from __future__ import annotations

from agent_reach.linux import landlock, rlimits
from agent_reach.linux.seccomp.options import FilterOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.plan.model import SandboxPlan

_OPEN_FILES = 1024
_OPEN_FILES_MOST = 1 << 19


def resource_limits(wanted: Mapping[str, float]) -> tuple[tuple[int, int, int], ...]:
    """List resource, soft and hard limit of the worker.

    Args:
        wanted: limit by name; seconds, bytes, counts.
    """
    processes = int(wanted["processes"])
    limits = [
        (rlimits.CORE, 0, 0),
        (rlimits.PROCESSES, processes, processes),
        (rlimits.OPEN_FILES, _OPEN_FILES, _OPEN_FILES_MOST),
    ]
    if "open_files" in wanted:
        count = int(wanted["open_files"])
        limits[2] = (rlimits.OPEN_FILES, count, count)
    if "cpu_time" in wanted:
        # One process; the watchdog adds up the tree. The hard limit is the kill, a second after SIGXCPU.
        seconds = max(1, int(wanted["cpu_time"] + 0.999))
        limits.append((rlimits.CPU, seconds, seconds + 1))
    return tuple(limits)


def filter_options(plan: SandboxPlan) -> FilterOptions:
    """Choose the variations of the seccomp policy that a plan needs."""
    reduced = plan.tier != "full"
    names = {limit.name for limit in plan.limits}
    return FilterOptions(
        tier=plan.tier,
        # The supervisor refuses new processes while it ends the old ones: without a pid namespace it could lose a race.
        notify_forks=reduced,
        notify_socket=plan.notify_socket,
        notify_signals=reduced and plan.landlock < landlock.ABI_SCOPE,
        # Memory in a memfd counts for no process: without a memory cgroup only its absence bounds it.
        no_memfd="memory" in names and not plan.memory_cgroup,
        metadata="notify" if reduced else "allow",
        uid=plan.inner_uid,
        gid=plan.inner_gid,
        refuse_truncate=reduced and plan.landlock < landlock.ABI_TRUNCATE,
    )


def by_control_group(plan: SandboxPlan) -> dict[str, float]:
    """Select the limits that a control group holds better than anything else."""
    names = {"memory", "swap", "cpus"} if plan.tier == "full" else {"memory", "swap", "cpus", "processes"}
    return {limit.name: limit.value for limit in plan.limits if limit.name in names}


def held_without(plan: SandboxPlan, uid: int) -> dict[str, str]:
    """Name the mechanism of each limit that holds for the whole tree without a control group.

    Args:
        plan: the plan.
        uid: uid of the sandbox on the host.
    """
    held = {"wall": "supervisor", "grace": "supervisor", "output": "launcher", "open_files": "rlimit of each process"}
    if plan.tier == "full":
        held |= {"scratch": "tmpfs size", "scratch_inodes": "tmpfs inodes"}
        if uid != 0:
            # Counted within the run's own user namespace; uid 0 of the host would be exempt.
            held["processes"] = "rlimit in the run's user namespace"
    return held
