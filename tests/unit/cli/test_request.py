"""From words to a request, and the checks before anything is built."""

from __future__ import annotations

import os

import pytest

from agent_reach.cli import request
from agent_reach.cli.commands import RUN, find
from agent_reach.cli.failures import NotRunnable
from agent_reach.cli.options import UsageError, parse
from agent_reach.errors import ContractError


def made(*words: str, command: str = "run"):
    found = find(command)
    assert found is not None
    return request.make(parse(found, words))


@pytest.mark.parametrize(
    ("words", "kind", "target", "arguments"),
    [
        (["a.py", "x"], "script", "a.py", ("x",)),
        (["--", "a.py", "x"], "script", "a.py", ("x",)),
        (["-m", "mod", "x"], "module", "mod", ("x",)),
        (["-c", "code", "x"], "code", "code", ("x",)),
        (["-", "x"], "stdin", "-", ("x",)),
        (["--stdin"], "stdin", "-", ()),
    ],
)
def test_kinds_of_program(words, kind, target, arguments) -> None:
    asked = made(*words)
    assert (asked.kind, asked.target, asked.arguments) == (kind, target, arguments)


def test_a_command_and_a_script_of_exec() -> None:
    assert made("--", "git", "x", command="exec").kind == "command"
    assert made("git", "x", command="exec").kind == "command"
    assert made("--script", "a.py", "x", command="exec").kind == "script"


def test_every_option_reaches_the_request() -> None:
    asked = made(
        *(
            "--contract",
            "c.yaml",
            "--env",
            "dev",
            "--target",
            "t",
            "--target",
            "u",
            "--python",
            "py",
            "--minimum",
            "full",
        ),
        *("--read", "r", "--write", "w", "--net", "h:1", "--pass", "P", "--command", "git", "--limit", "wall=1s"),
        *("--no-cache", "--no-record", "a.py"),
    )
    assert (asked.contract, asked.profile, asked.targets, asked.python) == ("c.yaml", "dev", ("t", "u"), "py")
    assert (asked.read, asked.write, asked.net, asked.passes) == (("r",), ("w",), ("h:1",), ("P",))
    assert (asked.commands, asked.limits, asked.minimum) == (("git",), ("wall=1s",), "full")
    assert (asked.use_cache, asked.use_record) == (False, False)
    plain = made("a.py")
    assert (plain.profile, plain.contract_data, plain.use_cache, plain.use_record) == (None, None, True, True)


def pipe_with(data: bytes) -> int:
    read, write = os.pipe()
    with open(write, "wb") as stream:
        stream.write(data)
    return read


def test_code_and_contract_come_from_descriptors() -> None:
    code, contract = pipe_with(b"print(1)\n"), pipe_with(b'version: "1"\n')
    asked = made("--contract", f"fd:{contract}", "--code-fd", str(code), "x")
    assert (asked.kind, asked.target, asked.arguments) == ("code", "print(1)\n", ("x",))
    assert (asked.contract, asked.contract_data) == (f"fd:{contract}", b'version: "1"\n')
    os.close(code)
    os.close(contract)


def test_code_that_the_kernel_would_not_take_is_refused(tmp_path) -> None:
    path = tmp_path / "code"
    path.write_bytes(b"#" * request.MOST_CODE)
    with open(path, "rb") as stream:
        assert len(made("--code-fd", str(stream.fileno())).target) == request.MOST_CODE
    path.write_bytes(b"#" * (request.MOST_CODE + 1))
    with open(path, "rb") as stream, pytest.raises(UsageError, match="is larger than 127 KiB"):
        made("--code-fd", str(stream.fileno()))
    path.write_bytes(b"a\0b")
    with open(path, "rb") as stream, pytest.raises(UsageError, match="NUL"):
        made("--code-fd", str(stream.fileno()))


@pytest.mark.parametrize(
    "option",
    ["--read x", "--write x", "--net h:1", "--pass X", "--command x", "--limit wall=1s", "--minimum reduced", "--save"],
)
def test_locked_refuses_what_the_contract_does_not_say(option) -> None:
    made(*option.split(), "a.py")
    with pytest.raises(ContractError, match="is refused under --locked"):
        made("--locked", *option.split(), "a.py")


def test_locked_allows_choosing_within_the_contract() -> None:
    assert made("--locked", "--env", "prod", "--target", "t", "a.py").profile == "prod"


def test_audit_is_known_and_not_there_yet() -> None:
    with pytest.raises(ContractError, match="E_NOT_YET"):
        made("--audit", "a.py")


@pytest.mark.parametrize("name", ["reach.yaml", "x.reach.yaml", "c.yml"])
def test_a_command_that_runs_nothing_takes_a_contract_for_its_word(name) -> None:
    asked = request.for_contract(parse(find("check"), [name]))
    assert (asked.contract, asked.target) == (name, "")
    with pytest.raises(NotRunnable):
        request.for_contract(parse(find("check"), ["missing.py"]))


def test_scripts_that_cannot_be_run(tmp_path) -> None:
    script = tmp_path / "a.py"
    with pytest.raises(NotRunnable, match="no such file") as caught:
        request.check_script(str(script))
    assert caught.value.status == 127
    script.write_text("")
    request.check_script(str(script))
    with pytest.raises(NotRunnable, match="directory without __main__") as caught:
        request.check_script(str(tmp_path))
    assert caught.value.status == 126
    (tmp_path / "__main__.py").write_text("")
    request.check_script(str(tmp_path))
    with pytest.raises(NotRunnable, match="no such file"):
        request.check_script(f"{script}/below")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(NotRunnable, match="is not a file") as caught:
        request.check_script(str(tmp_path / "fifo"))
    assert (caught.value.status, "--code-fd" in caught.value.hint) == (126, True)
    with pytest.raises(NotRunnable, match="cannot run"):
        request.check_script("a\0b")


def test_a_missing_script_may_have_been_a_command() -> None:
    with pytest.raises(NotRunnable) as caught:
        request.check_script("doctor")
    assert caught.value.hint == "did you mean `reach doctor`?"
    assert RUN.name == "run"
