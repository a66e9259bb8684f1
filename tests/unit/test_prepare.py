"""From a request to a plan: tier, places, project, and what belongs to reach itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_reach import prepare
from agent_reach.contract.model import CommandGrant, Contract, EnvGrant, FileGrant, Origin, Sandbox
from agent_reach.errors import ContractError, Unavailable
from agent_reach.host import paths
from agent_reach.host.model import ProjectFact
from agent_reach.linux.probe import Abilities, Obstacle
from agent_reach.prepare import Places, Request, choose_tier, find_contract, places
from unit.plan.support import ALICE, PYTHON
from unit.plan.support import REDUCED as REDUCED_FACTS

if TYPE_CHECKING:
    from pathlib import Path

    from agent_reach.host.model import Caller

NO_NAMESPACES = Obstacle("user namespaces", "unshare: EPERM", "sysctl kernel.unprivileged_userns_clone=1")
FULL, REDUCED, NONE = (
    Abilities("full", 7),
    Abilities("reduced", 7, NO_NAMESPACES),
    Abilities("none", 0, Obstacle("Landlock", "ABI 0", "a kernel of at least 5.13")),
)

# -- tier ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minimum", "abilities", "tier"),
    [
        ("reduced", FULL, "full"),
        ("full", FULL, "full"),
        ("reduced", REDUCED, "reduced"),
        ("advisory", REDUCED, "reduced"),
    ],
)
def test_the_strongest_tier_of_the_host_is_taken(minimum: str, abilities: Abilities, tier: str) -> None:
    assert choose_tier(Contract(sandbox=Sandbox(minimum)), "", abilities) == tier


@pytest.mark.parametrize(
    ("minimum", "abilities"), [("full", REDUCED), ("full", NONE), ("reduced", NONE), ("advisory", NONE)]
)
def test_a_host_below_the_minimum_is_refused_with_what_stands_against_it(minimum: str, abilities: Abilities) -> None:
    contract = Contract(sandbox=Sandbox(minimum, Origin("/srv/job/reach.yaml", 4)))
    with pytest.raises(Unavailable) as caught:
        choose_tier(contract, "", abilities)
    assert abilities.obstacle is not None
    assert caught.value.feature == f"tier `{minimum}`"
    assert caught.value.needed == "sandbox.minimum (/srv/job/reach.yaml:4)"
    assert abilities.obstacle.found in caught.value.found
    assert caught.value.fix == abilities.obstacle.fix


def test_the_command_lines_minimum_wins_and_is_named() -> None:
    with pytest.raises(Unavailable) as caught:
        choose_tier(Contract(), "full", REDUCED)
    assert caught.value.needed == "--minimum"
    assert choose_tier(Contract(sandbox=Sandbox("full")), "reduced", REDUCED) == "reduced"


# -- places ----------------------------------------------------------------------------------------------


def test_records_and_cache_are_where_the_environment_says() -> None:
    environ = {"XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/c"}
    assert places(environ, "/home/alice") == Places("/s/reach", "/c/reach")
    assert places(environ, "/home/alice", use_cache=False) == Places("/s/reach", "")


@pytest.mark.parametrize("environ", [{}, {"XDG_STATE_HOME": "relative", "XDG_CACHE_HOME": ""}])
@pytest.mark.parametrize(("uid", "state"), [(1001, "/home/alice/.local/state/reach"), (0, "/var/lib/reach")])
def test_without_it_they_are_in_the_usual_places(
    environ: dict[str, str], uid: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert places(environ, "/home/alice") == Places(state, "/home/alice/.cache/reach")


# -- contract --------------------------------------------------------------------------------------------


@pytest.fixture
def caller(tmp_path: Path) -> Caller:
    (tmp_path / "home").mkdir()
    (tmp_path / "job").mkdir()
    return ALICE.replace(home=f"{tmp_path}/home", cwd=f"{tmp_path}/job")


WHERE = Places("/nowhere/state", "")


def test_without_a_contract_nothing_is_granted_but_what_the_command_line_adds(caller: Caller) -> None:
    request = Request("script", "job.py", contract="", read=("in.csv",), commands=("git",))
    contract = find_contract(request, caller, WHERE, {})
    assert [grant.path for grant in contract.files] == [f"{caller.cwd}/in.csv"]
    assert [grant.name for grant in contract.commands] == ["git"]
    assert (contract.path, contract.env, contract.network) == ("", (), ())


@pytest.mark.parametrize(
    "request_", [Request("script", "job.py", profile="dev"), Request("script", "a", targets=("t",))]
)
def test_choosing_a_part_of_no_contract_is_refused(caller: Caller, request_: Request) -> None:
    with pytest.raises(ContractError) as caught:
        find_contract(request_, caller, WHERE, {})
    assert [finding.code for finding in caught.value.findings] == ["E_NO_CONTRACT"]


def test_the_contract_beside_the_script_is_found_and_patterns_are_expanded(caller: Caller) -> None:
    for name in ("a.csv", "b.csv", "c.txt"):
        open(f"{caller.cwd}/{name}", "w").close()
    with open(f"{caller.cwd}/job.reach.yaml", "w") as stream:
        stream.write('version: "1"\nresources: {files: [{path: "*.csv"}]}\n')
    os.chmod(f"{caller.cwd}/job.reach.yaml", 0o644)
    contract = find_contract(Request("script", "job.py"), caller, WHERE, {})
    assert contract.path == f"{caller.cwd}/job.reach.yaml"
    assert [grant.path for grant in contract.files] == [f"{caller.cwd}/a.csv", f"{caller.cwd}/b.csv"]


# -- project ---------------------------------------------------------------------------------------------


def root_of(contract_path: str, script: str, home: str = "/home/alice", cwd: str = "/srv/job") -> str:
    return prepare._project_root(Contract(path=contract_path), script, ALICE.replace(home=home, cwd=cwd))


def test_the_project_is_the_directory_of_the_contract_else_of_the_script_else_the_working_directory() -> None:
    assert root_of("/srv/a/reach.yaml", "/srv/b/job.py") == "/srv/a"
    assert root_of("", "/srv/b/job.py") == "/srv/b"
    assert root_of("", "", cwd="/srv/c") == "/srv/c"
    assert root_of("", "/home/alice/code/job.py") == "/home/alice/code"


@pytest.mark.parametrize("place", ["/", "/tmp", "/var/tmp", "/home/alice", "/home"])
def test_a_place_that_holds_more_than_a_project_is_none(place: str) -> None:
    assert root_of("", os.path.join(place, "job.py")) == ""
    assert root_of(os.path.join(place, "reach.yaml"), "/srv/job/job.py") == ""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    (root / "job.py").write_text("import helper\n")
    for name in ("helper.py", "data.csv", ".env", "pkg/__init__.py", "pkg/table.csv"):
        (root / name).touch()
    return root


@pytest.mark.parametrize(
    ("read", "shown", "hidden"),
    [("all", "root", {".env"}), ("code", "root", {".env", "data.csv"}), ("none", "", set())],
)
def test_as_much_of_the_project_is_shown_as_the_contract_says(
    project: Path, read: str, shown: str, hidden: set[str]
) -> None:
    fact = prepare._project(Contract(project_read=read), str(project), f"{project}/job.py", PYTHON, ())
    assert fact.root == (str(project) if shown else "")
    assert {os.path.relpath(path, project) for path, _ in fact.masks} == hidden
    assert fact.files == (() if shown else (f"{project}/job.py",))


def test_a_script_outside_the_project_is_shown_with_what_it_imports(project: Path, tmp_path: Path) -> None:
    (tmp_path / "lone.py").write_text("import near\n")
    (tmp_path / "near.py").touch()
    fact = prepare._project(Contract(), str(project), f"{tmp_path}/lone.py", PYTHON, ())
    assert fact.root == str(project)
    assert set(fact.files) == {f"{tmp_path}/lone.py", f"{tmp_path}/near.py"}


# -- what belongs to reach -------------------------------------------------------------------------------


def own(caller: Caller, *grants: FileGrant, tier: str = "full") -> tuple[str, ...]:
    declared = tuple(paths.look(grant.path) for grant in grants)
    where = Places(f"{caller.home}/state/reach", f"{caller.home}/cache/reach")
    return prepare._own_places(where, tier, caller, Contract(files=grants), declared)


def test_our_own_directories_in_a_writable_grant_are_named_and_made(caller: Caller) -> None:
    names = (".cache/reach", ".config/reach", ".local/state/reach", ".reach", "cache/reach", "state/reach")
    found = own(caller, FileGrant(caller.home, "rw", directory=True))
    assert sorted(found) == sorted(f"{caller.home}/{name}" for name in names)
    assert all(os.stat(path).st_mode & 0o777 == 0o700 for path in found)


def test_a_grant_elsewhere_or_for_reading_names_none(caller: Caller) -> None:
    grants = (FileGrant(caller.home, "r", directory=True), FileGrant(caller.cwd, "rw", directory=True))
    assert own(caller, *grants) == ()
    assert os.listdir(caller.home) == []


@pytest.mark.parametrize("mode", ["w", "rw", "a"])
@pytest.mark.parametrize("name", [".reach", ".reach/providers.py", "cache/reach/contracts", "state/reach"])
def test_a_writable_grant_in_one_of_them_is_refused(caller: Caller, name: str, mode: str) -> None:
    grant = FileGrant(f"{caller.home}/{name}", mode, origin=Origin("/srv/job/reach.yaml", 9))
    with pytest.raises(ContractError) as caught:
        own(caller, grant)
    assert {(finding.code, finding.line) for finding in caught.value.findings} == {("E_FILE_OWN", 9)}


def test_what_is_only_named_alike_is_granted(caller: Caller) -> None:
    assert own(caller, FileGrant(f"{caller.home}/.reachable", "rw"), FileGrant(f"{caller.home}/.reach/x", "r")) == ()


def test_tier_reduced_cannot_take_them_out_of_a_grant(caller: Caller) -> None:
    with pytest.raises(Unavailable, match="Landlock cannot subtract"):
        own(caller, FileGrant(caller.home, "rw", directory=True), tier="reduced")
    assert os.listdir(caller.home) == []


@pytest.mark.parametrize(("mode", "read"), [("w", False), ("a", False), ("rw", True)])
def test_tier_reduced_reads_of_the_project_what_is_not_granted_for_writing_alone(
    project: Path, mode: str, read: bool
) -> None:
    (project / "out").mkdir()
    grant = FileGrant(f"{project}/out", mode, directory=True)
    facts = REDUCED_FACTS.replace(project=ProjectFact(str(project)), paths=(paths.look(grant.path),))
    entries = prepare._entries(Contract(files=(grant,)), facts)
    shown = {os.path.relpath(path, project) for path in entries}
    assert shown == ({"."} if read else {"job.py", "helper.py", "data.csv", ".env", "pkg"})


def test_special_files_are_no_grant(caller: Caller) -> None:
    os.mkfifo(f"{caller.cwd}/pipe")
    for path, kind in ((f"{caller.cwd}/pipe", "fifo"), ("/dev/null", "device")):
        with pytest.raises(ContractError, match=f"is a {kind}"):
            prepare._specials(Contract(files=(FileGrant(path),)), (paths.look(path),))
    directory = FileGrant(caller.cwd, directory=True)
    found = prepare._specials(Contract(files=(directory,)), (paths.look(caller.cwd),))
    assert found == ((f"{caller.cwd}/pipe", "special"),)


def test_protected_names_stay_read_only_unless_they_are_named(caller: Caller) -> None:
    for name in (".envrc", "reach.yaml"):
        open(f"{caller.cwd}/{name}", "w").close()

    def protected(*grants: FileGrant) -> set[str]:
        declared = tuple(paths.look(grant.path) for grant in grants)
        found = prepare._protected(Contract(files=grants), declared, PYTHON)
        return {os.path.basename(path) for path, _ in found}

    directory = FileGrant(caller.cwd, "rw", directory=True)
    assert protected(directory) == {".envrc", "reach.yaml"}
    assert protected(directory, FileGrant(f"{caller.cwd}/.envrc", "rw")) == {"reach.yaml"}
    assert protected(directory.replace(mode="r")) == set()


# -- environment -----------------------------------------------------------------------------------------


def test_tz_of_the_contract_counts_when_it_is_a_plain_value() -> None:
    assert prepare._zone(Contract(env=(EnvGrant("TZ", default="UTC"),))) == (("TZ", "UTC"),)
    for grant in (EnvGrant("TZ"), EnvGrant("TZ", source="env://TZ", default="UTC"), EnvGrant("LANG", default="C")):
        assert prepare._zone(Contract(env=(grant,))) == ()


def test_of_pythonpath_only_directories_count(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environ = {"PYTHONPATH": f"{tmp_path}::{tmp_path}/file:{tmp_path}/gone"}
    assert prepare._python_path(environ) == (str(tmp_path),)
    assert prepare._python_path({}) == ()


def test_commands_are_resolved_on_the_callers_path(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("\x7fELF")
    tool.chmod(0o755)
    contract = Contract(commands=(CommandGrant("tool"), CommandGrant("absent")))
    assert [fact.found for fact in prepare._commands(contract, {"PATH": str(tmp_path)})] == [str(tool), ""]
