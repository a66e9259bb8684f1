"""Failures of reach itself, in words and in JSON."""

from __future__ import annotations

import os
from errno import ENOENT

from agent_reach._util.visible import visible
from agent_reach.errors import (
    EXIT_NOT_FOUND,
    EXIT_NOT_RUNNABLE,
    EXIT_REACH_FAILED,
    ContractError,
    Finding,
    ProviderError,
    ReachError,
    ReachInternalError,
    SetupError,
    Unavailable,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.audit.canonical import Json

_EXECUTE = "execute"
_INDENT = "       "
_REPORT = "this is a fault in reach, not in your program; report it with this text and `reach version --json`"


class NotRunnable(Exception):  # noqa: N818 - it names the shell's own word for status 126
    """There is no program to run.

    Args:
        message: what was asked for and what is wrong with it.
        status: 126 or 127.
        hint: what to write instead, or empty.
    """

    code = "not_runnable"

    def __init__(self, message: str, status: int, hint: str = "") -> None:
        super().__init__(message)
        self.status, self.hint = status, hint


def status_of(error: BaseException) -> int:
    """Return the status for the shell."""
    if isinstance(error, NotRunnable):
        return error.status
    if isinstance(error, SetupError) and error.step == _EXECUTE:
        return EXIT_NOT_FOUND if error.errno == ENOENT else EXIT_NOT_RUNNABLE
    return EXIT_REACH_FAILED


def words(error: BaseException) -> str:
    """Return the lines that tell a person what failed and what to do."""
    for kind, render in _WORDS:
        if isinstance(error, kind):
            return render(error)
    return f"reach: internal error: {visible(_raised(error))}\n{_INDENT}{_REPORT}"


def contract_words(error: ContractError) -> str:
    """Return every finding, each on its own line, hints below."""
    from agent_reach.cli.clauses import here, shorten

    lines, cwd = [], here()
    for finding in error.findings:
        head, _, hint = str(finding.replace(file=shorten(finding.file, cwd))).partition("\n")
        lines.append(f"reach: {visible(head)}")
        lines += [f"{_INDENT}{visible(hint.strip())}"] if hint else []
    count = len(error.findings)
    return "\n".join([*lines, f"reach: nothing ran: {count} findings" if count > 1 else "reach: nothing ran"])


def _provider(error: ProviderError) -> str:
    """Return one line for each entry that could not be had."""
    return "\n".join(f"reach: {visible(problem)}" for problem in error.problems)


def _setup(error: SetupError) -> str:
    """Return the step that failed; executing the program is the one that a user can mend."""
    if error.step == _EXECUTE:
        why = "it, or the interpreter in its first line, is not shown inside" if error.errno == ENOENT else ""
        text = f"cannot run {error.detail}: {why or os.strerror(error.errno)}"
        hint = "a command needs a grant in resources.commands, and so does its interpreter"
        return f"reach: {visible(text)}\n{_INDENT}{hint}"
    return f"reach: {visible(str(error))}\n{_INDENT}nothing ran; `reach doctor` tries each mechanism on this host"


def _internal(error: ReachInternalError) -> str:
    """Return the text and ask for a report."""
    return f"reach: internal error: {visible(str(error))}\n{_INDENT}{_REPORT}"


def _not_runnable(error: NotRunnable) -> str:
    """Return what is wrong with the program's name."""
    return f"reach: {visible(str(error))}" + (f"\n{_INDENT}{visible(error.hint)}" if error.hint else "")


def _os(error: OSError) -> str:
    """Return the file and the kernel's word for it."""
    about = f" {visible(str(error.filename))}:" if error.filename else ""
    return f"reach:{about} {error.strerror or type(error).__name__}"


def _unavailable(error: Unavailable) -> str:
    """Return feature, need, finding and fix, one a line."""
    lines = [f"reach: {visible(error.feature)} is not available on this host"]
    for name in ("needed", "found", "fix"):
        text = getattr(error, name)
        lines += [f"{_INDENT}{name + ':':<8}{visible(text)}"] if text else []
    return "\n".join(lines)


_WORDS: tuple[tuple[type[BaseException], Callable[..., str]], ...] = (
    (ContractError, contract_words),
    (ProviderError, _provider),
    (Unavailable, _unavailable),
    (SetupError, _setup),
    (ReachInternalError, _internal),
    (NotRunnable, _not_runnable),
    (OSError, _os),
)


def _raised(error: BaseException) -> str:
    """Name an exception that nobody expected, and the line of reach that raised it."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f" ({code.co_filename.rpartition('agent_reach/')[2]}:{trace.tb_lineno})"
        trace = trace.tb_next
    return f"{type(error).__name__}: {error}{place}"


def as_json(error: BaseException) -> dict[str, Json]:
    """Return code, message and what else a program could act on."""
    if isinstance(error, KeyboardInterrupt):
        return {"code": "interrupted", "message": "interrupted before the program started"}
    code = getattr(error, "code", "internal") if isinstance(error, ReachError | NotRunnable) else "internal"
    value: dict[str, Json] = {"code": str(code), "message": str(error) or type(error).__name__}
    if isinstance(error, ContractError):
        value["findings"] = [finding_json(finding) for finding in error.findings]
    elif isinstance(error, Unavailable):
        value |= {"feature": error.feature, "needed": error.needed, "found": error.found, "fix": error.fix}
    elif isinstance(error, ProviderError):
        value["problems"] = list(error.problems)
    elif isinstance(error, SetupError):
        value |= {"step": error.step, "errno": error.errno}
    return value


def finding_json(finding: Finding) -> dict[str, Json]:
    """Return a finding as JSON values."""
    return dict(finding.__dict__)
