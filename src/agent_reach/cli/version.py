"""`reach version`."""

from __future__ import annotations

from agent_reach import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.cli.options import Parsed


def execute(parsed: Parsed, environ: Mapping[str, str]) -> int:  # noqa: ARG001 - every command takes both
    """Print the version; with ``--json`` also what it runs on, for a report of a fault."""
    if not parsed.has("--json"):
        print(f"reach {__version__}")
        return 0
    import json
    import os
    import platform
    import sys

    about = os.uname()
    print(
        json.dumps(
            {
                "reach": __version__,
                "python": platform.python_version(),
                "executable": sys.executable,
                "system": about.sysname,
                "kernel": about.release,
                "machine": about.machine,
                "uid": os.geteuid(),
            }
        )
    )
    return 0
