"""Opening what must be a regular file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_reach._util.regular import open_regular

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_opened_with_its_status_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("abc")
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        descriptor, about = open_regular(str(tmp_path / name))
        assert (os.read(descriptor, 10), about.st_size) == (b"abc", 3)
        os.close(descriptor)


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), str(tmp_path), "/dev/null"):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(path)
    with pytest.raises(FileNotFoundError):
        open_regular(str(tmp_path / "gone"))
