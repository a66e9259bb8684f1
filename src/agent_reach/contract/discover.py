"""Which contract belongs to a script: beside it under its name, else `reach.yaml` upward."""

from __future__ import annotations

import os
import posixpath

from agent_reach.contract.owner import check_owner
from agent_reach.contract.sink import Refusal
from agent_reach.errors import ContractError, Finding

FILE_NAME = "reach.yaml"


def find(script: str | None, cwd: str, home: str) -> str | None:
    """Return the absolute path of the contract of a script, or None.

    Args:
        script: the script, or None for ``-m``, ``-c`` and standard input.
        cwd: absolute working directory.
        home: the caller's home; the way upward ends there, at a directory with ``.git``, or where another file
            system begins, each included.

    Raises:
        ContractError: the first one found belongs to another ordinary user or can be written by everybody.
    """
    start = cwd
    if script is not None:
        path = posixpath.normpath(posixpath.join(cwd, script))
        start = posixpath.dirname(path)
        beside = f"{path.removesuffix('.py')}.reach.yaml"
        if _is_there(beside):
            return beside
    for directory in _upward(start, home):
        candidate = posixpath.join(directory, FILE_NAME)
        if _is_there(candidate):
            return candidate
    return None


def _upward(start: str, home: str) -> list[str]:
    """Return the directories to look in, nearest first."""
    directories: list[str] = []
    here, device = posixpath.normpath(start), None
    while True:
        found = _device(here)
        if device is not None and found != device:
            return directories
        device = found
        directories.append(here)
        if here in ("/", posixpath.normpath(home or "/")) or os.path.lexists(posixpath.join(here, ".git")):
            return directories
        here = posixpath.dirname(here)


def _device(directory: str) -> int | None:
    try:
        return os.stat(directory).st_dev
    except OSError:
        return None


def _is_there(path: str) -> bool:
    """Whether a contract is there; what cannot be seen counts as absent, and grants nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    try:
        check_owner(path, status)
    except Refusal as refusal:
        raise ContractError((Finding(refusal.code, refusal.message, file=path, hint=refusal.hint),)) from None
    return True
