"""Names in a writable directory that other programs of the host run or obey later (CONTRACT section 4)."""

from __future__ import annotations

# Read-only as a whole where they exist.
WHOLE = (
    ".envrc",
    ".idea",
    ".pre-commit-config.yaml",
    ".reach",
    ".vscode",
    "reach.lock",
)
# Of a repository only these are read-only: a program may commit.
IN_GIT = (".git/config", ".git/hooks")
# What a run may not make appear.
NAMES = (*WHOLE, ".git", "reach.yaml")
