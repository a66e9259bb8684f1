"""Which Python runs the program, and what it says of itself."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_reach.errors import Unavailable
from agent_reach.host import interpreter_cache
from agent_reach.host.interpreter import discover, parse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_reach.host.model import Interpreter

PYTHON = os.path.realpath(sys.executable)


class Host:
    """Real interpreters under names of a test's own, a project, and nothing else."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.on_path = self.python("bin/python3")
        self.project = root / "project"
        self.project.mkdir()
        self.environ = {"PATH": str(root / "bin")}

    def python(self, path: str) -> str:
        """Make an interpreter: a link to the one that runs the tests."""
        program = self.root / path
        program.parent.mkdir(parents=True, exist_ok=True)
        program.symlink_to(PYTHON)
        return str(program)

    def script(self, first_line: str = "", path: str = "project/job.py", mode: int = 0o755) -> str:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(first_line + "\n")
        file.chmod(mode)
        return str(file)

    def choose(self, script: str = "", asked: str = "", **environ: str) -> tuple[str, str]:
        known = discover(
            asked=asked,
            script=script,
            project_root=str(self.project),
            environ=self.environ | environ,
            cache_dir=str(self.root / "cache"),
        )
        return known.executable, known.chosen_by


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


# -- the choice ------------------------------------------------------------------------------------------


def test_every_place_is_asked_in_the_order_of_the_contract(host: Host) -> None:
    conda = host.python("conda/bin/python")
    assert host.choose() == (host.on_path, "PATH")
    assert host.choose(CONDA_PREFIX=f"{host.root}/conda") == (conda, "CONDA_PREFIX")
    dot_venv = host.python("project/.venv/bin/python")
    environ = {"CONDA_PREFIX": f"{host.root}/conda"}
    assert host.choose(**environ) == (dot_venv, ".venv")
    active = host.python("active/bin/python")
    environ["VIRTUAL_ENV"] = f"{host.root}/active"
    assert host.choose(**environ) == (active, "VIRTUAL_ENV")
    named = host.python("named/python3")
    assert host.choose(host.script(f"#!{named}"), **environ) == (named, "shebang")
    asked = host.python("asked/python3")
    assert host.choose(host.script(f"#!{named}"), asked, **environ) == (asked, "python")


def test_a_name_that_is_asked_for_is_found_on_path(host: Host) -> None:
    assert host.choose(asked="python3") == (host.on_path, "python")


@pytest.mark.parametrize("asked", ["python9.9", "/no/such/python", "/etc/passwd"])
def test_an_interpreter_that_is_asked_for_and_is_none_is_refused(host: Host, asked: str) -> None:
    with pytest.raises(Unavailable) as caught:
        host.choose(asked=asked)
    assert (caught.value.needed, caught.value.fix) == (asked, "--python PATH")


def test_dot_venv_is_looked_for_from_the_script_up_to_the_project(host: Host) -> None:
    host.python(".venv/bin/python")
    script = host.script(path="project/a/b/job.py")
    assert host.choose(script) == (host.on_path, "PATH")
    outer = host.python("project/.venv/bin/python")
    assert host.choose(script) == (outer, ".venv")
    inner = host.python("project/a/.venv/bin/python")
    assert host.choose(script) == (inner, ".venv")


def test_dot_venv_beside_a_script_outside_the_project_is_not_taken(host: Host) -> None:
    host.python("project-2/.venv/bin/python")
    assert host.choose(host.script(path="project-2/job.py")) == (host.on_path, "PATH")


@pytest.mark.parametrize("words", ["", " -u", " -X utf8"])
def test_the_shebang_counts_with_and_without_options(host: Host, words: str) -> None:
    named = host.python("named/python3.11")
    assert host.choose(host.script(f"#!{named}{words}")) == (named, "shebang")


@pytest.mark.parametrize("words", ["env python3", "env -S python3 -u", "env PYTHONUTF8=1 python3"])
def test_a_shebang_that_asks_env_means_the_first_on_path(host: Host, words: str) -> None:
    assert host.choose(host.script(f"#!/usr/bin/{words}")) == (host.on_path, "shebang")


@pytest.mark.parametrize(
    ("line", "mode"),
    [("#!/bin/sh", 0o755), ("#!", 0o755), ("", 0o755), ("#!/no/such/python3", 0o755), ("#!{}", 0o644)],
)
def test_a_script_that_names_no_python_says_nothing(host: Host, line: str, mode: int) -> None:
    named = host.python("named/python3")
    if os.geteuid() == 0 and mode == 0o644:
        mode = 0o600  # also without a bit for anybody a script is none
    assert host.choose(host.script(line.format(named), mode=mode)) == (host.on_path, "PATH")


def test_shims_of_version_managers_are_passed_over(host: Host) -> None:
    shims = host.root / "shims"
    host.script("#!/bin/sh", "shims/python3")
    assert host.choose(PATH=f"{shims}:{host.root}/bin") == (host.on_path, "PATH")


# -- the answer ------------------------------------------------------------------------------------------


def test_the_interpreter_says_what_it_is_made_of(host: Host) -> None:
    known = discover(asked=PYTHON, script="", project_root="", environ={}, cache_dir=None)
    parts = "sys.prefix, sys.base_prefix, sysconfig.get_path('stdlib'), *sys.path[1:]"
    ask = f"import sys, sysconfig; print({parts}, sep='\\n')"
    told = subprocess.run([PYTHON, "-E", "-c", ask], capture_output=True, text=True, check=True).stdout.splitlines()
    assert [known.prefix, known.base_prefix, known.stdlib] == told[:3]
    assert known.search == tuple(path for path in told[3:] if os.path.exists(path))
    assert known.version == "{}.{}".format(*sys.version_info[:2])
    assert (known.executable, known.real) == (PYTHON, os.path.realpath(PYTHON))


