from __future__ import annotations

import os
import stat

import pytest

from agent_reach.contract.owner import check_owner
from agent_reach.contract.sink import Refusal


def status(mode: int, uid: int) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, uid, uid, 0, 0, 0, 0))


@pytest.mark.parametrize("mode", [0o644, 0o664, 0o600, 0o444])
def test_ours_and_roots_are_taken(mode: int) -> None:
    check_owner("/x", status(stat.S_IFREG | mode, os.geteuid()))
    check_owner("/x", status(stat.S_IFREG | mode, 0))


@pytest.mark.parametrize(
    ("mode", "uid", "code"),
    [
        (stat.S_IFREG | 0o644, 54321, "E_PERMISSIONS"),
        (stat.S_IFREG | 0o646, 0, "E_PERMISSIONS"),
        (stat.S_IFREG | 0o666, 0, "E_PERMISSIONS"),
        (stat.S_IFIFO | 0o600, 0, "E_FILE"),
        (stat.S_IFDIR | 0o755, 0, "E_FILE"),
        (stat.S_IFCHR | 0o600, 0, "E_FILE"),
    ],
)
def test_everything_else_is_refused(mode: int, uid: int, code: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_owner("/x", status(mode, uid))
    assert caught.value.code == code
