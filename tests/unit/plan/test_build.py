"""A plan from contract and facts: program, environment, limits, remarks, and what Landlock is told."""

from __future__ import annotations

import pytest

from agent_reach.contract.model import Contract, EnvGrant, FileGrant, Limit, NetRule, Options, Origin, Sandbox
from agent_reach.host.model import CommandFact, ProjectFact
from agent_reach.plan.facts import Invocation
from agent_reach.plan.model import Bind, Wanted
from unit.plan.support import ALICE, FULL, PYTHON, REDUCED, at, granting, planned

ALWAYS = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "PYTHONUTF8"}


@pytest.mark.parametrize(
    ("kind", "target", "options"),
    [
        ("script", "jobs/job.py", ("jobs/job.py",)),
        ("module", "json.tool", ("-m", "json.tool")),
        ("code", "print(1)", ("-c", "print(1)")),
        ("stdin", "-", ("-",)),
    ],
)
def test_the_interpreter_is_started_as_in_a_bare_run(kind: str, target: str, options: tuple[str, ...]) -> None:
    program = planned(invocation=Invocation(kind, target, ("--fast", "x"))).program
    assert program.executable == "/usr/bin/python3"
    assert program.argv == ("/usr/bin/python3", *options, "--fast", "x")
    assert program.cwd == "/srv/job"


def test_a_command_is_started_by_the_path_that_was_found_under_the_name_that_was_typed() -> None:
    facts = FULL.replace(commands=(CommandFact("git", "/usr/bin/git"),))
    program = planned(facts=facts, invocation=Invocation("command", "git", ("status",))).program
    assert (program.executable, program.argv) == ("/usr/bin/git", ("git", "status"))


def test_the_environment_holds_harmless_names_alone() -> None:
    contract = Contract(env=(EnvGrant("DB_PASS", default="hunter2"), EnvGrant("AWS_KEY")))
    environment = dict(planned(contract).environment)
    assert set(environment) == ALWAYS
    assert environment["HOME"] == "/home/alice"
    assert (environment["USER"], environment["LOGNAME"]) == ("alice", "alice")
    assert "hunter2" not in "".join(environment.values())


def test_names_of_the_terminal_come_with_the_callers_values() -> None:
    environment = dict(planned(facts=FULL.replace(terminal=(("TERM", "xterm"), ("NO_COLOR", "1")))).environment)
    assert (environment["TERM"], environment["NO_COLOR"]) == ("xterm", "1")


def test_path_leads_to_the_interpreter_and_to_granted_commands() -> None:
    facts = FULL.replace(
        interpreter=PYTHON.replace(executable="/srv/job/.venv/bin/python", prefix="/srv/job/.venv"),
        commands=(CommandFact("tool", "/opt/tool/bin/tool", (), ("/opt/more",)), CommandFact("nope")),
    )
    path = dict(planned(facts=facts).environment)["PATH"].split(":")
    assert path[0] == "/srv/job/.venv/bin"
    assert {"/opt/tool/bin", "/opt/more", "/usr/bin", "/bin"} <= set(path)
    assert all(directory.startswith("/") for directory in path)
    assert len(path) == len(set(path))


def test_thread_variables_follow_the_processors() -> None:
    environment = dict(planned(Contract(limits=(("cpus", Limit(2.0)),))).environment)
    assert environment["OMP_NUM_THREADS"] == environment["MKL_NUM_THREADS"] == "2"
    assert dict(planned(Contract(limits=(("cpus", Limit(0.2)),))).environment)["OMP_NUM_THREADS"] == "1"
    assert "OMP_NUM_THREADS" not in dict(planned().environment)


def test_disable_pycache_reaches_the_interpreter() -> None:
    assert dict(planned(Contract(options=Options(disable_pycache=True))).environment)["PYTHONDONTWRITEBYTECODE"] == "1"
    assert "PYTHONDONTWRITEBYTECODE" not in dict(planned().environment)


def test_limits_are_those_of_the_contract_and_one_of_every_run() -> None:
    origin = Origin("/srv/job/reach.yaml", 9)
    plan = planned(Contract(limits=(("wall", Limit(5.0, True, origin)),)))
    assert plan.limits == (Wanted("wall", 5.0, True, origin), Wanted("processes", 1024))
    plan = planned(Contract(limits=(("processes", Limit(4)),)))
    assert plan.limits == (Wanted("processes", 4),)


def test_scratch_has_a_size_and_inodes_in_proportion() -> None:
    assert planned().scratch == 1 << 30
    assert 1024 <= planned().scratch_inodes <= 1 << 18
    small = planned(Contract(limits=(("scratch", Limit(8 << 20)), ("scratch_inodes", Limit(7)))))
    assert (small.scratch, small.scratch_inodes) == (8 << 20, 7)
    assert planned(Contract(limits=(("scratch", Limit(4096)),))).scratch_inodes == 1024


