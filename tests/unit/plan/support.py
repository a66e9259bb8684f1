"""Facts of a host, stated by hand: a merged /usr, one project, one user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_reach.contract.model import Contract
from agent_reach.host.model import Caller, Interpreter, PathFact, ProjectFact
from agent_reach.host.system import SystemFact
from agent_reach.plan.build import build
from agent_reach.plan.facts import Facts, Invocation

if TYPE_CHECKING:
    from agent_reach.contract.model import FileGrant
    from agent_reach.plan.model import SandboxPlan

ALICE = Caller(uid=1001, gid=1002, name="alice", home="/home/alice", cwd="/srv/job", umask=0o27)
PYTHON = Interpreter(
    executable="/usr/bin/python3",
    real="/usr/bin/python3.11",
    version="3.11",
    prefix="/usr",
    base_prefix="/usr",
    stdlib="/usr/lib/python3.11",
    search=("/usr/lib/python311.zip", "/usr/lib/python3.11", "/usr/lib/python3/dist-packages"),
    chosen_by="PATH",
)
SYSTEM = SystemFact(
    directories=("/usr/lib", "/usr/lib64", "/usr/share", "/usr/local/lib"),
    links=(("/bin", "usr/bin"), ("/sbin", "usr/sbin"), ("/lib", "usr/lib"), ("/lib64", "usr/lib64")),
    empty=(),
    files=(
        ("/etc/alternatives/", "/etc/alternatives"),
        ("/etc/ld.so.cache", "/etc/ld.so.cache"),
        ("/etc/localtime", "/usr/share/zoneinfo/Etc/UTC"),
        ("/etc/ssl/certs/", "/etc/ssl/certs"),
    ),
)
FULL = Facts(
    tier="full",
    landlock=6,
    caller=ALICE,
    interpreter=PYTHON,
    project=ProjectFact("/srv/job"),
    system=SYSTEM,
)
REDUCED = FULL.replace(tier="reduced", private="/tmp/reach-run-0123456789abcdef", entries=("/srv/job/job.py",))
SCRIPT = Invocation("script", "job.py", ("--fast",), "/srv/job/job.py")


def granting(*grants: FileGrant, facts: Facts = FULL, **contract: object) -> tuple[Contract, Facts]:
    """Return a contract with file grants and facts in which each of them exists under its own name."""
    return Contract(files=grants, **contract), facts.replace(paths=tuple(map(there, grants)))


def there(grant: FileGrant) -> PathFact:
    """Return the fact of a path that exists, as the file or directory that the grant says."""
    if grant.source:
        return PathFact(grant.path)
    kind = "directory" if grant.directory else "file"
    return PathFact(grant.path, grant.path, kind, device=7, inode=42, uid=1001, gid=1002, mode=0o755)


def planned(contract: Contract | None = None, facts: Facts = FULL, invocation: Invocation = SCRIPT) -> SandboxPlan:
    """Return the plan."""
    return build(contract or Contract(), facts, invocation)


def at(plan: SandboxPlan, target: str) -> list[object]:
    """Return what a plan mounts at a path, in order."""
    return [mount for mount in plan.mounts if mount.target == target]


def targets(plan: SandboxPlan) -> list[str]:
    """Return every place at which a plan mounts something, in order."""
    return [mount.target for mount in plan.mounts]
