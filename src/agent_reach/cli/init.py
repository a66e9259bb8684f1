"""`reach init`."""

from __future__ import annotations

import os
import sys

from agent_reach.cli.options import UsageError
from agent_reach.cli.terminal import say
from agent_reach.contract.template import starting_contract

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.cli.options import Parsed

_FAILED = 1


def execute(parsed: Parsed, environ: Mapping[str, str]) -> int:  # noqa: ARG001 - every command takes both
    """Write a starting contract beside the script, or for the whole directory.

    Raises:
        UsageError: the script is not there.
    """
    script = parsed.words[0] if parsed.words else None
    if script is not None and not os.path.isfile(script):
        raise UsageError(f"there is no file {script}", "reach init SCRIPT, or reach init for the whole directory")
    content = starting_contract(script)
    output = parsed.one("--output") or default_name(script)
    if output == "-":
        sys.stdout.write(content)
        return 0
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        say(f"reach init: {output} exists and stays as it is")
        say("       --output FILE writes elsewhere, --output - shows it")
        return _FAILED
    except OSError as error:
        say(f"reach init: {output}: {error.strerror}")
        return _FAILED
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write(content)
    target = f" {script}" if script else ""
    say(f"reach init: wrote {output}: nothing is granted yet; see it with `reach explain{target}`")
    return 0


def default_name(script: str | None) -> str:
    """Return where the contract of a script is looked for first."""
    return f"{script.removesuffix('.py')}.reach.yaml" if script else "reach.yaml"
