"""`reach exec`: a command, or a script, under a contract."""

from __future__ import annotations

import os

from agent_reach import prepare
from agent_reach.cli import request, run
from agent_reach.cli.failures import NotRunnable
from agent_reach.cli.options import UsageError
from agent_reach.errors import EXIT_NOT_FOUND, ContractError, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.cli.options import Parsed
    from agent_reach.prepare import Prepared, Request


def execute(parsed: Parsed, environ: Mapping[str, str]) -> int:
    """Run a granted command, or a script.

    Raises:
        UsageError: the command line cannot be understood.
    """
    if not parsed.ender:
        raise UsageError("nothing to run", "reach exec -- COMMAND, or reach exec --script SCRIPT")
    return run.carry_out(parsed, environ, _ready)


def _ready(asked: Request, environ: Mapping[str, str]) -> Prepared:
    """Make the plan, and refuse a command that the contract does not grant before a sandbox is built for it.

    Raises:
        NotRunnable: there is no such command or script.
        ContractError: the command is not granted.
    """
    if asked.kind == "script":
        request.check_script(asked.target)
        return prepare.prepare(asked, environ)
    prepared = prepare.prepare(asked, environ)
    executable = _executable(prepared)
    program = prepared.plan.program.replace(executable=executable)
    return prepared.replace(plan=prepared.plan.replace(program=program))


def _executable(prepared: Prepared) -> str:
    """Return the file of the command inside.

    The interpreter always works; a path is left to the kernel, which shows what the contract grants.
    """
    target, known = prepared.request.target, prepared.facts.interpreter
    for fact in prepared.facts.commands:
        if target in {fact.name, fact.found}:
            if fact.found:
                return fact.found
            raise NotRunnable(f"cannot run {target}: it is granted, and not on PATH", EXIT_NOT_FOUND)
    if target in {"python", "python3", f"python{known.version}", known.executable}:
        return known.executable
    path = os.path.normpath(os.path.join(prepared.caller.cwd, target))
    if "/" in target and not os.path.exists(path):
        raise NotRunnable(f"cannot run {target}: no such file", EXIT_NOT_FOUND)
    if "/" in target and _shown(path, prepared):
        return path
    raise ContractError((_not_granted(target, prepared),))


def _shown(path: str, prepared: Prepared) -> bool:
    """Say whether a file is part of the project or of a file grant, so that it exists inside."""
    roots = [prepared.facts.project.root, *(fact.real for fact in prepared.facts.paths)]
    return any(root and (path == root or path.startswith(root.rstrip("/") + "/")) for root in roots)


def _not_granted(target: str, prepared: Prepared) -> Finding:
    """Return the finding that names the missing grant and the line to add."""
    from agent_reach.cli.clauses import line_of, shorten

    contract = prepared.contract
    line = line_of(contract, "resources.commands") if contract.path else 0
    file = shorten(contract.path, prepared.caller.cwd)
    hint = f"to allow it add:  - {target}   (for this run alone: --command {target})"
    return Finding("E_NOT_GRANTED", f"the command `{target}` is not in resources.commands", file, line, hint=hint)
