"""The receipt: what is enforced, by which mechanism, in words that claim no more."""

from __future__ import annotations

from agent_reach.outcome import Enforced, Receipt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.plan.model import SandboxPlan

ENFORCED = "enforced"
BEST_EFFORT = "best effort"
NOT_ENFORCED = "not enforced"


# What is left of a limit where nothing holds the whole tree; a name that is missing has nothing at all.
_LEFT = {
    "memory": "watchdog",
    "cpu_time": "rlimit of each process, watchdog",
    "processes": "rlimit of the user",
}


def _limit(name: str, by: str) -> Enforced:
    """Write the line of one limit."""
    if by:
        return Enforced(f"limits.{name}", ENFORCED, by)
    left = _LEFT.get(name, "")
    return Enforced(f"limits.{name}", BEST_EFFORT if left else NOT_ENFORCED, left or "nothing on this host holds it")


def make(plan: SandboxPlan, held: Mapping[str, str], notes: tuple[str, ...] = (), *, uid: int = 1) -> Receipt:
    """Write the receipt of a plan.

    Args:
        plan: what was applied.
        held: limit name to the mechanism that holds it for the whole tree; a limit that is missing is best effort.
        notes: what came up in the run.
        uid: uid of the sandbox on the host; only 0 matters.
    """
    full = plan.tier == "full"
    landlock = f", Landlock ABI {plan.landlock}" if plan.landlock else ""
    files = f"mount namespace{landlock}" if full else f"Landlock ABI {plan.landlock}"
    lines = [
        Enforced("undeclared files", ENFORCED, files),
        Enforced(
            "undeclared connections", ENFORCED, "network namespace, seccomp, broker" if full else "seccomp, broker"
        ),
        Enforced("undeclared environment", ENFORCED, "executed with a built environment"),
        Enforced("system calls", ENFORCED, "seccomp"),
        Enforced("commands", ENFORCED if full else BEST_EFFORT, "single files shown" if full else "Landlock"),
        Enforced(
            "other processes",
            ENFORCED if full or plan.landlock else BEST_EFFORT,
            "pid namespace" if full else "Landlock signal scope" if plan.landlock >= 6 else "broker",
        ),
    ]
    lines += [_limit(limit.name, held.get(limit.name, "")) for limit in plan.limits]
    root = ("uid 0, no capabilities",) if uid == 0 else ()
    return Receipt(plan.tier, tuple(lines), (*plan.notes, *root, *notes))
