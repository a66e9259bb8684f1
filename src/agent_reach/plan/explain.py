"""What a plan gives a program, as plain values with the line that each part came from; never a secret.

`reach explain` prints it for people, and as it is for machines.
"""

from __future__ import annotations

from agent_reach.contract.model import Origin
from agent_reach.plan import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.contract.model import Contract, EnvGrant
    from agent_reach.outcome import Receipt
    from agent_reach.plan.facts import Facts
    from agent_reach.plan.model import SandboxPlan

    Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def explain(contract: Contract, facts: Facts, plan: SandboxPlan, receipt: Receipt) -> dict[str, Json]:
    """Describe a plan.

    Args:
        contract: what is granted.
        facts: what this host is like.
        plan: what would be applied.
        receipt: what would be enforced.
    """
    return {
        "program": {"argv": list(plan.program.argv), "executable": plan.program.executable, "cwd": plan.program.cwd},
        "contract": {
            "path": contract.path,
            "digest": contract.digest,
            "profile": contract.profile,
            "targets": list(contract.targets),
        },
        "identity": {
            "type": contract.identity.type,
            "name": contract.identity.name,
            "roles": list(contract.identity.roles),
        },
        "interpreter": _interpreter(facts),
        "user": {"name": plan.user, "uid": plan.inner_uid, "gid": plan.inner_gid, "home": plan.home},
        "project": _project(contract, facts),
        "files": _files(contract, facts),
        "read_only": [path for path, _ in facts.protected],
        "hidden": [path for path, _ in facts.specials],
        "environment": _environment(contract, plan),
        "network": [
            {"host": rule.host, "port": rule.port, "protocol": rule.protocol, **_origin(rule.origin)}
            for rule in contract.network
        ],
        "commands": _commands(contract, facts),
        "limits": _limits(plan, {line.what: (line.level, line.by) for line in receipt.lines}),
        "sandbox": {
            "tier": receipt.tier,
            "minimum": contract.sandbox.minimum,
            "landlock": plan.landlock,
            "on_denial": plan.on_denial,
        },
        "receipt": [
            {"what": line.what, "level": line.level, "by": line.by}
            for line in receipt.lines
            if not line.what.startswith("limits.")
        ],
        "notes": list(receipt.notes),
    }


def _origin(origin: Origin) -> dict[str, Json]:
    """Return where an entry was written."""
    return {"file": origin.file, "line": origin.line, "profile": origin.profile}


def _interpreter(facts: Facts) -> dict[str, Json]:
    """Describe the Python that runs the program, and why it is this one."""
    known = facts.interpreter
    return {
        "executable": known.executable,
        "real": known.real,
        "version": known.version,
        "prefix": known.prefix,
        "chosen_by": known.chosen_by,
        "search": list(known.search),
        "extra": list(known.extra),
    }


def _project(contract: Contract, facts: Facts) -> dict[str, Json]:
    """Describe what of the program's own directory can be read."""
    project = facts.project
    return {
        "root": project.root,
        "read": contract.project_read,
        "files": list(project.files),
        "hidden": [path for path, _ in project.masks],
    }


def _files(contract: Contract, facts: Facts) -> list[Json]:
    """Describe each file grant and what it is on this host."""
    known = {fact.path: fact for fact in facts.paths}
    entries: list[Json] = []
    for grant in contract.files:
        fact = known.get(grant.path)
        entries.append(
            {
                "path": grant.path,
                "real": fact.real if fact and fact.kind != "missing" and not grant.source else "",
                "mode": grant.mode,
                "kind": "staged" if grant.source else "pattern" if grant.glob else fact.kind if fact else "missing",
                "required": grant.required,
                "source": _without_query(grant.source),
                "sha256": grant.sha256,
                **_origin(grant.origin),
            }
        )
    return entries


def _without_query(source: str) -> str:
    """Cut a URI's query off: it may hold a token."""
    return source.partition("?")[0] + ("?…" if "?" in source else "")


def _environment(contract: Contract, plan: SandboxPlan) -> dict[str, Json]:
    """Describe the names that exist inside; values are shown of none."""
    declared = {grant.name for grant in contract.env}
    places = layout.delivered(contract)
    return {
        "declared": [
            {
                "name": grant.name,
                "from": _source(grant),
                "required": grant.required,
                "default": grant.default is not None,
                "delivered_at": places[grant.name][1] if grant.name in places else "",
                **_origin(grant.origin),
            }
            for grant in contract.env
        ],
        "always": [name for name, _ in plan.environment if name not in declared],
    }


def _source(grant: EnvGrant) -> str:
    """Say where a value comes from."""
    if grant.template:
        return "template"
    if grant.source:
        return _without_query(grant.source)
    return "contract" if grant.default is not None else "caller"


def _commands(contract: Contract, facts: Facts) -> list[Json]:
    """Describe each command and the files that it makes visible."""
    found = {fact.name: fact for fact in facts.commands}
    entries: list[Json] = []
    for grant in contract.commands:
        fact = found.get(grant.name)
        entries.append(
            {
                "name": grant.name,
                "found": fact.found if fact else "",
                "files": list(dict.fromkeys(real for _, real in fact.files)) if fact else [],
                "directories": list(fact.directories) if fact else [],
                **_origin(grant.origin),
            }
        )
    return entries


def _limits(plan: SandboxPlan, held: Mapping[str, tuple[str, str]]) -> list[Json]:
    """Describe each limit and what would hold it."""
    entries: list[Json] = []
    for limit in plan.limits:
        level, by = held.get(f"limits.{limit.name}", ("best effort", ""))
        entries.append(
            {
                "name": limit.name,
                "value": limit.value,
                "level": level,
                "by": by,
                "must_be_enforced": limit.enforced,
                **_origin(limit.origin),
            }
        )
    if all(limit.name != "scratch" for limit in plan.limits):
        level = "enforced" if plan.tier == "full" else "best effort"
        by = "tmpfs size" if plan.tier == "full" else ""
        scratch: dict[str, Json] = {"name": "scratch", "value": float(plan.scratch), "level": level, "by": by}
        entries.append({**scratch, "must_be_enforced": False, **_origin(Origin())})
    return entries
