"""From a command line to the request that the engine takes."""

from __future__ import annotations

import os
import stat

from agent_reach.cli.failures import NotRunnable
from agent_reach.cli.options import UsageError
from agent_reach.cli.result import descriptor_of
from agent_reach.errors import EXIT_NOT_FOUND, EXIT_NOT_RUNNABLE, ContractError, Finding
from agent_reach.prepare import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.cli.options import Parsed

MOST_CONTRACT = 1 << 20
# The kernel takes at most 128 KiB for one argument (MAX_ARG_STRLEN, execve(2)).
MOST_CODE = (128 << 10) - 1
_KINDS = {
    "SCRIPT": "script",
    "--": "script",
    "--script": "script",
    "-m": "module",
    "-c": "code",
    "--code-fd": "code",
    "--stdin": "stdin",
}
GRANTS = {
    "read": "--read",
    "write": "--write",
    "net": "--net",
    "passes": "--pass",
    "commands": "--command",
    "limits": "--limit",
}


def make(parsed: Parsed) -> Request:
    """Build the request.

    Args:
        parsed: the command line; without a program the request is for the contract alone.

    Raises:
        UsageError: options contradict each other, or a descriptor is not open.
        ContractError: ``--locked`` forbids what else is there.
        OSError: a descriptor cannot be read.
    """
    _check(parsed)
    kind, target = _target(parsed)
    contract, data = parsed.one("--contract") or "", None
    if contract.startswith("fd:"):
        data = read_all(descriptor_of(contract[3:], "--contract fd:3 SCRIPT 3<FILE"), MOST_CONTRACT, "the contract")
    return Request(
        kind=kind,
        target=target,
        arguments=parsed.words,
        contract=contract,
        contract_data=data,
        profile=parsed.one("--env"),
        targets=parsed.all("--target"),
        python=parsed.one("--python") or "",
        minimum=parsed.one("--minimum") or "",
        use_cache=not parsed.has("--no-cache"),
        use_record=not parsed.has("--no-record"),
        **{field: parsed.all(option) for field, option in GRANTS.items()},
    )


def for_contract(parsed: Parsed) -> Request:
    """Build the request of a command that runs nothing: its one word may be the contract itself.

    Raises:
        NotRunnable: the script is missing.
        UsageError, ContractError, OSError: as `make`.
    """
    target = parsed.target
    named = parsed.ender in {"SCRIPT", "--"}
    if named and target.endswith((".yaml", ".yml")) and not parsed.has("--contract"):
        return make(parsed.replace(ender="", target="", values={**parsed.values, "--contract": [target]}))
    asked = make(parsed)
    if asked.kind == "script":
        check_script(asked.target)
    return asked


def _target(parsed: Parsed) -> tuple[str, str]:
    """Return kind and target of the program."""
    if parsed.command == "exec" and parsed.ender in {"--", "SCRIPT"}:
        return "command", parsed.target
    if not parsed.ender:
        return "module", ""
    kind = _KINDS[parsed.ender]
    if parsed.ender == "--code-fd":
        code = read_all(descriptor_of(parsed.target, "--code-fd 3 3<FILE"), MOST_CODE, "the code")
        if b"\0" in code:
            raise UsageError("--code-fd: the code has a NUL byte")
        return kind, os.fsdecode(code)
    return kind, "-" if kind == "stdin" else parsed.target


def _check(parsed: Parsed) -> None:
    """Refuse what can be refused before anything is looked at."""
    profile = parsed.one("--env") or ""
    if "=" in profile:
        name = profile.partition("=")[0]
        raise UsageError(f"--env names a profile; to pass a variable use --pass {name}")
    if parsed.one("--minimum") not in {None, "full", "reduced"}:
        raise UsageError(f"--minimum {parsed.one('--minimum')}: the tiers are full and reduced")
    if parsed.has("--audit"):
        raise ContractError((Finding("E_NOT_YET", "--audit (planned: analysis)"),))
    if parsed.has("--locked"):
        found = [name for name in (*GRANTS.values(), "--minimum", "--save") if parsed.has(name)]
        if found:
            message = f"{found[0]} is refused under --locked: the contract alone decides"
            raise ContractError(
                (Finding("E_LOCKED", message, hint="write it into the contract, or leave --locked out"),)
            )


def check_script(path: str) -> None:
    """Refuse a script that cannot be read, before a sandbox is built for it.

    Args:
        path: as typed.

    Raises:
        NotRunnable: it is missing, no file, or not readable.
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise NotRunnable(f"cannot run {path}: no such file", EXIT_NOT_FOUND, _command_hint(path)) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise NotRunnable(f"cannot run {path}: {why}", EXIT_NOT_RUNNABLE) from None
    if stat.S_ISDIR(mode) and not os.path.exists(os.path.join(path, "__main__.py")):
        raise NotRunnable(f"cannot run {path}: it is a directory without __main__.py", EXIT_NOT_RUNNABLE)
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        hint = "code from a pipe: reach run -, or reach run --code-fd N"
        raise NotRunnable(f"cannot run {path}: it is not a file", EXIT_NOT_RUNNABLE, hint)
    if not os.access(path, os.R_OK):
        raise NotRunnable(f"cannot run {path}: permission denied", EXIT_NOT_RUNNABLE)


def _command_hint(path: str) -> str:
    """Say what a missing script may have been meant to be."""
    from agent_reach.cli.commands import find

    if find(path):
        return f"did you mean `reach {path}`?"
    return "" if "/" in path or path.endswith(".py") else f"a module is run with `-m {path}`"


def read_all(descriptor: int, most: int, what: str) -> bytes:
    """Read a descriptor to its end.

    Args:
        descriptor: open for reading.
        most: most bytes to take.
        what: what is read, for the message.

    Raises:
        UsageError: there is more.
        OSError: it cannot be read.
    """
    parts: list[bytes] = []
    left = most + 1
    while left > 0 and (part := os.read(descriptor, min(left, 1 << 16))):
        parts.append(part)
        left -= len(part)
    if left <= 0:
        raise UsageError(f"{what} on descriptor {descriptor} is larger than {most >> 10} KiB")
    return b"".join(parts)
