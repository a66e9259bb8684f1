"""Entries added to YAML as text: everything else stays as it was written."""

from __future__ import annotations

import pytest

from agent_reach.cli.yaml_edit import CannotEdit, add
from agent_reach.contract.nodes import Doc, Map
from agent_reach.contract.read import read
from agent_reach.contract.sink import Sink

FILES = ("resources", "files")


def edited(text: str, path: tuple[str, ...] = FILES, entry: str = "{path: a}", named: str = "") -> str:
    sink = Sink()
    root = read(text.encode(), Doc("c", "/c", "/"), sink)
    assert isinstance(root, Map)
    result = add(text, root, path, entry, named=named)
    assert isinstance(read(result.encode(), Doc("c", "/c", "/"), sink), Map)
    assert not sink.findings
    return result


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "resources:\n  files:  # mine\n    # first\n    - {path: b}  # b\n  env: []\n",
            "resources:\n  files:  # mine\n    # first\n    - {path: a}\n    - {path: b}  # b\n  env: []\n",
        ),
        (
            "resources:\n  files:\n  - path: b\n    mode: r\n",
            "resources:\n  files:\n  - {path: a}\n  - path: b\n    mode: r\n",
        ),
        ("resources:\n  files: []  # none\n", "resources:\n  files:  # none\n    - {path: a}\n"),
        ("resources:\n  files: [{path: b}]\n", "resources:\n  files: [{path: a}, {path: b}]\n"),
        ("resources: {files: [{path: b}]}\n", "resources: {files: [{path: a}, {path: b}]}\n"),
        ("resources: {env: []}\n", "resources: {files: [{path: a}], env: []}\n"),
        ("resources: {}\n", "resources: {files: [{path: a}]}\n"),
        (
            "resources:\n  env:\n    A: b\n",
            "resources:\n  files:\n    - {path: a}\n  env:\n    A: b\n",
        ),
        ('version: "1"\n', 'version: "1"\nresources:\n  files:\n    - {path: a}\n'),
        ('version: "1"', 'version: "1"\nresources:\n  files:\n    - {path: a}\n'),
        ('{version: "1"}', '{resources: {files: [{path: a}]}, version: "1"}'),
    ],
)
def test_a_list_gets_one_entry_more(before, after) -> None:
    assert edited(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("limits: {memory: 1GiB}\n", "limits: {wall: 10m, memory: 1GiB}\n"),
        ("limits:\n  memory: 1GiB\n", "limits:\n  wall: 10m\n  memory: 1GiB\n"),
        ('version: "1"\n', 'version: "1"\nlimits:\n  wall: 10m\n'),
    ],
)
def test_a_mapping_gets_one_key_more(before, after) -> None:
    assert edited(before, ("limits",), "10m", "wall") == after


@pytest.mark.parametrize(
    "text",
    [
        "x-f: &f [{path: b}]\nresources:\n  files: *f\n",
        "resources:\n  files: &f\n    - {path: b}\n",
        "resources:\n  files:\n    A: b\n",
        "resources:\n  files: 3\n",
        "resources: 3\n",
        "resources:\n  files: [\n    ]\n",
    ],
)
def test_what_others_share_or_is_written_otherwise_is_left_alone(text) -> None:
    with pytest.raises(CannotEdit):
        edited(text)