def test_editable_finders_are_followed(tmp_path: Path) -> None:
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (site,) = (tmp_path / "env").glob("lib/python3*/site-packages")
    package, module = tmp_path / "code/pkg", tmp_path / "code2/one.py"
    package.mkdir(parents=True)
    module.parent.mkdir()
    module.touch()
    (site / "__editable___x_finder.py").write_text(f"MAPPING = {{'pkg': {str(package)!r}, 'one': {str(module)!r}}}\n")
    (site / "__editable__.x.pth").write_text("import __editable___x_finder\n")
    known = discover(asked=f"{tmp_path}/env/bin/python", script="", project_root="", environ={}, cache_dir=None)
    assert known.prefix == f"{tmp_path}/env"
    assert set(known.extra) == {str(package), str(module.parent)}


@pytest.mark.parametrize(("version", "fine"), [("3.8", False), ("2.7", False), ("3.9", True), ("3.14", True)])
def test_an_interpreter_below_3_9_is_refused(host: Host, version: str, fine: bool) -> None:
    cache = str(host.root / "cache")
    known = parse(host.on_path, f"version={version}\0prefix=/x\0base_prefix=/x\0stdlib=/x".encode())
    interpreter_cache.write(cache, known)
    if fine:
        assert host.choose() == (host.on_path, "PATH")
        return
    with pytest.raises(Unavailable, match=r"3\.9 or newer"):
        host.choose()


def test_a_program_that_is_no_python_is_refused(host: Host) -> None:
    with pytest.raises(Unavailable) as caught:
        host.choose(asked="/bin/false")
    assert (caught.value.needed, caught.value.fix) == ("/bin/false", "--python PATH")


def test_a_path_that_is_no_text_survives() -> None:
    known = parse("/usr/bin/python3", b"version=3.11\0prefix=/a\xff\0base_prefix=/\0stdlib=/\0search=/b=\xfe")
    assert os.fsencode(known.prefix) == b"/a\xff"
    assert [os.fsencode(path) for path in known.search] == [b"/b=\xfe"]


# -- the cache -------------------------------------------------------------------------------------------


@pytest.fixture
def answer(tmp_path: Path) -> Callable[[], Interpreter]:
    """Make the answer of an interpreter with a prefix of the test's own."""
    prefix = tmp_path / "env"
    (prefix / "site-packages").mkdir(parents=True)
    (prefix / "python").symlink_to(PYTHON)
    text = f"version=3.11\0prefix={prefix}\0base_prefix=/usr\0stdlib=/usr/lib\0search={prefix}/site-packages\0extra=/x"
    return lambda: parse(f"{prefix}/python", text.encode())


def test_an_answer_is_remembered_privately(tmp_path: Path, answer: Callable[[], Interpreter]) -> None:
    cache, known = tmp_path / "cache", answer()
    assert interpreter_cache.read(str(cache), known.executable) is None
    interpreter_cache.write(str(cache), known)
    assert interpreter_cache.read(str(cache), known.executable) == known
    assert cache.stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o777 for file in cache.iterdir()] == [0o600]


def test_an_answer_is_forgotten_when_a_package_or_pyvenv_cfg_comes(
    tmp_path: Path, answer: Callable[[], Interpreter]
) -> None:
    cache, known = str(tmp_path / "cache"), answer()
    for path in ("site-packages/new.pth", "pyvenv.cfg"):
        interpreter_cache.write(cache, known)
        assert interpreter_cache.read(cache, known.executable) == known
        (tmp_path / "env" / path).touch()
        assert interpreter_cache.read(cache, known.executable) is None


def test_an_answer_is_forgotten_when_the_binary_changes(tmp_path: Path, answer: Callable[[], Interpreter]) -> None:
    cache, known = str(tmp_path / "cache"), answer()
    interpreter_cache.write(cache, known)
    link = tmp_path / "env" / "python"
    link.unlink()
    link.symlink_to("/bin/sh")
    assert interpreter_cache.read(cache, known.executable) is None


def test_long_paths_that_end_alike_are_told_apart(tmp_path: Path, answer: Callable[[], Interpreter]) -> None:
    cache, end = str(tmp_path / "cache"), "/x" * 150 + "/python"
    one = answer().replace(executable=f"/one{end}", real="/one")
    interpreter_cache.write(cache, one)
    assert interpreter_cache.read(cache, f"/two{end}") is None


def test_a_cache_that_others_may_write_is_not_trusted(tmp_path: Path, answer: Callable[[], Interpreter]) -> None:
    cache, known = tmp_path / "cache", answer()
    interpreter_cache.write(str(cache), known)
    cache.chmod(0o770)
    assert interpreter_cache.read(str(cache), known.executable) is None


@pytest.mark.parametrize("content", [b"", b"nonsense", b"1\0\0", b"1\0\0version=3.11", b"\xff\0\0a=b"])
def test_a_cache_file_that_is_broken_is_no_answer(
    tmp_path: Path, answer: Callable[[], Interpreter], content: bytes
) -> None:
    cache, known = tmp_path / "cache", answer()
    interpreter_cache.write(str(cache), known)
    (file,) = cache.iterdir()
    file.write_bytes(content)
    assert interpreter_cache.read(str(cache), known.executable) is None


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path, answer: Callable[[], Interpreter]) -> None:
    (tmp_path / "cache").write_text("")
    interpreter_cache.write(str(tmp_path / "cache"), answer())
    assert interpreter_cache.read(str(tmp_path / "cache"), answer().executable) is None
