"""What the worker puts on itself, as data."""

from __future__ import annotations

from agent_reach._util.record import Record
from agent_reach.linux import landlock
from agent_reach.linux.seccomp import precompiled
from agent_reach.sandbox import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.plan.model import SandboxPlan


class Lock(Record):
    """What the worker puts on itself, in order.

    Args:
        limits: resource limits.
        landlock: rules; ABI 0 means none.
        filter: BPF program.
    """

    limits: tuple[tuple[int, int, int], ...]
    version: int
    rules: tuple[tuple[str, int], ...]
    refuse_bind: bool
    program: bytes


def make_lock(plan: SandboxPlan, filter_cache: str) -> Lock:
    """Derive the worker's lock from the plan, outside and before the fork: inside there is nothing to import from.

    Args:
        plan: the plan.
        filter_cache: private directory of compiled filters, or empty.
    """
    full = plan.tier == "full"
    wanted = {limit.name: limit.value for limit in plan.limits}
    return Lock(
        limits=limits.resource_limits(wanted),
        version=plan.landlock,
        rules=landlock_rules(plan),
        refuse_bind=not full,
        program=precompiled.program(limits.filter_options(plan), filter_cache),
    )


def landlock_rules(plan: SandboxPlan) -> tuple[tuple[str, int], ...]:
    """List path and rights; whatever can be read can be executed, in both tiers.

    Neither tier shows a directory of executables. The loader, which the kernel executes for every program, lies
    among the libraries, and so do the helpers of compilers and wheels.
    """
    rights: dict[str, int] = {"/": landlock.READ_DIR} if plan.tier == "full" else {}
    for path in plan.readable:
        rights[path] = rights.get(path, 0) | landlock.READ | landlock.EXECUTE
    for path in plan.writable:
        rights[path] = rights.get(path, 0) | landlock.WRITE | landlock.READ_DIR
    for path in plan.listable:
        rights[path] = rights.get(path, 0) | landlock.READ_DIR
    if plan.tier != "full":
        for path in plan.executables:
            rights[path] = rights.get(path, 0) | landlock.EXECUTE | landlock.READ_FILE
    return tuple(rights.items())
