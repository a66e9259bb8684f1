"""`reach completion`: static scripts, so that no Python starts when TAB is pressed."""

from __future__ import annotations

from agent_reach.cli import shells
from agent_reach.cli.catalogue import SHELLS
from agent_reach.cli.options import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.cli.options import Parsed


def execute(parsed: Parsed, environ: Mapping[str, str]) -> int:  # noqa: ARG001 - every command takes both
    """Print the script for one shell.

    Raises:
        UsageError: no shell is named, or one that has no script.
    """
    shell = parsed.words[0] if parsed.words else ""
    if shell not in SHELLS:
        raise UsageError(
            f"there is no completion for {shell}" if shell else "which shell?", f"one of: {', '.join(SHELLS)}"
        )
    print(shells.script(shell), end="")
    return 0
