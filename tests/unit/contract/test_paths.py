from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.contract.paths import is_directory, is_glob, resolve
from agent_reach.contract.sink import Refusal


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("/etc/x", "/etc/x"),
        ("//etc//x/", "/etc/x"),
        ("/", "/"),
        (".", "/srv/job"),
        ("./out/", "/srv/job/out"),
        ("../shared/data", "/srv/shared/data"),
        ("../../../../x", "/x"),
        ("a b/ü", "/srv/job/a b/ü"),
        ("~", "/home/alice"),
        ("~/x/", "/home/alice/x"),
        ("x~", "/srv/job/x~"),
        ("cost$", "/srv/job/cost$"),
        ("*.csv", "/srv/job/*.csv"),
    ],
)
def test_one_meaning(written: str, path: str) -> None:
    assert resolve(written, "/srv/job", "/home/alice") == path


@pytest.mark.parametrize(
    "written",
    [
        "",
        "${HOME}/x",
        "a/${X}",
        "$HOME/x",
        "~bob/x",
        "~bob",
        "a\x00b",
        "a\nb",
        "file:///etc/x",
        "/" + "x" * 256,
        "/x" * 2100,
    ],
)
def test_what_could_mean_two_things_is_refused(written: str) -> None:
    with pytest.raises(Refusal) as caught:
        resolve(written, "/srv/job", "/home/alice")
    assert caught.value.code == "E_PATH"


def test_a_home_has_to_be_there() -> None:
    with pytest.raises(Refusal):
        resolve("~/x", "/srv/job", "")


def test_shapes() -> None:
    assert is_directory("a/")
    assert is_directory(".")
    assert is_directory("..")
    assert is_directory("a/..")
    assert is_directory("~")
    assert not is_directory("a")
    assert not is_directory("a/.b")
    assert is_glob("a/*.csv")
    assert is_glob("a?")
    assert is_glob("[ab]")
    assert not is_glob("a.csv")


@given(st.text(alphabet="ab./~ ", min_size=1, max_size=30))
def test_a_resolved_path_is_absolute_and_stays_as_it_is(written: str) -> None:
    try:
        path = resolve(written, "/srv/job", "/home/alice")
    except Refusal:
        return
    assert path.startswith("/")
    assert "//" not in path
    assert not {".", ".."} & set(path.split("/"))
    assert resolve(path, "/other", "") == path
