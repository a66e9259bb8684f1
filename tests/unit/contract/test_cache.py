from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_reach.contract import cache
from agent_reach.contract.cache import entry_key, fetch, store
from agent_reach.contract.digest import digest
from agent_reach.contract.load import load
from agent_reach.contract.model import Contract, EnvGrant
from unit.contract.support import HOME, VERSION

if TYPE_CHECKING:
    from pathlib import Path

CONTRACT = Contract(path="/srv/reach.yaml", env=(EnvGrant("A", default="ü\x1f"),))
# What a warm load may import: os is there in every interpreter, the rest is C or a few lines.
CHEAP = {
    "__future__",
    "_abc",
    "_blake2",
    "_collections_abc",
    "_json",
    "_stat",
    "abc",
    "errno",
    "genericpath",
    "io",
    "os",
}
CHEAP |= {"os.path", "posixpath", "stat"}
KEY = entry_key(["dev"], b"content")


@pytest.fixture
def place(tmp_path: Path) -> str:
    where = str(tmp_path / "reach" / "contracts")
    store(where, KEY, CONTRACT, {})
    return where


def entry(place: str) -> str:
    return f"{place}/{KEY}.json"


def test_what_was_stored_is_found(place: str) -> None:
    assert fetch(place, KEY) == CONTRACT
    assert fetch(place, entry_key(["prod"], b"content")) is None


def test_directory_and_files_are_the_callers_alone(place: str) -> None:
    assert os.stat(place).st_mode & 0o777 == 0o700
    assert os.stat(entry(place)).st_mode & 0o777 == 0o600
    assert os.listdir(place) == [f"{KEY}.json"]


def test_keys_tell_every_part_apart() -> None:
    keys = [
        entry_key(["a", "b"], b""),
        entry_key(["ab"], b""),
        entry_key(["a"], b"b"),
        entry_key([], b"ab"),
        entry_key(["a", "", "b"], b""),
        entry_key(["b", "a"], b""),
    ]
    assert len(set(keys)) == len(keys)
    assert digest([b"a", b"b"]) != digest([b"ab"])


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text", "other", "deep"])
def test_a_damaged_entry_is_a_miss(place: str, damage: str) -> None:
    with open(entry(place), "rb") as file:
        data = file.read()
    bodies = {"text": b"not json", "other": b'[{"a": 1}, []]', "deep": b"[" * 100_000}
    damaged = {"cut": data[:-2], "flip": data.replace(b'"A"', b'"B"'), "empty": b""}
    if damage in bodies:
        damaged[damage] = digest([bodies[damage]]).encode() + b"\n" + bodies[damage]
    with open(entry(place), "wb") as file:
        file.write(damaged[damage])
    assert fetch(place, KEY) is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o755])
def test_a_directory_that_others_can_use_is_not_believed(place: str, mode: int) -> None:
    os.chmod(place, mode)
    assert fetch(place, KEY) is None
    os.chmod(place, 0o700)
    assert fetch(place, KEY) == CONTRACT


def test_a_file_that_others_can_use_is_not_believed(place: str) -> None:
    os.chmod(entry(place), 0o666)
    assert fetch(place, KEY) is None


def test_links_are_not_followed(place: str, tmp_path: Path) -> None:
    os.rename(entry(place), f"{place}/moved")
    os.symlink(f"{place}/moved", entry(place))
    assert fetch(place, KEY) is None
    os.unlink(entry(place))
    os.rename(f"{place}/moved", entry(place))
    os.symlink(place, tmp_path / "link")
    assert fetch(str(tmp_path / "link"), KEY) is None


@pytest.mark.root
def test_what_somebody_else_owns_is_not_believed(place: str) -> None:
    os.chown(entry(place), 1001, 1001)
    assert fetch(place, KEY) is None
    os.chown(entry(place), 0, 0)
    os.chown(place, 1001, 1001)
    assert fetch(place, KEY) is None


def test_nothing_is_written_into_a_directory_that_others_can_use(tmp_path: Path) -> None:
    where = tmp_path / "contracts"
    where.mkdir(mode=0o777)
    where.chmod(0o777)
    store(str(where), KEY, CONTRACT, {})
    assert os.listdir(where) == []


def test_a_place_that_cannot_be_made_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store(f"{tmp_path}/file/contracts", KEY, CONTRACT, {})
    assert fetch(f"{tmp_path}/file/contracts", KEY) is None


def test_an_entry_of_another_version_is_a_miss(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "__version__", "0.0.0")
    assert fetch(place, entry_key(["dev"], b"content")) is None


def test_old_entries_are_removed(place: str) -> None:
    for number in range(260):
        with open(f"{place}/{number:064}.json", "w", encoding="ascii") as file:
            file.write("x")
    store(place, KEY, CONTRACT, {})
    assert len(os.listdir(place)) < 200
    assert fetch(place, KEY) == CONTRACT


def test_every_document_that_took_part_is_compared(place: str, tmp_path: Path) -> None:
    other = tmp_path / "base.yaml"
    other.write_bytes(b"one")
    other.chmod(0o644)
    store(place, KEY, CONTRACT, {str(other): b"one"})
    assert fetch(place, KEY) == CONTRACT
    other.write_bytes(b"two")
    assert fetch(place, KEY) is None
    other.write_bytes(b"one")
    other.chmod(0o666)
    assert fetch(place, KEY) is None
    other.unlink()
    assert fetch(place, KEY) is None


def test_json_is_read_the_same_way_without_the_package(place: str) -> None:
    with open(entry(place), encoding="utf-8") as file:
        body = file.read().partition("\n")[2]
    assert cache._parse(body) == json.loads(body)


def test_a_warm_load_imports_no_yaml_and_nothing_heavy(tmp_path: Path) -> None:
    path = tmp_path / "reach.yaml"
    path.write_text(f"{VERSION}resources: {{env: {{A: x}}}}\nlimits: {{wall: 5s}}\n")
    path.chmod(0o644)
    cold = load(str(path), home=HOME, cache_dir=str(tmp_path / "cache"))
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from agent_reach.contract.load import discover, load, narrow_by_system, with_cli_grants\n"
        "contract = load(sys.argv[1], home=sys.argv[2], cache_dir=sys.argv[3])\n"
        "with_cli_grants(contract, limits=('wall=6s',), read=('/x',), net=('a.b:1',), passes=('B',), cwd='/')\n"
        "narrow_by_system(contract, '/nonexistent')\n"
        "discover('x.py', '/nonexistent', '')\n"
        "print(contract.digest)\n"
        "print(*sorted(name for name in set(sys.modules) - before if not name.startswith('agent_reach')))\n"
    )
    arguments = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{program}"]
    arguments += [str(path), HOME, str(tmp_path / "cache")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60)
    printed, modules = done.stdout.splitlines()
    assert printed == cold.digest
    assert set(modules.split()) <= CHEAP
