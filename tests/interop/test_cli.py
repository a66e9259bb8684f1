"""The installed `reach`, as a user meets it: status, streams, denials, results, signals."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time

import pytest

DENY = """\
import sys
def main():
    try:
        open("/etc/shadow")
    except PermissionError as error:
        print("refused:", error.errno)
main()
"""
CONTRACT = """\
version: "1"
profiles:
  prod:
    resources:
      files:
        - {path: data/, mode: rw}
      commands: [sh, no-such-command]
"""


@pytest.fixture
def project(tmp_path):
    """A directory with a script, a contract and a directory for data."""
    root = tmp_path / "project"
    (root / "data").mkdir(parents=True)
    (root / "job.py").write_text(DENY)
    (root / "reach.yaml").write_text(CONTRACT)
    return root


# -- the program's own ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 3, 123, 124, 125, 255])
def test_the_status_is_the_programs_own(code, run_reach) -> None:
    done = run_reach(["run", "-c", f"raise SystemExit({code})"])
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV])
def test_a_signal_is_128_and_its_number(number, run_reach, tmp_path) -> None:
    done = run_reach(["run", "--result", "r.json", "-c", f"import os; os.kill(os.getpid(), {int(number)})"])
    assert done.returncode == 128 + number
    value = json.loads((tmp_path / "r.json").read_text())
    assert (value["cause"], value["signal"]) == ("signalled", int(number))


def test_options_behind_the_script_are_the_scripts(run_reach, project) -> None:
    (project / "args.py").write_text("import sys; print(sys.argv)")
    done = run_reach(["run", "--env", "prod", "args.py", "-v", "--env", "x", "", "--", "ü"], cwd=project)
    assert (done.stdout, done.stderr) == ("['args.py', '-v', '--env', 'x', '', '--', 'ü']\n", "")


def test_modules_code_and_standard_input(run_reach, project) -> None:
    (project / "tool.py").write_text("import sys; print(__name__, sys.argv[1:])")
    run = ["run", "--env", "prod"]
    assert run_reach([*run, "-m", "tool", "-x"], cwd=project).stdout == "__main__ ['-x']\n"
    code = "import sys; print(sys.argv, sys.stdin.read())"
    assert run_reach([*run, "-c", code, "-x"], cwd=project, stdin="in").stdout == "['-c', '-x'] in\n"
    for word in ("-", "--stdin"):
        done = run_reach([*run, word, "-x"], cwd=project, stdin="import sys; print(sys.argv)")
        assert done.stdout == "['-', '-x']\n"


def with_descriptors(reach, reach_env, cwd, args, files, **options):
    """Run `reach` with further descriptors: {number: text}."""
    shell = "".join(f" {number}<{path}" for number, path in files.items())
    command = f'exec "$@"{shell}'
    return subprocess.run(
        ["sh", "-c", command, "sh", reach, *args],
        cwd=cwd,
        env=reach_env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def test_code_from_a_descriptor_leaves_standard_input_to_the_program(reach, reach_env, project) -> None:
    (project / "code").write_text("import sys\nprint(sys.stdin.read())\nopen('/etc/shadow')\n")
    args = ["run", "--env", "prod", "--code-fd", "4", "a"]
    done = with_descriptors(reach, reach_env, project, args, {4: "code"}, input="mine")
    assert done.stdout == "mine\n"
    assert "reach: denied open /etc/shadow  <code>:3\n" in done.stderr


def test_denials_of_standard_input_say_so(run_reach) -> None:
    done = run_reach(["run", "-"], stdin="\nopen('/etc/shadow')\n")
    assert "reach: denied open /etc/shadow  <stdin>:2\n" in done.stderr


def test_a_contract_from_a_descriptor(reach, reach_env, project) -> None:
    (project / "c").write_text('{version: "1", resources: {env: {A: "5"}}}')
    args = ["run", "--contract", "fd:3", "-c", "import os; print(os.environ['A'])"]
    done = with_descriptors(reach, reach_env, project, args, {3: "c"}, stdin=subprocess.DEVNULL)
    assert (done.stdout, done.stderr) == ("5\n", "")


# -- nothing to run ------------------------------------------------------------------------------------------


def test_a_script_that_is_missing_or_no_file(run_reach, tmp_path) -> None:
    done = run_reach(["run", "--result", "r.json", "nope.py"])
    assert (done.returncode, done.stderr) == (127, "reach: cannot run nope.py: no such file\n")
    assert json.loads((tmp_path / "r.json").read_text())["error"]["code"] == "not_runnable"
    assert run_reach(["run", "."]).returncode == 126


def test_a_script_that_cannot_be_read(reach, reach_env, as_user, tmp_path) -> None:
    if os.geteuid() == 0:
        return  # root reads everything; the same test runs as an ordinary user in CI's second half
    script = tmp_path / "secret.py"
    script.touch(mode=0o000)
    done = as_user([reach, "run", script], env=reach_env, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (126, f"reach: cannot run {script}: permission denied\n")


def test_a_wrong_contract_runs_nothing_and_shows_every_finding(run_reach, tmp_path) -> None:
    (tmp_path / "reach.yaml").write_text('version: "1"\nresources:\n  filez: []\n  commands: 3\n')
    done = run_reach(["run", "--result", "r.json", "-c", "print('ran')"])
    assert (done.returncode, done.stdout) == (125, "")
    lines = done.stderr.split("\n")
    assert lines[0].startswith("reach: reach.yaml:3:3: `resources.filez`: ")
    assert lines[1] == "       did you mean `files`?"
    assert lines[2].startswith("reach: reach.yaml:4:")
    error = json.loads((tmp_path / "r.json").read_text())["error"]
    assert error["code"] == "contract"
    assert [finding["line"] for finding in error["findings"]] == [3, 4]


def test_a_missing_secret_is_the_exact_sentence(run_reach, tmp_path) -> None:
    (tmp_path / "reach.yaml").write_text(
        'version: "1"\nresources:\n  env:\n    - {name: A_B, required: true}\n    - {name: C_D, source: "env://NOT_SET_X"}\n'
    )
    done = run_reach(["run", "--result", "r.json", "-c", "print('ran')"])
    assert (done.returncode, done.stdout) == (125, "")
    first, second, _ = done.stderr.split("\n")
    assert first.startswith("reach: Missing required environment variable A_B (not set by the caller)")
    assert second.startswith("reach: Missing required environment variable C_D from env://NOT_SET_X")
    assert json.loads((tmp_path / "r.json").read_text())["error"]["code"] == "provider"
    assert run_reach(["run", "-c", "print('ran')"], env={"A_B": "1", "NOT_SET_X": "2"}).stdout == "ran\n"


def test_a_place_for_the_result_that_cannot_be_written(run_reach) -> None:
    done = run_reach(["run", "--result", "/nowhere/r.json", "-c", "print('ran')"])
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == "reach: /nowhere/r.json: No such file or directory\n"


# -- denials and results -------------------------------------------------------------------------------------


def test_a_denial_is_the_block_of_the_design(run_reach, project) -> None:
    done = run_reach(["run", "--env", "prod", "job.py"], cwd=project)
    assert (done.returncode, done.stdout) == (0, "refused: 13\n")
    assert done.stderr == (
        "reach: denied open /etc/shadow  job.py:4 in main\n"
        "       not in resources.files (reach.yaml:5, profile prod)\n"
        "       to allow it add:  - {path: /etc/shadow, mode: r}\n"
    )


def test_the_line_to_add_allows_it(run_reach, project) -> None:
    (project / "job.py").write_text("print(len(open('/etc/profile').read()) > 0)")
    refused = run_reach(["run", "--env", "prod", "job.py"], cwd=project)
    assert refused.returncode == 1
    (entry,) = re.findall(r"to allow it add:  (.*)\n", refused.stderr)
    (project / "reach.yaml").write_text(CONTRACT.replace("      files:\n", f"      files:\n        {entry}\n"))
    allowed = run_reach(["run", "--env", "prod", "job.py"], cwd=project)
    assert (allowed.returncode, allowed.stdout, allowed.stderr) == (0, "True\n", "")


def test_quiet_and_verbose(run_reach, project) -> None:
    quiet = run_reach(["run", "--env", "prod", "-q", "job.py"], cwd=project)
    assert (quiet.stdout, quiet.stderr) == ("refused: 13\n", "")
    verbose = run_reach(["run", "--env", "prod", "-v", "job.py"], cwd=project).stderr
    assert verbose.startswith("reach: denied open /etc/shadow  job.py:4 in main\n")
    assert "       contract reach.yaml, profile prod\n       tier " in verbose
    assert re.search(r"\n       undeclared files +enforced \(", verbose)


def test_twenty_blocks_and_then_the_record(run_reach, project) -> None:
    (project / "many.py").write_text(
        "for number in range(23):\n    try: open(f'/usr/lib/x{number}', 'w')\n    except OSError: pass\n"
    )
    done = run_reach(["run", "--env", "prod", "many.py"], cwd=project)
    assert done.stderr.count("reach: denied write") == 20
    (run,) = re.findall(r"reach: 3 more: reach log (\S+)\n$", done.stderr)
    details = run_reach(["log", run]).stdout
    assert details.count("\ndenied ") == 23


def test_a_hostile_name_stays_on_its_line(run_reach) -> None:
    name = "/usr/lib/\x1b[2J\nreach: all is well"
    done = run_reach(["run", "-q", "-c", f"open({name!r}, 'w')"])
    assert done.returncode == 1
    done = run_reach(["run", "-c", f"try: open({name!r}, 'w')\nexcept OSError: pass"])
    assert "\x1b" not in done.stderr
    assert done.stderr.startswith("reach: denied write /usr/lib/\\x1b[2J\\x0areach: all is well  <string>:1\n")


def test_the_result_names_what_happened(run_reach, project) -> None:
    run_reach(["run", "--env", "prod", "--result", "r.json", "job.py"], cwd=project)
    value = json.loads((project / "r.json").read_text())
    assert (value["exit_code"], value["cause"], value["error"]) == (0, "exited", None)
    assert value["denials"][0]["subject"] == "/etc/shadow"
    assert value["denials"][0]["place"]["line"] == 4
    assert value["receipt"]["tier"] in {"full", "reduced"}


def test_the_result_on_a_descriptor(run_reach) -> None:
    done = run_reach(["run", "--result", "fd:1", "-c", "pass"])
    assert json.loads(done.stdout)["cause"] == "exited"


def test_the_wall_limit_is_124(run_reach, tmp_path) -> None:
    done = run_reach(
        ["run", "--limit", "wall=300ms", "--result", "r.json", "-c", "import time; time.sleep(50)"], timeout=30
    )
    assert (done.returncode, done.stderr) == (124, "reach: limits.wall reached\n")
    value = json.loads((tmp_path / "r.json").read_text())
    assert (value["cause"], value["limit"]) == ("limit", "wall")


# -- exec, explain, check, save ------------------------------------------------------------------------------


def test_exec_runs_a_granted_command_and_no_other(run_reach, project) -> None:
    done = run_reach(["exec", "--env", "prod", "--", "sh", "-c", "echo $0; exit 3"], cwd=project)
    assert (done.returncode, done.stdout, done.stderr) == (3, "sh\n", "")
    done = run_reach(["exec", "--env", "prod", "--", "id"], cwd=project)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == (
        "reach: reach.yaml:7: the command `id` is not in resources.commands [E_NOT_GRANTED]\n"
        "       to allow it add:  - id   (for this run alone: --command id)\n"
        "reach: nothing ran\n"
    )
    assert run_reach(["exec", "--env", "prod", "--command", "id", "--", "id", "-u"], cwd=project).returncode == 0
    assert run_reach(["exec", "--env", "prod", "--", "no-such-command"], cwd=project).returncode == 127


def test_exec_of_a_script_and_of_the_interpreter(run_reach, project) -> None:
    assert run_reach(["exec", "--env", "prod", "--script", "./job.py"], cwd=project).stdout == "refused: 13\n"
    done = run_reach(["exec", "--env", "prod", "--", "python3", "-c", "print(6 * 7)"], cwd=project)
    assert (done.returncode, done.stdout) == (0, "42\n")


def test_explain_shows_the_plan_without_running(run_reach, project) -> None:
    (project / "job.py").write_text("raise SystemExit(9)")
    done = run_reach(["explain", "--env", "prod", "--net", "a.example:443", "job.py"], cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"  read, write   {project}/data/  (reach.yaml:6, prod)\n" in done.stdout
    assert "  tcp           a.example:443  (command line)\n" in done.stdout
    value = json.loads(run_reach(["explain", "--json", "--env", "prod", "job.py"], cwd=project).stdout)
    assert value["program"]["argv"][1:] == ["job.py"]
    assert run_reach(["explain", "--env", "nope", "job.py"], cwd=project).returncode == 2


def test_saved_grants_hold_without_the_option(run_reach, project, tmp_path) -> None:
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("here")
    wanted.chmod(0o644)
    (project / "job.py").write_text(f"print(open({str(wanted)!r}).read())")
    run = ["run", "--env", "prod"]
    first = run_reach([*run, "--read", wanted, "--save", "job.py"], cwd=project)
    assert (first.returncode, first.stdout) == (0, "here\n")
    assert "reach: saved into reach.yaml:  - {path: " in first.stderr
    second = run_reach([*run, "--locked", "job.py"], cwd=project)
    assert (second.returncode, second.stdout, second.stderr) == (0, "here\n", "")
    assert run_reach([*run, "--locked", "--read", wanted, "job.py"], cwd=project).returncode == 125


def test_doctor_agrees_with_the_receipt(run_reach, tmp_path) -> None:
    done = run_reach(["doctor", "--json"])
    value = json.loads(done.stdout)
    assert done.returncode == (0 if value["tier"] == "full" else 1)
    run_reach(["run", "--result", "r.json", "-c", "pass"])
    assert json.loads((tmp_path / "r.json").read_text())["receipt"]["tier"] == value["tier"]
    text = run_reach(["doctor"]).stdout
    assert all(check["name"] in text for check in value["checks"])
    assert f"\ntier {value['tier']}: " in text


def test_without_user_namespaces_one_line_says_so(reach, reach_env, as_user, tmp_path) -> None:
    # In a user namespace of its own, whose limit of further ones is 0.
    script = tmp_path / "hello.py"
    script.write_text("print('hello')")
    command = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    prefix = ["unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c", command, "sh"]
    probe = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False, timeout=20)
    if probe.returncode or os.geteuid() == 0:
        # unshare refused, or root: then the sandbox needs rights that this namespace does not have (tests/kernel).
        return
    quiet = subprocess.run(
        [*prefix, reach, "run", "-q", script], env=reach_env, capture_output=True, text=True, check=False
    )
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "hello\n", "")
    done = subprocess.run([*prefix, reach, "run", script], env=reach_env, capture_output=True, text=True, check=False)
    assert re.fullmatch(r"reach: tier reduced: user namespaces: .* \(`reach doctor` has the fix\)\n", done.stderr)


# -- the record ----------------------------------------------------------------------------------------------


def test_the_log_lists_shows_and_verifies(run_reach, project) -> None:
    run_reach(["run", "--env", "prod", "job.py"], cwd=project)
    run_reach(["run", "--env", "prod", "-c", "raise SystemExit(4)"], cwd=project)
    lines = run_reach(["log"], cwd=project).stdout.split("\n")[:-1]
    assert len(lines) == 2
    assert re.search(r"  exit 0 +1 denied +job.py \(prod\)$", lines[0])
    assert max(map(len, lines)) <= 80
    assert len(run_reach(["log", "-n", "1"]).stdout.split("\n")) == 2
    events = [json.loads(line) for line in run_reach(["log", "--json", "-n", "all"]).stdout.split("\n")[:-1]]
    assert [event["outcome"]["exit_code"] for event in events] == [0, 4]
    details = run_reach(["log", lines[0].split()[0]])
    assert (details.returncode, details.stderr) == (0, "")
    assert re.search(r"^denied +open /etc/shadow ", details.stdout, re.MULTILINE)
    verdict = run_reach(["log", "verify"])
    assert (verdict.returncode, verdict.stdout.startswith("2 records, the chain is whole")) == (0, True)
    assert run_reach(["log", "zzz"]).returncode == 1
    assert run_reach(["log", "-n", "0"]).returncode == 2


def test_no_record_leaves_none(run_reach) -> None:
    assert run_reach(["run", "--no-record", "-c", "pass"]).returncode == 0
    done = run_reach(["log"])
    assert (done.returncode, done.stdout) == (0, "")
    assert "no run is recorded" in done.stderr


# -- signals, pipes, terminals -------------------------------------------------------------------------------


def started(reach, reach_env, cwd, code):
    """Start a program that says when it is ready."""
    process = subprocess.Popen(
        [reach, "run", "-c", code],
        cwd=cwd,
        env=reach_env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


WAIT = "import time, signal, sys\nprint('ready', flush=True)\ntime.sleep(50)"
HANDLE = (
    "import time, signal, sys\nsignal.signal(2, lambda *_: sys.exit(5))\nprint('ready', flush=True)\ntime.sleep(50)"
)


@pytest.mark.parametrize(
    ("code", "number", "status"),
    [(WAIT, signal.SIGINT, 130), (HANDLE, signal.SIGINT, 5), (WAIT, signal.SIGTERM, 143)],
    ids=["interrupted", "handled", "terminated"],
)
def test_a_signal_to_reach_is_the_programs(code, number, status, reach, reach_env, tmp_path) -> None:
    process = started(reach, reach_env, tmp_path, code)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == status
    assert "agent_reach" not in err


def test_an_interrupt_before_the_start_is_130_without_a_word(reach_env, tmp_path) -> None:
    # Our own interpreter, interrupted where the plan is made: no pause of any length would hit that place.
    program = (
        "import os, signal, sys\nimport agent_reach.prepare as prepare\nfrom agent_reach.cli import main\n"
        "def interrupted(*_):\n    os.kill(os.getpid(), signal.SIGINT)\n    signal.pause()\n"
        "prepare.prepare = interrupted\nsys.exit(main(['run', '--result', 'r.json', '-c', 'print(1)']))\n"
    )
    import sys

    done = subprocess.run(
        [sys.executable, "-c", program],
        env=reach_env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    value = json.loads((tmp_path / "r.json").read_text())
    assert (value["exit_code"], value["error"]["code"]) == (130, "interrupted")


def test_a_reader_that_goes_away_is_no_traceback(reach, reach_env, tmp_path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [reach, "schema"],
            stdout=write,
            stderr=subprocess.PIPE,
            env=reach_env,
            cwd=tmp_path,
            timeout=30,
            check=False,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_the_caller_closed(closed, reach, reach_env, tmp_path) -> None:
    command = f'"$@" {closed}; echo $? > status'
    program = "import sys; sys.stdin.read(); print(1); print(2, file=sys.stderr); sys.exit(3)"
    subprocess.run(
        ["sh", "-c", command, "sh", reach, "run", "-c", program],
        env=reach_env,
        cwd=tmp_path,
        timeout=60,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert (tmp_path / "status").read_text() == "3\n"


def on_terminal(command, env, cwd, timeout=60.0) -> tuple[int, str]:
    """Run a command whose three streams are a terminal; return its status and everything that was shown."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execve(command[0], command, env)
    shown = b""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            part = os.read(master, 1 << 16)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


@pytest.mark.parametrize(
    ("changes", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, False)],
    ids=["xterm", "dumb", "NO_COLOR"],
)
def test_colour_on_a_terminal(changes, coloured, reach, reach_env, project) -> None:
    env = {name: value for name, value in reach_env.items() if name not in {"NO_COLOR", "FORCE_COLOR"}} | changes
    status, shown = on_terminal([reach, "run", "--env", "prod", "job.py"], env, str(project))
    assert status == 0
    assert ("\x1b[1;31mdenied\x1b[0m" in shown) is coloured
    assert "refused: 13\r\n" in shown


def test_every_line_on_a_terminal_starts_at_its_left_edge(reach, reach_env, project) -> None:
    env = reach_env | {"TERM": "dumb"}
    _, shown = on_terminal([reach, "run", "--env", "prod", "job.py"], env, str(project))
    assert "\n" not in shown.replace("\r\n", "")
    assert "reach: denied open /etc/shadow  job.py:4 in main\r\n       not in " in shown
