"""Where findings are gathered, and how foreign text is shown in them."""

from __future__ import annotations

from agent_reach.errors import ContractError, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_reach.contract.nodes import Node

MAX_FINDINGS = 100
_SHOWN = 80


class Refusal(Exception):  # noqa: N818 - it is the answer of a converter, turned into a finding by its caller
    """A value that a pure converter does not take.

    Args:
        code: finding code.
        message: one sentence without the position.
        hint: what to write instead, or empty.
    """

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


class Sink:
    """Findings of one pass; the same finding at the same place is kept once."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._more = 0
        self._seen: set[tuple[object, ...]] = set()
        self._order: dict[str, int] = {}

    def add(self, node: Node, code: str, message: str, hint: str = "") -> None:
        """Note a finding at the place of a node."""
        self.note(
            Finding(
                code=code,
                message=message,
                file=node.doc.display,
                line=node.line,
                column=node.column,
                key=node.key,
                hint=hint,
            )
        )

    def refuse(self, node: Node, refusal: Refusal) -> None:
        """Note the refusal of a converter at the place of a node."""
        self.add(node, refusal.code, refusal.message, refusal.hint)

    def note(self, finding: Finding) -> None:
        """Note a finding that is complete."""
        mark = (finding.code, finding.file, finding.line, finding.column, finding.message)
        if mark in self._seen:
            return
        self._seen.add(mark)
        if len(self.findings) == MAX_FINDINGS:
            self._more += 1
        else:
            self._order.setdefault(finding.file, len(self._order))
            self.findings.append(finding)

    def raise_if_any(self) -> None:
        """Raise everything that was found, in document order.

        Raises:
            ContractError: something was found.
        """
        if not self.findings:
            return
        order = self._order
        found = sorted(self.findings, key=lambda finding: (order[finding.file], finding.line, finding.column))
        if self._more:
            found.append(Finding("E_SIZE", f"{self._more} more findings are not shown", file=found[0].file))
        raise ContractError(tuple(found))


def shown(text: str) -> str:
    """Return text between backquotes, without control characters, cut to 80 characters."""
    cut = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return "`" + "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut) + "`"


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean `x`?`` for the nearest known word, or an empty string."""
    import difflib

    near = difflib.get_close_matches(word[:_SHOWN], list(known), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else ""
