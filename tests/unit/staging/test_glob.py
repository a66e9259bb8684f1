"""Globs of read grants: what a shell would match, bounded, and never out of their directory."""

from __future__ import annotations

import fnmatch
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_reach.contract.model import FileGrant, Origin
from agent_reach.errors import ContractError
from agent_reach.staging.glob import TooManyError, expand, expand_grants, matches_name


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "root"
    for name in ("a.csv", "b.csv", "c.txt", ".hidden.csv", "sub/d.csv", "sub/deep/e.csv", ".git/f.csv", "x[1].csv"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "secret.csv").write_text("secret")
    return root


def names(tree, pattern, **more):
    return [os.path.relpath(path, tree) for path in expand(f"{tree}/{pattern}", **more).paths]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.csv", ["a.csv", "b.csv", "x[1].csv"]),
        ("?.csv", ["a.csv", "b.csv"]),
        ("[ab].*", ["a.csv", "b.csv"]),
        ("[!a-b].txt", ["c.txt"]),
        (".*.csv", [".hidden.csv"]),
        ("*/*.csv", ["sub/d.csv"]),
        ("**/*.csv", ["a.csv", "b.csv", "sub/d.csv", "sub/deep/e.csv", "x[1].csv"]),
        ("sub/**", ["sub/d.csv", "sub/deep", "sub/deep/e.csv"]),
        ("x[[]1].csv", ["x[1].csv"]),
        ("*.none", []),
        ("none/*", []),
        ("a.csv/*", []),
    ],
)
def test_patterns(tree, pattern, found):
    assert names(tree, pattern) == found


def test_a_link_that_leads_out_is_left_out_and_named(tree):
    os.symlink("../secret.csv", tree / "out.csv")
    os.symlink("/etc", tree / "etc")
    os.symlink("a.csv", tree / "in.csv")
    expansion = expand(f"{tree}/*.csv")
    assert f"{tree}/in.csv" in expansion.paths
    assert f"{tree}/out.csv" not in expansion.paths
    assert expansion.outside == (f"{tree}/out.csv",)
    assert names(tree, "etc/passw?") == ["etc/passwd"]  # written out by the author: the fixed part is the border
    assert names(tree, "*/pass*") == []
    assert names(tree, "**/pass*") == []


def test_a_link_in_the_fixed_part_is_the_author_s_choice(tree, tmp_path):
    os.symlink(tree, tmp_path / "link")
    assert expand(f"{tmp_path}/link/?.csv").paths == (f"{tmp_path}/link/a.csv", f"{tmp_path}/link/b.csv")


def test_a_loop_of_links_ends(tree):
    os.symlink(".", tree / "sub" / "self")
    assert names(tree, "sub/**/e.csv") == ["sub/deep/e.csv"]


def test_bounds(tree):
    assert len(names(tree, "*.csv", matches=3)) == 3
    with pytest.raises(TooManyError, match="more than 2 paths"):
        names(tree, "*.csv", matches=2)
    with pytest.raises(TooManyError, match="more than 5 directory entries"):
        names(tree, "**", visited=5)


def test_grants(tree):
    origin = Origin(file="/p/reach.yaml", line=7)
    exact = FileGrant(f"{tree}/a.csv", "rw", origin=origin)
    pattern = FileGrant(f"{tree}/*.csv", "rb", glob=True, origin=origin)
    os.symlink("/etc/passwd", tree / "out.csv")
    grants, outside = expand_grants((exact, pattern, FileGrant(f"{tree}/su*", glob=True)))
    assert [(os.path.basename(grant.path), grant.mode, grant.directory) for grant in grants] == [
        ("a.csv", "rw", False), ("b.csv", "rb", False), ("x[1].csv", "rb", False), ("sub", "r", True),
    ]  # fmt: skip
    assert all(not grant.glob for grant in grants)
    assert grants[1].origin == origin
    assert outside == (f"{tree}/out.csv",)


def test_a_required_pattern_must_match(tree):
    grant = FileGrant(f"{tree}/*.none", glob=True, origin=Origin(file="/p/reach.yaml", line=7))
    assert expand_grants((grant,)) == ((), ())
    with pytest.raises(ContractError, match=r"/p/reach.yaml:7: .*nothing matches"):
        expand_grants((grant.replace(required=True),))


@settings(deadline=None, max_examples=50)
@given(st.text("ab.*?", max_size=8), st.text("ab.", max_size=8))
def test_agrees_with_the_standard_library(pattern, name):
    if name.startswith(".") and not pattern.startswith("."):
        assert not matches_name(pattern, name)
    else:
        assert matches_name(pattern, name) == fnmatch.fnmatchcase(name, pattern)


def test_many_stars_are_no_trouble():
    assert not matches_name("*a" * 100 + "b", "a" * 250)
    assert matches_name("*a" * 100, "a" * 250)
