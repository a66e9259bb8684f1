from __future__ import annotations

import pytest

from agent_reach.contract.model import FileGrant, Origin
from unit.contract.support import PATH, loaded, refusal, refused


def entry(text: str) -> str:
    return f"resources:\n  files:\n    - {text}\n"


def grant(text: str) -> FileGrant:
    (found,) = loaded(entry(text)).files
    return found


def test_defaults() -> None:
    assert grant("{path: /data/in.csv}") == FileGrant("/data/in.csv", "r", origin=Origin(PATH, 4))


@pytest.mark.parametrize("mode", ["r", "rb", "w", "wb", "a", "ab", "rw", "rwb", "r+", "rb+", "r+b"])
def test_modes(mode: str) -> None:
    assert grant(f"{{path: /x, mode: {mode}}}").mode == {"rb+": "r+b"}.get(mode, mode)


@pytest.mark.parametrize("mode", ["raed", "read", "x", "w+", "R", '""', "rw+"])
def test_other_modes_are_refused_with_the_list(mode: str) -> None:
    finding = refusal(entry(f"{{path: /x, mode: {mode}}}"))
    assert (finding.code, finding.key) == ("E_VALUE", "resources.files[0].mode")
    assert "r, rb, w" in finding.hint


def test_relative_and_home_paths() -> None:
    assert grant("{path: ./out/, mode: rw}").path == "/srv/job/out"
    assert grant("{path: ./out/, mode: rw}").directory
    assert grant("{path: ~/.kube/config}").path == "/home/alice/.kube/config"
    assert grant("{path: .}").directory


@pytest.mark.parametrize("path", ["${HOME}/x", '"$HOME/x"', '"a\\0b"', '""', "~bob/x"])
def test_paths_with_two_meanings_are_refused(path: str) -> None:
    finding = refusal(entry(f"{{path: {path}}}" if path[0] != "$" else f'{{path: "{path}"}}'))
    assert finding.key == "resources.files[0].path"
    assert finding.code in {"E_PATH", "E_VALUE"}


def test_a_pattern_is_read_only() -> None:
    assert grant('{path: "data/*.csv"}').glob
    assert refusal(entry('{path: "data/*.csv", mode: w}')).code == "E_PATH"


def test_path_is_needed() -> None:
    assert refusal(entry("{mode: r}")).code == "E_MISSING"


def test_entries_are_mappings() -> None:
    finding = refusal(entry("/data/in.csv"))
    assert finding.code == "E_TYPE"
    assert "{path: /data/in.csv, mode: r}" in finding.hint


def test_a_number_for_a_path_has_to_be_quoted() -> None:
    finding = refusal(entry("{path: 3.10}"))
    assert (finding.code, finding.hint) == ("E_TYPE", 'quote it: "3.10"')
    assert grant('{path: "3.10"}').path == "/srv/job/3.10"


@pytest.mark.parametrize("source", ["https://example.com/x", "file://./x", "s3://bucket/key", "gs://b/k", "az://c/b"])
def test_sources(source: str) -> None:
    assert grant(f"{{path: /x, source: '{source}'}}").source == source


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{path: /x, source: 'http://example.com/x'}", "https://"),
        ("{path: /x, source: /y}", "not a URI"),
        ("{path: /x, source: 'https://'}", "not a URI"),
        ("{path: /x, source: 'https://${X}/y'}", "variable"),
        ("{path: /x, mode: w, source: 'https://e.com/x'}", "can only be read"),
        ("{path: /x/, source: 'https://e.com/x'}", "one file"),
        ("{path: '/x/*', source: 'https://e.com/x'}", "one file"),
        ("{path: /x, sha256: '" + "0" * 64 + "'}", "there is none"),
        ("{path: /x, source: 'https://e.com/x', sha256: abc}", "64 hexadecimal digits"),
    ],
)
def test_sources_that_cannot_be_kept(text: str, word: str) -> None:
    finding = refusal(entry(text))
    assert finding.code == "E_VALUE"
    assert word in str(finding)


def test_digest() -> None:
    assert grant("{path: /x, source: 'https://e.com/x', sha256: " + "AB" * 32 + "}").sha256 == "ab" * 32


def test_two_entries_of_one_path_are_refused_however_they_are_written() -> None:
    findings = refused("resources:\n  files:\n    - {path: /x/a}\n    - {path: /x//b/../a/, mode: w}\n")
    assert [(finding.code, finding.line) for finding in findings] == [("E_DUPLICATE_ENTRY", 5)]
    assert "first on line 4" in findings[0].message


def test_allowed_files_is_an_alias() -> None:
    contract = loaded("allowed_files: [{path: /x}]\nresources:\n  files: [{path: /y}]\n")
    assert [found.path for found in contract.files] == ["/x", "/y"]
    assert refusal("allowed_files: [{path: /x, moed: r}]\n").key == "allowed_files[0].moed"
