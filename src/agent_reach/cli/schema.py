"""`reach schema`."""

from __future__ import annotations

import json

from agent_reach.contract.schema import schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.cli.options import Parsed


def execute(parsed: Parsed, environ: Mapping[str, str]) -> int:  # noqa: ARG001 - every command takes both
    """Print the JSON Schema of a contract, for editors."""
    print(json.dumps(schema(), indent=2, ensure_ascii=False))
    return 0
