"""Unprivileged ids for runs that root starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_reach.errors import Unavailable
from agent_reach.sandbox import slots

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lock_file(tmp_path: Path) -> str:
    try:
        slots._range()
    except Unavailable:
        pytest.skip("kernel without a range of ids in this user namespace")
    return str(tmp_path / "state" / "slots.lock")


def test_two_runs_at_once_have_ids_of_their_own(lock_file: str) -> None:
    one, two = slots.take(lock_file), slots.take(lock_file)
    assert len({one.run_uid, one.supervisor_uid, two.run_uid, two.supervisor_uid}) == 4
    assert min(one.run_uid, two.run_uid) >= 65_280
    os.close(one.lock)
    again = slots.take(lock_file)
    assert again.replace(lock=one.lock) == one
    os.close(two.lock)
    os.close(again.lock)


def test_a_slot_is_held_until_the_last_process_that_has_it_ends(lock_file: str) -> None:
    held = slots.take(lock_file)
    ready, go = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        os.close(go[1])
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    os.close(held.lock)
    other = slots.take(lock_file)
    assert other.number != held.number
    os.close(go[1])
    os.waitpid(pid, 0)
    free = slots.take(lock_file)
    assert free.number == held.number
    for descriptor in (*ready, go[0], other.lock, free.lock):
        os.close(descriptor)


def test_when_every_slot_is_taken_the_run_is_refused(lock_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_RANGES", tuple((first, 1) for first, _ in slots._RANGES))
    held = slots.take(lock_file)
    with pytest.raises(Unavailable, match="1 taken"):
        slots.take(lock_file)
    os.close(held.lock)
    os.close(slots.take(lock_file).lock)


def test_the_lock_file_is_private_and_no_link_is_followed(lock_file: str, tmp_path: Path) -> None:
    os.close(slots.take(lock_file).lock)
    assert os.stat(lock_file).st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(lock_file)
    with pytest.raises(OSError, match="symbolic links"):
        slots.take(str(tmp_path / "link"))
