"""What a run tells people on standard error: denials, remarks, the receipt, and why nothing ran."""

from __future__ import annotations

from agent_reach._util.visible import visible
from agent_reach.cli.terminal import paint_for, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.contract.model import Contract
    from agent_reach.linux.probe import Abilities
    from agent_reach.outcome import Denial, Place, Receipt, Result

MOST_DENIALS = 20
_INDENT = "       "


class Report:
    """The voice of one run.

    Args:
        environ: the caller's environment.
        quiet: say nothing about denials and remarks.
        verbose: say everything, at the end.
        code_name: what the program's code is called when it has no file, such as ``<code>``.
    """

    def __init__(
        self, environ: Mapping[str, str], *, quiet: bool = False, verbose: bool = False, code_name: str = ""
    ) -> None:
        self._paint = paint_for(2, environ)
        self._quiet = quiet
        self._verbose = verbose
        self._code_name = code_name
        self._contract: Contract | None = None
        self._cwd = "/"
        self._seen: set[tuple[object, ...]] = set()
        self._left_out = 0

    def about(self, contract: Contract, cwd: str) -> None:
        """Tell which contract the clauses belong to.

        Args:
            contract: the contract of the run.
            cwd: the caller's working directory, for short paths.
        """
        self._contract, self._cwd = contract, cwd

    def tier(self, abilities: Abilities) -> None:
        """Say in one line that the sandbox is weaker than it could be, and why."""
        if self._quiet or abilities.tier == "full" or abilities.obstacle is None:
            return
        why = visible(f"{abilities.obstacle.feature}: {abilities.obstacle.found}", 200)
        say(f"reach: tier {abilities.tier}: {why} (`reach doctor` has the fix)")

    def deny(self, denial: Denial) -> None:
        """Show a denial, once for each action, object and source line, the first twenty of them."""
        place = denial.place
        mark = (denial.action, denial.subject, place and (place.file, place.line))
        if self._quiet or mark in self._seen:
            return
        self._seen.add(mark)
        if len(self._seen) > MOST_DENIALS and not self._verbose:
            self._left_out += 1
            return
        say(self.block(denial))

    def block(self, denial: Denial) -> str:
        """Return the three lines of a denial."""
        paint = self._paint
        where = f"  {self._place(denial.place)}" if denial.place else ""
        subject = visible(denial.subject, 400)
        head = f"reach: {paint('strong red', 'denied')} {visible(denial.action, 40)} {paint('bold', subject)}{where}"
        lines = [head, f"{_INDENT}{visible(self._clause(denial.clause), 600)}"]
        if denial.entry:
            lines.append(f"{_INDENT}to allow it add:  {paint('green', visible(denial.entry, 600))}")
        return "\n".join(lines)

    def _clause(self, clause: str) -> str:
        """Return the clause with its place in the contract."""
        if self._contract is None:
            return clause
        from agent_reach.cli.clauses import located

        return located(clause, self._contract, self._cwd)

    def _place(self, place: Place) -> str:
        """Return a line of the program as a person would write it."""
        from agent_reach.cli.clauses import shorten

        file = shorten(place.file, self._cwd)
        if file == "<string>" and self._code_name:
            file = self._code_name
        inside = "" if place.function == "<module>" else f" in {visible(place.function, 80)}"
        return f"{visible(file, 300)}:{place.line}{inside}"

    def end(self, result: Result, *, recorded: bool) -> None:
        """Say what is left to say when the program has ended.

        Args:
            result: what came of the run.
            recorded: whether there is a record to look into.
        """
        if self._verbose:
            for denial in result.denials:
                self.deny(denial)
        elif self._left_out:
            more = f"reach log {result.run_id}" if recorded else "-v shows them; there is no record"
            say(f"reach: {self._left_out} more: {more}")
        if result.cause not in {"exited", "signalled"} and result.message and not self._quiet:
            say(f"reach: {visible(result.message, 400)}")
        if self._verbose:
            self._account(result)

    def _account(self, result: Result) -> None:
        """Show how the run ended and the receipt."""
        usage = result.usage
        ended = f"exit {result.exit_code}" if result.cause == "exited" else f"{result.message or result.cause}"
        memory = max(usage.memory_peak, usage.max_rss)
        figures = f"{usage.wall:.2f} s, {usage.cpu:.2f} s of CPU, {memory / 1e6:.0f} MB"
        lines = [f"reach: run {result.run_id}: {visible(ended, 200)}; {figures}"]
        if self._contract is not None:
            lines.append(f"{_INDENT}contract {describe(self._contract, self._cwd)}")
        for connection in result.connections:
            asked = "" if connection.host == connection.address else f" ({connection.address})"
            often = f", {connection.count} times" if connection.count > 1 else ""
            lines.append(f"{_INDENT}connected to {visible(connection.host, 255)}:{connection.port}{asked}{often}")
        say("\n".join([*lines, *receipt_lines(result.receipt)]))


def describe(contract: Contract, cwd: str) -> str:
    """Name a contract: its file, profile and targets."""
    from agent_reach.cli.clauses import shorten

    if not contract.path:
        return "none: nothing is granted but the program's own files"
    parts = [visible(shorten(contract.path, cwd), 300)]
    parts += [f"profile {contract.profile}"] if contract.profile else []
    parts += [f"target {target}" for target in contract.targets]
    return ", ".join(parts)


def receipt_lines(receipt: Receipt) -> list[str]:
    """Return the receipt: tier, one line for each promise, and the remarks."""
    lines = [f"{_INDENT}tier {receipt.tier}"]
    wide = max((len(line.what) for line in receipt.lines), default=0)
    for line in receipt.lines:
        by = f" ({line.by})" if line.by else ""
        lines.append(f"{_INDENT}{line.what.ljust(wide)}  {line.level}{by}")
    return lines + [f"{_INDENT}note: {visible(note, 400)}" for note in receipt.notes]
