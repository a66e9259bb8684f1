"""The cache of filter programs: what it returns is what the compiler makes, whatever lies in the folder."""

from __future__ import annotations

import os

import pytest

from agent_reach.linux.seccomp import precompiled
from agent_reach.linux.seccomp.compile import build
from agent_reach.linux.seccomp.options import FilterOptions

OPTIONS = FilterOptions(tier="reduced", no_memfd=True)
NAME = f"seccomp-aarch64-{OPTIONS.key()}"


@pytest.fixture(scope="module")
def built():
    return build("aarch64", OPTIONS)


def program(directory):
    return precompiled.program(OPTIONS, str(directory), "aarch64")


def test_a_second_run_reads_what_the_first_wrote(tmp_path, built):
    cache = tmp_path / "cache"
    assert program(cache) == built
    assert cache.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in cache.iterdir()] == [NAME]
    header, _, _body = (cache / NAME).read_bytes().partition(b"\n")
    planted = built[:-8] + b"\x06\x00\x00\x00\x00\x00\xff\x7f"
    signature = header.rsplit(b" ", 2)[0]
    (cache / NAME).write_bytes(precompiled._header(signature, planted) + b"\n" + planted)
    assert program(cache) == planted  # proof that it was read


def test_without_a_directory_nothing_is_written(tmp_path, built, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert precompiled.program(OPTIONS, machine="aarch64") == built
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_directory_that_others_may_enter_is_not_used(tmp_path, built, mode):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(mode)
    assert program(cache) == built
    assert not list(cache.iterdir())


def test_a_link_in_place_of_the_directory_is_not_followed(tmp_path, built):
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(real)
    assert program(tmp_path / "cache") == built
    assert not list(real.iterdir())


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-8], lambda data: data + bytes(8), lambda _data: b"", bytes.swapcase]
)
def test_a_damaged_file_is_built_anew(tmp_path, built, damage):
    cache = tmp_path / "cache"
    program(cache)
    stored = (cache / NAME).read_bytes()
    (cache / NAME).write_bytes(damage(stored))
    assert program(cache) == built
    assert (cache / NAME).read_bytes() == stored


def test_a_file_of_another_version_is_built_anew(tmp_path, built, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setattr(precompiled, "__version__", "0.0.0")
    program(cache)
    (cache / NAME).write_bytes((cache / NAME).read_bytes())
    before = (cache / NAME).read_bytes()
    monkeypatch.undo()
    assert program(cache) == built
    assert (cache / NAME).read_bytes() != before


def test_a_file_that_others_may_write_or_a_link_is_not_read(tmp_path, built):
    cache = tmp_path / "cache"
    program(cache)
    os.rename(cache / NAME, tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(b"x")
    (cache / NAME).symlink_to(tmp_path / "elsewhere")
    assert program(cache) == built
    (cache / NAME).chmod(0o666)
    assert program(cache) == built


def test_a_directory_that_cannot_be_made_is_no_failure(tmp_path, built):
    (tmp_path / "file").touch()
    assert program(tmp_path / "file" / "cache") == built


def test_every_source_of_the_policy_is_part_of_the_signature():
    folder = os.path.dirname(precompiled.__file__)
    runtime = {"__init__.py", "notify.py", "precompiled.py"}
    assert {name for name in os.listdir(folder) if name.endswith(".py")} - runtime == set(precompiled.SOURCES)
