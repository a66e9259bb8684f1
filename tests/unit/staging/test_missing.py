"""Writable grants that do not exist: made at the start, taken back when nothing came of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_reach.contract.model import Contract, FileGrant, Origin
from agent_reach.errors import ContractError, Finding
from agent_reach.host.paths import look
from agent_reach.staging.missing import Made, make, remove

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def made(*grants: FileGrant) -> tuple[Made | None, ...]:
    return make(Contract(files=grants), tuple(look(grant.path) for grant in grants))


def refused(*grants: FileGrant) -> tuple[Finding, ...]:
    with pytest.raises(ContractError) as caught:
        made(*grants)
    return caught.value.findings


def test_a_directory_is_made_with_the_callers_umask_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    found = made(FileGrant(str(path), "w", directory=True))
    assert found == (None,)
    assert path.stat().st_mode & 0o777 == 0o750
    remove(found)
    assert path.is_dir()


@pytest.mark.parametrize("mode", ["w", "a", "rw", "r+", "wb"])
def test_a_file_is_made_empty_and_removed_when_nothing_was_written(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "out"
    found = made(FileGrant(str(path), mode))
    assert path.read_bytes() == b""
    assert path.stat().st_mode & 0o777 == 0o640
    remove(found)
    assert not path.exists()


def test_a_file_that_was_used_stays(tmp_path: Path) -> None:
    written, touched, exchanged, gone = (tmp_path / name for name in ("written", "touched", "exchanged", "gone"))
    found = made(*(FileGrant(str(path), "w") for path in (written, touched, exchanged, gone)))
    written.write_text("x")
    os.utime(touched, (1, 1))
    exchanged.rename(tmp_path / "kept")
    exchanged.touch()
    os.utime(exchanged, (1, 1))
    gone.unlink()
    remove(found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exchanged", "kept", "touched", "written"]


def test_what_exists_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.touch()
    assert made(FileGrant(str(path), "w")) == ()
    assert path.exists()


@pytest.mark.parametrize("mode", ["r", "rb"])
def test_what_is_only_read_is_never_made(tmp_path: Path, mode: str) -> None:
    assert made(FileGrant(str(tmp_path / "in"), mode)) == ()
    assert not (tmp_path / "in").exists()


def test_a_staged_file_is_not_made_on_the_host(tmp_path: Path) -> None:
    assert made(FileGrant(str(tmp_path / "in"), "r", source="https://host/in")) == ()


def test_everything_that_is_required_and_absent_is_said_at_once(tmp_path: Path) -> None:
    origin = Origin("/srv/job/reach.yaml", 7)
    one, two = (FileGrant(str(tmp_path / name), "r", required=True, origin=origin) for name in "ab")
    first, second = refused(one, FileGrant(str(tmp_path / "out"), "w"), two)
    assert (first.code, first.file, first.line) == ("E_FILE_MISSING", "/srv/job/reach.yaml", 7)
    assert "required" in first.message
    assert "required: false" in first.hint
    assert str(tmp_path / "b") in second.message
    assert not (tmp_path / "out").exists(), "what was made on the way is taken back"


def test_a_parent_that_does_not_exist_is_said(tmp_path: Path) -> None:
    (finding,) = refused(FileGrant(str(tmp_path / "no" / "out"), "w"))
    assert "cannot be created: No such file or directory" in finding.message


@pytest.mark.parametrize("mode", ["r", "w"])
def test_a_link_to_nothing_is_no_grant(tmp_path: Path, mode: str) -> None:
    (tmp_path / "link").symlink_to("gone")
    (finding,) = refused(FileGrant(str(tmp_path / "link"), mode))
    assert f"a symbolic link to {tmp_path}/gone" in finding.message
    assert not (tmp_path / "gone").exists()
