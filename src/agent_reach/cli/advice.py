"""Findings of a contract that can be used: it would not do what its author seems to expect."""

from __future__ import annotations

import os
import posixpath

from agent_reach.contract.sink import shown
from agent_reach.errors import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_reach.contract.model import Contract, FileGrant

_REPLACING = frozenset({"w", "rw", "r+"})


def findings(contract: Contract, name: str, home: str) -> Iterator[Finding]:
    """Yield what to look at again in a resolved contract.

    Args:
        contract: one profile.
        name: what the document is called in messages.
        home: the caller's home.
    """
    for grant in contract.files:
        if grant.origin.file == "cli":
            continue
        file = name if grant.origin.file == contract.path else grant.origin.file
        for code, message, hint in _about(grant, home):
            yield Finding(code, message, file=file, line=grant.origin.line, key="resources.files", hint=hint)


def _about(grant: FileGrant, home: str) -> Iterator[tuple[str, str, str]]:
    """Yield code, message and hint for one file grant."""
    if grant.path == "/":
        yield "W_WIDE", "this grants the whole file system", "grant what the program needs"
    elif grant.path == home:
        yield "W_WIDE", "this grants the whole home, with its keys and tokens", "grant what the program needs"
    replaces = grant.mode.removesuffix("b") in _REPLACING
    if replaces and not grant.directory and not grant.glob and not os.path.isdir(grant.path):
        yield (
            "W_SINGLE_FILE",
            f"{shown(grant.path)} is one file: it cannot be replaced by a rename, and SQLite cannot keep its journal",
            f"if the program does that, grant the directory: {{path: {posixpath.dirname(grant.path)}/, mode: rw}}",
        )
