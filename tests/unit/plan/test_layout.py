"""Where everything in the sandbox comes from, and in which order it is mounted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.contract.model import Contract, EnvGrant, FileGrant, Options, Origin
from agent_reach.host.model import CommandFact, PathFact, ProjectFact
from agent_reach.plan.layout import GUARD, delivered
from agent_reach.plan.model import Bind, Link, Mask, Pin, Scratch, Staged, Text
from unit.plan.support import ALICE, FULL, PYTHON, SYSTEM, at, granting, planned, targets

if TYPE_CHECKING:
    from agent_reach.plan.model import SandboxPlan

NAMES = st.sampled_from(("a", "b", "out", ".git", "job"))
PATHS = st.lists(NAMES, min_size=1, max_size=5).map(lambda parts: "/srv/" + "/".join(parts))
EXECUTABLES = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/bin", "/sbin")


def real_mount(mount: object) -> bool:
    return not isinstance(mount, (Mask, Pin))


@given(
    grants=st.lists(st.builds(FileGrant, PATHS, st.sampled_from(("r", "w", "rw")), directory=st.just(True))),
    masks=st.lists(PATHS),
    protected=st.lists(PATHS),
    home=PATHS,
)
def test_a_parent_comes_before_what_lies_below_it(
    grants: list[FileGrant], masks: list[str], protected: list[str], home: str
) -> None:
    facts = FULL.replace(
        caller=ALICE.replace(home=home),
        project=ProjectFact("/srv/job", masks=tuple((path, "directory") for path in masks)),
        protected=tuple((path, "file") for path in protected),
    )
    mounts = planned(*granting(*grants, facts=facts)).mounts
    order = {(mount.target, real_mount(mount)): number for number, mount in enumerate(mounts)}
    assert len(order) == len(mounts)
    for mount in mounts:
        for above in mounts:
            if mount.target.startswith(above.target + "/"):
                here, there = (order[m.target, real_mount(m)] for m in (mount, above))
                assert there < here, (above, mount)


@given(masks=st.lists(PATHS), paths=st.lists(PATHS))
def test_a_mask_comes_behind_every_mount_of_its_depth(masks: list[str], paths: list[str]) -> None:
    facts = FULL.replace(project=ProjectFact("/srv", masks=tuple((path, "file") for path in masks)))
    mounts = planned(*granting(*(FileGrant(path) for path in paths), facts=facts)).mounts
    depths = [(mount.target.count("/"), not real_mount(mount)) for mount in mounts]
    assert depths == sorted(depths)
    assert {mount.target for mount in mounts if isinstance(mount, Mask)} == set(masks)


def test_a_grant_below_the_private_home_is_mounted_into_it() -> None:
    plan = planned(*granting(FileGrant("/home/alice/data", "rw", directory=True)))
    assert targets(plan).index("/home/alice") < targets(plan).index("/home/alice/data")
    assert at(plan, "/home/alice") == [Scratch("/home/alice", 0o755)]
    (grant,) = at(plan, "/home/alice/data")
    assert (grant.writable, grant.source) == (True, "/home/alice/data")


def test_a_grant_wins_over_the_project_at_the_same_place() -> None:
    (bind,) = at(planned(*granting(FileGrant("/srv/job", "rw", directory=True))), "/srv/job")
    assert bind.writable
    (bind,) = at(planned(), "/srv/job")
    assert not bind.writable


def test_a_grant_is_mounted_with_its_identity_and_says_where_it_was_written() -> None:
    origin = Origin("/srv/job/reach.yaml", 7, "prod")
    plan = planned(*granting(FileGrant("/data/in.csv", "rb", origin=origin), FileGrant("/data/log", "a")))
    (read,) = at(plan, "/data/in.csv")
    assert read == Bind(
        "/data/in.csv",
        "/data/in.csv",
        directory=False,
        device=7,
        inode=42,
        owner=(1001, 1002),
        why="files: /data/in.csv (rb)",
        origin=origin,
    )
    (append,) = at(plan, "/data/log")
    assert append.writable


@pytest.mark.parametrize("mode", ["r", "rb"])
def test_what_is_granted_for_reading_is_read_only(mode: str) -> None:
    (bind,) = at(planned(*granting(FileGrant("/data/x", mode))), "/data/x")
    assert not bind.writable


@pytest.mark.parametrize("mode", ["w", "wb", "a", "ab", "rw", "r+", "r+b"])
def test_what_is_granted_for_writing_is_writable(mode: str) -> None:
    (bind,) = at(planned(*granting(FileGrant("/data/x", mode))), "/data/x")
    assert bind.writable


def test_a_granted_symlink_works_under_both_names() -> None:
    contract = Contract(files=(FileGrant("/srv/link", "r"),))
    plan = planned(contract, FULL.replace(paths=(PathFact("/srv/link", "/data/real", "file"),)))
    assert at(plan, "/srv/link") == [Link("/srv/link", "/data/real")]
    (bind,) = at(plan, "/data/real")
    assert bind.source == "/data/real"


@pytest.mark.parametrize("kind", ["missing", "symlink", "socket", "fifo", "device"])
def test_only_files_and_directories_are_mounted(kind: str) -> None:
    contract = Contract(files=(FileGrant("/data/x", "r"),))
    assert not at(planned(contract, FULL.replace(paths=(PathFact("/data/x", "/data/x", kind),))), "/data/x")


def test_a_file_with_a_source_is_staged_whatever_lies_at_its_path() -> None:
    grants = FileGrant("/data/a"), FileGrant("/data/in.csv", source="https://host/in.csv")
    assert at(planned(*granting(*grants)), "/data/in.csv") == [
        Staged("/data/in.csv", 1, why="files: /data/in.csv (r)", origin=Origin())
    ]


# -- what stays hidden or as it is -----------------------------------------------------------------------


def test_what_the_project_hides_is_masked() -> None:
    facts = FULL.replace(
        project=ProjectFact("/srv/job", masks=(("/srv/job/.env", "file"), ("/srv/job/.git", "directory")))
    )
    plan = planned(facts=facts)
    assert at(plan, "/srv/job/.env") == [Mask("/srv/job/.env", directory=False)]
    assert at(plan, "/srv/job/.git") == [Mask("/srv/job/.git", directory=True)]


def test_sockets_in_a_grant_and_directories_of_our_own_are_masked() -> None:
    contract, facts = granting(FileGrant("/data", "rw", directory=True))
    facts = facts.replace(specials=(("/data/db.sock", "special"),), own=("/data/.cache/reach",))
    plan = planned(contract, facts)
    assert at(plan, "/data/db.sock") == [Mask("/data/db.sock", directory=False)]
    assert Mask("/data/.cache/reach", directory=True) in at(plan, "/data/.cache/reach")


def test_protected_names_stay_visible_and_read_only() -> None:
    contract, facts = granting(FileGrant("/data", "rw", directory=True))
    facts = facts.replace(protected=(("/data/.envrc", "file"), ("/data/.git/hooks", "directory")))
    plan = planned(contract, facts)
    assert at(plan, "/data/.envrc") == [Mask("/data/.envrc", directory=False, keep=True)]
    assert at(plan, "/data/.git/hooks") == [Mask("/data/.git/hooks", directory=True, keep=True)]


def test_what_leads_to_a_kept_path_is_pinned_below_the_writable_grant_alone() -> None:
    contract, facts = granting(FileGrant("/data", "rw", directory=True), FileGrant("/docs", "r", directory=True))
    facts = facts.replace(
        protected=(("/data/.git/hooks", "directory"), ("/data/.envrc", "file"), ("/docs/a/.git/hooks", "directory")),
        own=("/data/home/.cache/reach",),
    )
    plan = planned(contract, facts)
    pins = [mount.target for mount in plan.mounts if isinstance(mount, Pin)]
    assert sorted(pins) == ["/data/.git", "/data/home", "/data/home/.cache"]
    assert targets(plan).index("/data/.git") < targets(plan).index("/data/.git/hooks")


# -- interpreter -----------------------------------------------------------------------------------------


def test_a_python_of_the_system_adds_its_binary_under_both_names_and_no_prefix() -> None:
    plan = planned()
    for name in ("/usr/bin/python3", "/usr/bin/python3.11"):
        assert at(plan, name) == [Bind("/usr/bin/python3.11", name, directory=False, why="interpreter")]
    assert at(plan, "/usr/bin/python") == [Link("/usr/bin/python", "python3")]
    assert not at(plan, "/usr")


def test_a_virtual_environment_below_the_private_home_is_shown() -> None:
    known = PYTHON.replace(
        executable="/home/alice/.venv/bin/python",
        prefix="/home/alice/.venv",
        search=("/home/alice/.venv/lib/python3.11/site-packages", "/usr/lib/python3.11"),
        extra=("/home/alice/code/lib/src",),
    )
    plan = planned(facts=FULL.replace(interpreter=known))
    for path in ("/home/alice/.venv", "/home/alice/code/lib/src"):
        assert at(plan, path) == [Bind(path, path, why="interpreter")]
    assert not [path for path in targets(plan) if path.startswith("/home/alice/.venv/")]
    assert at(plan, "/usr/bin/python3.11")


def test_an_archive_on_the_search_path_is_a_file() -> None:
    (bind,) = at(planned(facts=FULL.replace(interpreter=PYTHON.replace(search=("/opt/lib.zip",)))), "/opt/lib.zip")
    assert not bind.directory


@pytest.mark.parametrize("prefix", ["/", "/usr", "/usr/local", "/home/alice"])
def test_no_prefix_is_shown_that_holds_more_than_python(prefix: str) -> None:
    plan = planned(facts=FULL.replace(interpreter=PYTHON.replace(prefix=prefix, extra=(prefix,))))
    assert [mount for mount in at(plan, prefix) if isinstance(mount, Bind)] == []


def test_pythonpath_is_shown_only_without_context_isolation() -> None:
    facts = FULL.replace(python_path=("/opt/shared",))
    assert not at(planned(facts=facts), "/opt/shared")
    contract = Contract(options=Options(context_isolation=False))
    assert at(planned(contract, facts), "/opt/shared") == [Bind("/opt/shared", "/opt/shared", why="interpreter")]


# -- system ----------------------------------------------------------------------------------------------


def test_no_directory_of_executables_is_shown() -> None:
    facts = FULL.replace(
        commands=(CommandFact("git", "/usr/bin/git", (("/usr/bin/git", "/usr/bin/git"),)),),
        caller=ALICE.replace(cwd="/usr/bin"),
    )
    shown = {mount.target for mount in planned(facts=facts).mounts if not isinstance(mount, Link)}
    assert not shown & {*EXECUTABLES, "/", "/usr", "/usr/local"}


def test_a_command_is_one_file_for_each_of_its_names() -> None:
    files = (("/usr/bin/vi", "/usr/bin/vim.basic"), ("/usr/bin/vim.basic", "/usr/bin/vim.basic"))
    facts = FULL.replace(commands=(CommandFact("vi", "/usr/bin/vi", files, ("/opt/vim",)),))
    plan = planned(facts=facts)
    for inside in ("/usr/bin/vi", "/usr/bin/vim.basic"):
        assert at(plan, inside) == [Bind("/usr/bin/vim.basic", inside, directory=False, why="commands: vi")]
    assert at(plan, "/opt/vim") == [Bind("/opt/vim", "/opt/vim", why="commands: vi")]


def test_a_command_among_the_libraries_is_shown_with_them() -> None:
    helper = "/usr/lib/git-core/git-remote"
    facts = FULL.replace(commands=(CommandFact("git", "/usr/bin/git", ((helper, helper),)),))
    assert not at(planned(facts=facts), helper)


def accounts(plan: SandboxPlan, name: str) -> list[list[str]]:
    (text,) = at(plan, f"/etc/{name}")
    assert isinstance(text, Text)
    return [line.split(":") for line in text.content.decode().splitlines()]


def test_accounts_name_the_caller_and_none_of_the_hosts_people() -> None:
    plan = planned()
    passwd, group = accounts(plan, "passwd"), accounts(plan, "group")
    assert passwd[0] == ["alice", "x", "1001", "1002", "", "/home/alice", "/bin/sh"]
    assert group[0] == ["alice", "x", "1002", ""]
    assert {entry[0] for entry in passwd + group} <= {"alice", "root", "nobody", "nogroup"}
    assert (plan.inner_uid, plan.inner_gid, plan.user) == (1001, 1002, "alice")


def test_a_run_that_root_starts_has_an_ordinary_uid_inside() -> None:
    root = ALICE.replace(uid=0, gid=0, name="root", home="/root")
    plan = planned(facts=FULL.replace(caller=root, started_by_root=True))
    assert (plan.inner_uid, plan.inner_gid) == (1000, 1000)
    assert accounts(plan, "passwd")[0] == ["root", "x", "1000", "1000", "", "/root", "/bin/sh"]
    names = [entry[0] for entry in accounts(plan, "passwd")]
    assert len(names) == len(set(names))


def test_no_file_of_the_host_tells_of_other_users_or_of_its_network() -> None:
    plan = planned()
    for name in ("passwd", "group", "hosts", "hostname", "nsswitch.conf", "resolv.conf"):
        assert [type(mount) for mount in at(plan, f"/etc/{name}")] == [Text], name
    for name in ("shadow", "sudoers", "machine-id", "ssh"):
        assert not at(plan, f"/etc/{name}")


def test_links_of_the_top_level_are_made_again_and_split_systems_have_none() -> None:
    assert at(planned(), "/lib") == [Link("/lib", "usr/lib")]
    split = SYSTEM.replace(directories=("/usr/lib", "/lib"), links=(), empty=("/bin", "/sbin"))
    plan = planned(facts=FULL.replace(system=split))
    assert at(plan, "/lib") == [Bind("/lib", "/lib", why="system")]
    assert not at(plan, "/bin")


def test_temporary_directories_are_private() -> None:
    plan = planned()
    for path in ("/tmp", "/var/tmp", "/dev/shm"):
        assert at(plan, path) == [Scratch(path, 0o1777)]


# -- time ------------------------------------------------------------------------------------------------


def test_without_tz_localtime_is_the_hosts() -> None:
    (bind,) = at(planned(), "/etc/localtime")
    assert isinstance(bind, Bind)
    assert bind.source == "/usr/share/zoneinfo/Etc/UTC"


@pytest.mark.parametrize("value", ["Europe/Berlin", ":Europe/Berlin"])
def test_tz_and_localtime_agree(value: str) -> None:
    plan = planned(facts=FULL.replace(terminal=(("TZ", value),)))
    assert at(plan, "/etc/localtime") == [Link("/etc/localtime", "/usr/share/zoneinfo/Europe/Berlin")]
    assert dict(plan.environment)["TZ"] == value


def test_the_contracts_tz_wins_over_the_callers() -> None:
    plan = planned(facts=FULL.replace(terminal=(("TZ", "Asia/Tokyo"), ("TZ", "UTC"))))
    assert at(plan, "/etc/localtime") == [Link("/etc/localtime", "/usr/share/zoneinfo/UTC")]
    assert dict(plan.environment)["TZ"] == "UTC"


@pytest.mark.parametrize("value", ["/etc/shadow", "../../../etc/shadow", ""])
def test_tz_leads_nowhere_but_into_the_zones(value: str) -> None:
    (bind,) = at(planned(facts=FULL.replace(terminal=(("TZ", value),))), "/etc/localtime")
    assert isinstance(bind, Bind)


# -- secrets and the guard -------------------------------------------------------------------------------


def test_variables_delivered_as_files_are_staged_behind_the_file_grants() -> None:
    env = (
        EnvGrant("HOST"),
        EnvGrant("CERT", "file:///c", deliver="file"),
        EnvGrant("KEY", "vault://k", deliver="file"),
    )
    contract, facts = granting(FileGrant("/data/a"), env=env)
    assert delivered(contract) == {"CERT": (1, "/run/secrets/CERT"), "KEY": (2, "/run/secrets/KEY")}
    plan = planned(contract, facts)
    assert at(plan, "/run/secrets/KEY") == [Staged("/run/secrets/KEY", 2, why="env: KEY")]
    assert not at(plan, "/run/secrets/HOST")


def test_numbers_of_staged_files_are_the_same_in_both_tiers() -> None:
    contract = Contract(files=(FileGrant("/data/a"),), env=(EnvGrant("CERT", deliver="file"),))
    assert delivered(contract, "/tmp/reach-run-0") == {"CERT": (1, "/tmp/reach-run-0/staged-1")}


def test_the_guard_lies_in_a_place_of_its_own() -> None:
    plan = planned(facts=FULL.replace(guard_files=(("sitecustomize.py", b"x"), ("agent_reach/wire/frames.py", b"y"))))
    assert at(plan, f"{GUARD}/sitecustomize.py") == [Text(f"{GUARD}/sitecustomize.py", b"x")]
    assert at(plan, f"{GUARD}/agent_reach/wire/frames.py")
    assert plan.program.guard == GUARD
    assert planned().program.guard == ""
