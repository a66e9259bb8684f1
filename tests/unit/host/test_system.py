"""The parts of this host's file system that every Python needs."""

from __future__ import annotations

import os

from agent_reach.host.system import look_at_system

SYSTEM = look_at_system()


def test_directories_are_real_and_hold_no_executables_of_the_path() -> None:
    assert "/usr/lib" in SYSTEM.directories
    for path in SYSTEM.directories:
        assert os.path.isdir(path)
        assert not os.path.islink(path)
        assert os.path.basename(path) not in {"bin", "sbin"}


def test_top_level_links_say_what_they_say_on_the_host() -> None:
    for path, to in SYSTEM.links:
        assert os.readlink(path) == to
    assert not set(SYSTEM.empty) & {path for path, _ in SYSTEM.links}


def test_files_of_etc_exist_and_hold_no_secret() -> None:
    for name, real in SYSTEM.files:
        assert os.path.isdir(real) == name.endswith("/")
        assert os.path.realpath(name) == real
    names = {name.rstrip("/") for name, _ in SYSTEM.files}
    assert not names & {"/etc", "/etc/passwd", "/etc/shadow", "/etc/ssl", "/etc/ssl/private", "/etc/hosts", "/etc/ssh"}