def test_the_plan_carries_what_the_contract_says_elsewhere() -> None:
    rules = (NetRule("db.internal", 5432),)
    plan = planned(Contract(network=rules, options=Options(on_denial="kill"), sandbox=Sandbox("full")))
    assert (plan.network, plan.on_denial, plan.umask, plan.landlock) == (rules, "kill", 0o27, 6)
    assert plan.private == ""


# -- project ---------------------------------------------------------------------------------------------


def test_the_project_is_shown_read_only() -> None:
    assert at(planned(), "/srv/job") == [Bind("/srv/job", "/srv/job", why="project")]


def test_without_a_project_the_files_beside_the_script_are_shown() -> None:
    facts = FULL.replace(project=ProjectFact(files=("/tmp/job.py", "/tmp/helpers/")))
    plan = planned(facts=facts)
    assert at(plan, "/tmp/job.py") == [Bind("/tmp/job.py", "/tmp/job.py", directory=False, why="project")]
    assert at(plan, "/tmp/helpers") == [Bind("/tmp/helpers", "/tmp/helpers", why="project")]
    assert not at(plan, "/srv/job")


# -- Landlock --------------------------------------------------------------------------------------------


def test_what_is_granted_for_writing_is_writable_and_the_private_places_are() -> None:
    plan = planned(*granting(FileGrant("/data", "rw", directory=True), FileGrant("/docs", "r", directory=True)))
    assert plan.writable == ("/data", "/home/alice", "/tmp", "/var/tmp", "/dev", "/proc")


def test_everything_shown_can_be_read_as_long_as_no_grant_is_for_writing_alone() -> None:
    assert planned(*granting(FileGrant("/data", "rw", directory=True))).readable == ("/",)


@pytest.mark.parametrize("mode", ["w", "a", "ab"])
def test_a_grant_for_writing_alone_is_not_readable(mode: str) -> None:
    plan = planned(*granting(FileGrant("/data/out", mode, directory=True), FileGrant("/data/in", "r", directory=True)))
    above = {"/", "/data", "/data/out"}
    assert not above & set(plan.readable)
    assert {"/data/in", "/usr", "/etc", "/dev", "/proc", "/srv", "/home", "/tmp"} <= set(plan.readable)
    assert "/data/out" in plan.writable


@pytest.mark.parametrize(
    ("path", "above"),
    [("/srv/job/out", "/srv/job"), ("/home/alice/out", "/home/alice"), ("/tmp/out", "/tmp"), ("/data/out", "")],
)
def test_a_grant_for_writing_alone_in_a_place_that_is_read_is_reported(path: str, above: str) -> None:
    plan = planned(*granting(FileGrant(path, "w", directory=True)))
    remark = f"files: {path} (w): can be read as well, like everything in {above}"
    assert (remark in plan.notes) == bool(above)
    assert any("can be read as well" in note for note in plan.notes) == bool(above)


def test_a_grant_for_writing_alone_in_one_for_reading_is_reported() -> None:
    grants = FileGrant("/data", "r", directory=True), FileGrant("/data/out", "w", directory=True)
    for facts in (FULL, REDUCED):
        assert any(
            "/data/out (w): can be read as well" in note for note in planned(*granting(*grants, facts=facts)).notes
        )
    assert not any("as well" in note for note in planned(*granting(FileGrant("/data", "rw", directory=True))).notes)


# -- remarks ---------------------------------------------------------------------------------------------


def test_the_interpreter_is_reported_with_the_reason() -> None:
    assert planned().notes == ("interpreter /usr/bin/python3 (PATH)",)


def test_what_is_less_than_it_seems_is_reported() -> None:
    contract, facts = granting(
        FileGrant("/data/log", "a"), network=(NetRule("x", 443, "https"),), notes=("profile from REACH_ENV",)
    )
    notes = planned(contract, facts.replace(python_path=("/opt/x",), started_by_root=True, caller=ALICE)).notes
    assert notes[0] == "profile from REACH_ENV"
    text = "\n".join(notes)
    for words in ("https not checked", "append: held for Python code", "PYTHONPATH ignored", "started by root"):
        assert words in text, words


def test_a_pythonpath_that_is_honoured_is_no_remark() -> None:
    contract = Contract(options=Options(context_isolation=False))
    assert not any("PYTHONPATH" in note for note in planned(contract, FULL.replace(python_path=("/opt/x",))).notes)


def test_the_reduced_tier_mounts_nothing() -> None:
    plan = planned(facts=REDUCED)
    assert (plan.tier, plan.mounts, plan.private) == ("reduced", (), REDUCED.private)
