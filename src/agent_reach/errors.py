"""The five ways in which reach itself can fail, and their exit status.

What the user's program did is never an exception of ours: see `outcome.Result`. Each class has a stable
`code`, used by `--result`, JSON output and the documentation's anchors.
"""

from __future__ import annotations

from agent_reach._util.record import Record

EXIT_WALL_LIMIT = 124
EXIT_REACH_FAILED = 125
EXIT_NOT_RUNNABLE = 126
EXIT_NOT_FOUND = 127


class Finding(Record):
    """One thing that is wrong with a contract.

    Args:
        code: stable identifier, such as ``E_UNKNOWN_KEY``; an anchor of docs/contract.md.
        message: one sentence, without the position.
        file: path of the document, as the user wrote it.
        line: 1-based line, 0 when there is none.
        column: 1-based column, 0 when there is none.
        key: dotted key path, such as ``resources.files[0].mode``.
        hint: what to write instead, or empty.
    """

    code: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    key: str = ""
    hint: str = ""

    def __str__(self) -> str:
        """Render ``file:line:column: message (key) [code]`` and the hint behind it."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        head = f"{place}: " if place else ""
        key = f"`{self.key}`: " if self.key else ""
        hint = f"\n    {self.hint}" if self.hint else ""
        return f"{head}{key}{self.message} [{self.code}]{hint}"


class ReachError(Exception):
    """Base of every failure of reach itself; the command line ends with status 125."""

    code = "reach"


class ContractError(ReachError):
    """The contract cannot be used; nothing of the user's code ran.

    Args:
        findings: every finding of one pass, in document order.
    """

    code = "contract"

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = findings


class Unavailable(ReachError):  # noqa: N818 - the name is the contract's word, DESIGN section 5
    """This host cannot do what the contract asks for.

    Args:
        feature: the mechanism, such as ``user namespaces``.
        needed: what asks for it.
        found: what the host answered.
        fix: the one thing to do about it.
    """

    code = "unavailable"

    def __init__(self, feature: str, *, needed: str = "", found: str = "", fix: str = "") -> None:
        parts = [f"{feature} is not available on this host"]
        parts += [f"needed: {needed}"] if needed else []
        parts += [f"found: {found}"] if found else []
        parts += [f"fix: {fix}"] if fix else []
        super().__init__("\n       ".join(parts))
        self.feature, self.needed, self.found, self.fix = feature, needed, found, fix


class ProviderError(ReachError):
    """Secrets or files could not be had; never carries a value.

    Args:
        problems: one message per entry that failed, all of one run.
    """

    code = "provider"

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class SetupError(ReachError):
    """A step of the sandbox's set-up that should have worked was refused by the kernel.

    Args:
        step: name of the step, such as ``mount proc``.
        errno: error number of the call.
        detail: object of the call, such as a path.
    """

    code = "setup"

    def __init__(self, step: str, errno: int, detail: str = "") -> None:
        import os

        about = f" ({detail})" if detail else ""
        super().__init__(f"set-up step `{step}`{about} failed: {os.strerror(errno)} (errno {errno})")
        self.step, self.errno, self.detail = step, errno, detail


class ReachInternalError(ReachError):
    """A fault in reach; report it with the text."""

    code = "internal"
