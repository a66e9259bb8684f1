"""What of a project is shown, and what in writable directories stays as it is."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from agent_reach.errors import Unavailable
from agent_reach.host import project

if TYPE_CHECKING:
    from pathlib import Path


def fill(root: Path, *names: str) -> str:
    """Make files, and directories where a name ends with a slash."""
    for name in names:
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    return str(root)


def hidden(root: Path, **options: object) -> dict[str, str]:
    options = {"skip": (), "contract": ""} | options
    fact = project.look_at_project(str(root), **options)
    assert fact.root == str(root)
    return {os.path.relpath(path, root): kind for path, kind in fact.masks}


# -- hidden names ----------------------------------------------------------------------------------------


def test_secrets_contracts_and_the_repository_are_hidden_at_every_depth(tmp_path: Path) -> None:
    secret = (".env", ".env.prod", "tls/server.pem", "a/b/site.key", "id_rsa", "keys/id_ed25519.pub", "reach.lock")
    contracts = ("reach.yaml", "job.reach.yaml", "edge-device-reach.yaml")
    fill(tmp_path, *secret, *contracts, ".git/", "a/.git/config", ".environment/x")
    fill(tmp_path, "job.py", "a/b/data.csv", "keys/readme", "environment.yml", "reach.py", ".gitignore", "monkey.txt")
    files = dict.fromkeys((*secret, *contracts), "file")
    assert hidden(tmp_path) == files | dict.fromkeys((".git", "a/.git", ".environment"), "directory")


def test_the_contract_is_hidden_under_whatever_name(tmp_path: Path) -> None:
    fill(tmp_path, "grants.yaml", "other.yaml")
    assert hidden(tmp_path, contract=f"{tmp_path}/grants.yaml") == {"grants.yaml": "file"}


def test_what_a_grant_names_exactly_is_shown(tmp_path: Path) -> None:
    fill(tmp_path, "tls/ca.pem", "tls/server.pem")
    assert hidden(tmp_path, shown=(f"{tmp_path}/tls/ca.pem",)) == {"tls/server.pem": "file"}


def test_the_active_environment_is_not_looked_through(tmp_path: Path) -> None:
    fill(tmp_path, ".venv/lib/certifi/cacert.pem")
    assert hidden(tmp_path, skip=(f"{tmp_path}/.venv",)) == {}
    assert hidden(tmp_path) == {".venv/lib/certifi/cacert.pem": "file"}


def test_sockets_fifos_and_links_with_hidden_names_are_told_apart(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".env").symlink_to("/etc/hostname")
    (tmp_path / "link").symlink_to("/etc/hostname")
    (tmp_path / "loop").symlink_to(".")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        assert hidden(tmp_path) == {"pipe": "special", "s": "special", ".env": "symlink"}


def test_code_only_shows_source_and_the_data_of_packages(tmp_path: Path) -> None:
    fill(tmp_path, "job.py", "fast.so", "pkg/__init__.py", "pkg/table.csv", "data/in.csv", "notes.md", "pkg/.env")
    found = hidden(tmp_path, code_only=True)
    assert found == dict.fromkeys(("data/in.csv", "notes.md", "pkg/.env"), "file")
    assert hidden(tmp_path) == {"pkg/.env": "file"}


def test_a_tree_that_is_too_large_is_refused_with_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "_MOST_ENTRIES", 3)
    fill(tmp_path, "a", "b", "c")
    assert hidden(tmp_path) == {}
    fill(tmp_path, "d")
    with pytest.raises(Unavailable) as caught:
        hidden(tmp_path)
    assert "project: {read: code}" in caught.value.fix


def test_sockets_in_a_granted_directory_are_found_and_links_not_followed(tmp_path: Path) -> None:
    fill(tmp_path, "a/b/file", "outside/")
    os.mkfifo(tmp_path / "outside" / "pipe")
    os.mkfifo(tmp_path / "a" / "b" / "pipe")
    (tmp_path / "a" / "link").symlink_to(tmp_path / "outside")
    assert project.special_entries(f"{tmp_path}/a") == ((f"{tmp_path}/a/b/pipe", "special"),)


# -- protected names -------------------------------------------------------------------------------------


def protected(root: Path, *, contract: str = "", environment: str = "/usr") -> dict[str, str]:
    found = project.protected_entries(str(root), contract=contract, environment=environment)
    return {os.path.relpath(path, root): kind for path, kind in found}


def test_what_other_programs_obey_is_protected_where_it_exists(tmp_path: Path) -> None:
    fill(tmp_path, ".envrc", ".vscode/tasks.json", ".git/hooks/", ".git/config", ".git/HEAD", "job.reach.yaml", "a.py")
    assert protected(tmp_path) == {
        ".envrc": "file",
        ".vscode": "directory",
        ".git/hooks": "directory",
        ".git/config": "file",
        "job.reach.yaml": "file",
    }
    assert protected(tmp_path / ".vscode") == {}


def test_the_contract_and_the_active_environment_are_protected_in_the_grant_that_holds_them(tmp_path: Path) -> None:
    fill(tmp_path, "grants/g.yaml", "envs/one/", "other/")
    options = {"contract": f"{tmp_path}/grants/g.yaml", "environment": f"{tmp_path}/envs/one"}
    assert protected(tmp_path, **options) == {"grants/g.yaml": "file", "envs/one": "directory"}
    assert protected(tmp_path / "other", **options) == {}


def test_a_git_file_protects_what_it_points_to(tmp_path: Path) -> None:
    fill(tmp_path, "repo/.git/modules/sub/hooks/", "repo/.git/modules/sub/config", "repo/sub/x")
    (tmp_path / "repo/sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    assert protected(tmp_path / "repo/sub") == {
        ".git": "file",
        "../.git/modules/sub/hooks": "directory",
        "../.git/modules/sub/config": "file",
    }
    (tmp_path / "repo/sub/.git").write_text("something else")
    assert protected(tmp_path / "repo/sub") == {}


# -- piece by piece --------------------------------------------------------------------------------------


def test_beside_what_is_hidden_everything_else_is_listed(tmp_path: Path) -> None:
    root = fill(tmp_path, "a/x", "a/b/y", "a/b/.env", "c/z", ".env")
    found = project.entries_beside(root, (f"{root}/.env", f"{root}/a/b/.env"), 10)
    assert sorted(found) == [f"{root}/a/b/y", f"{root}/a/x", f"{root}/c"]


def test_nothing_hidden_below_is_one_entry(tmp_path: Path) -> None:
    root = fill(tmp_path, "a/x", "a-b/y")
    assert project.entries_beside(root, (), 10) == (root,)
    assert project.entries_beside(f"{root}/a", (f"{root}/a-b/y",), 10) == (f"{root}/a",)


def test_more_than_can_be_listed_is_refused(tmp_path: Path) -> None:
    root = fill(tmp_path, "a", "b", "c", ".env")
    assert len(project.entries_beside(root, (f"{root}/.env",), 3)) == 3
    with pytest.raises(Unavailable, match="hidden names"):
        project.entries_beside(root, (f"{root}/.env",), 2)


# -- outside any project ---------------------------------------------------------------------------------


def test_a_lone_script_brings_the_modules_beside_it_that_it_imports(tmp_path: Path) -> None:
    root = fill(tmp_path, "unused.py", "pkg/__init__.py", "plain/data", "late.py")
    (tmp_path / "job.py").write_text("import os, helper\nfrom pkg.sub import x\nimport plain\n")
    (tmp_path / "helper.py").write_text("def f():\n    import late, job\n    from . import unused\n")
    expected = {f"{root}/job.py", f"{root}/helper.py", f"{root}/late.py", f"{root}/pkg/"}
    assert set(project.beside(f"{root}/job.py")) == expected


def test_a_script_behind_a_link_is_shown_under_both_names(tmp_path: Path) -> None:
    root = fill(tmp_path, "real/", "helper.py")
    (tmp_path / "real/job.py").write_text("import helper, near\n")
    (tmp_path / "real/near.py").touch()
    (tmp_path / "job.py").symlink_to("real/job.py")
    expected = {f"{root}/job.py", f"{root}/real/job.py", f"{root}/real/near.py"}
    assert set(project.beside(f"{root}/job.py")) == expected


@pytest.mark.parametrize("text", ["def (", "\0", "(" * 5000, "\xff"])
def test_a_script_that_cannot_be_parsed_stands_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "job.py").write_bytes(text.encode("latin-1"))
    assert project.beside(f"{tmp_path}/job.py") == [f"{tmp_path}/job.py"]


def test_protected_names_are_found_at_any_depth(tmp_path):
    nested = tmp_path / "work" / "vendor" / "lib"
    (nested / ".git" / "hooks").mkdir(parents=True)
    (nested / ".git" / "config").write_text("")
    (nested / ".envrc").write_text("")
    (tmp_path / "work" / "data").mkdir()
    found = dict(project.protected_below(str(tmp_path / "work"), contract="", environment="-"))
    assert found == {
        f"{nested}/.git/hooks": "directory",
        f"{nested}/.git/config": "file",
        f"{nested}/.envrc": "file",
    }
