"""Which files a granted command makes visible."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_reach.host.commands import find_command

if TYPE_CHECKING:
    from pathlib import Path


class Host:
    """Two directories on PATH and one that is not."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("first", "second", "elsewhere"):
            (root / name).mkdir()
        self.environ = {"PATH": f"relative::{root}/first:{root}/second:{root}/none"}

    def program(self, path: str, content: str = "\x7fELF") -> str:
        file = self.root / path
        file.write_text(content)
        file.chmod(0o755)
        return str(file)

    def link(self, path: str, to: str) -> str:
        (self.root / path).symlink_to(to)
        return str(self.root / path)

    def find(self, name: str, *helpers: str) -> tuple[str, set[str]]:
        fact = find_command(name, helpers, self.environ)
        return fact.found, {path for pair in fact.files for path in pair}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_the_first_executable_on_path_is_taken(host: Host) -> None:
    (host.root / "first" / "tool").write_text("not executable")
    (host.root / "first" / "dir").mkdir()
    tool = host.program("second/tool")
    assert host.find("tool") == (tool, {tool})
    assert host.find("dir") == ("", set())
    assert host.find("absent") == ("", set())


def test_a_relative_directory_on_path_finds_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    (host.root / "relative").mkdir()
    host.program("relative/tool")
    host.program("tool")
    monkeypatch.chdir(host.root)
    assert host.find("tool") == ("", set())


def test_a_chain_of_links_shows_the_name_that_was_found_and_the_file(host: Host) -> None:
    real = host.program("elsewhere/vim.basic")
    host.link("elsewhere/alternative", real)
    found = host.link("first/vi", f"{host.root}/elsewhere/alternative")
    fact = find_command("vi", (), host.environ)
    assert fact.found == found
    assert fact.files == ((found, real), (real, real))


def test_a_directory_that_is_a_link_is_resolved_in_the_name(host: Host) -> None:
    tool = host.program("second/tool")
    host.link("bin", "second")
    fact = find_command("tool", (), {"PATH": f"{host.root}/bin"})
    assert fact.found == f"{host.root}/bin/tool"
    assert fact.files == ((tool, tool),)


def test_a_script_brings_its_interpreter(host: Host) -> None:
    perl = host.program("elsewhere/perl")
    tool = host.program("first/tool", f"#! {perl} -w\n")
    assert host.find("tool") == (tool, {tool, perl})


@pytest.mark.parametrize("line", ["env perl", "env -S perl -w", "env -i -S A=1 perl", "env A=1 perl"])
def test_a_script_that_asks_env_brings_what_env_finds(host: Host, line: str) -> None:
    env, perl = host.program("elsewhere/env"), host.program("second/perl")
    tool = host.program("first/tool", f"#!{host.root}/elsewhere/{line}\n")
    assert host.find("tool") == (tool, {tool, env, perl})


def test_an_interpreter_that_is_a_script_brings_its_own(host: Host) -> None:
    shell = host.program("elsewhere/sh")
    wrapper = host.program("elsewhere/wrapper", f"#!{shell}\n")
    tool = host.program("first/tool", f"#!{wrapper}\n")
    assert host.find("tool") == (tool, {tool, wrapper, shell})


def test_scripts_that_name_each_other_end(host: Host) -> None:
    one = host.program("first/one", f"#!{host.root}/first/two\n")
    two = host.program("first/two", f"#!{host.root}/first/one\n")
    assert host.find("one") == (one, {one, two})
    itself = host.program("first/itself", f"#!{host.root}/first/itself\n")
    assert host.find("itself") == (itself, {itself})


def test_helpers_come_with_it_and_directories_whole(host: Host) -> None:
    tool, helper = host.program("first/tool"), host.program("second/helper")
    fact = find_command("tool", ("helper", f"{host.root}/elsewhere/", "absent"), host.environ)
    assert {path for pair in fact.files for path in pair} == {tool, helper}
    assert fact.directories == (f"{host.root}/elsewhere",)


def test_a_helper_by_path_is_taken_when_it_can_be_executed(host: Host) -> None:
    tool, helper = host.program("first/tool"), host.program("elsewhere/helper")
    (host.root / "elsewhere" / "data").write_text("")
    assert host.find("tool", helper, f"{host.root}/elsewhere/data") == (tool, {tool, helper})


def test_without_path_the_usual_places_are_searched() -> None:
    assert find_command("sh", (), {}).found in {"/usr/bin/sh", "/bin/sh"}
    assert os.access(find_command("sh", (), {}).found, os.X_OK)
