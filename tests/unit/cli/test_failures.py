"""Each failure of reach in words, with its code and its status."""

from __future__ import annotations

import errno

import pytest

from agent_reach.cli import failures
from agent_reach.cli.failures import NotRunnable
from agent_reach.errors import (
    ContractError,
    Finding,
    ProviderError,
    ReachInternalError,
    SetupError,
    Unavailable,
)

FINDING = Finding("E_UNKNOWN_KEY", "`filez` is not a key here", "reach.yaml", 3, 5, "resources.filez", "did you mean?")
MISSING = "Missing required environment variable DB_PASS from vault://prod/user-sync/db-pass"


@pytest.mark.parametrize(
    ("error", "status", "code", "words"),
    [
        (
            ContractError((FINDING,)),
            125,
            "contract",
            (
                "reach: reach.yaml:3:5: `resources.filez`: `filez` is not a key here [E_UNKNOWN_KEY]\n"
                "       did you mean?\nreach: nothing ran"
            ),
        ),
        (
            ContractError((FINDING.replace(hint=""), FINDING.replace(line=4, hint=""))),
            125,
            "contract",
            (
                "reach: reach.yaml:3:5: `resources.filez`: `filez` is not a key here [E_UNKNOWN_KEY]\n"
                "reach: reach.yaml:4:5: `resources.filez`: `filez` is not a key here [E_UNKNOWN_KEY]\n"
                "reach: nothing ran: 2 findings"
            ),
        ),
        (ProviderError((MISSING, "Missing x")), 125, "provider", f"reach: {MISSING}\nreach: Missing x"),
        (
            Unavailable("tier `full`", needed="--minimum", found="EPERM", fix="sysctl"),
            125,
            "unavailable",
            (
                "reach: tier `full` is not available on this host\n"
                "       needed: --minimum\n       found:  EPERM\n       fix:    sysctl"
            ),
        ),
        (
            SetupError("mount proc", errno.EPERM),
            125,
            "setup",
            (
                "reach: set-up step `mount proc` failed: Operation not permitted (errno 1)\n"
                "       nothing ran; `reach doctor` tries each mechanism on this host"
            ),
        ),
        (
            SetupError("execute", errno.ENOEXEC, "/bin/j"),
            126,
            "setup",
            (
                "reach: cannot run /bin/j: Exec format error\n"
                "       a command needs a grant in resources.commands, and so does its interpreter"
            ),
        ),
        (
            SetupError("execute", errno.ENOENT, "/bin/j"),
            127,
            "setup",
            (
                "reach: cannot run /bin/j: it, or the interpreter in its first line, is not shown inside\n"
                "       a command needs a grant in resources.commands, and so does its interpreter"
            ),
        ),
        (
            ReachInternalError("lost"),
            125,
            "internal",
            (
                "reach: internal error: lost\n"
                "       this is a fault in reach, not in your program; "
                "report it with this text and `reach version --json`"
            ),
        ),
        (NotRunnable("cannot run x: no such file", 127), 127, "not_runnable", "reach: cannot run x: no such file"),
        (OSError(errno.ENOENT, "No such file", "/x"), 125, "internal", "reach: /x: No such file"),
    ],
)
def test_words_status_and_code(error, status, code, words) -> None:
    assert failures.words(error) == words
    assert failures.status_of(error) == status
    value = failures.as_json(error)
    assert value["code"] == code
    assert value["message"]


def int_of_nothing() -> None:
    raise RuntimeError("boom\nreach: forged")


def test_an_unexpected_exception_names_the_line_of_reach_that_raised_it() -> None:
    with pytest.raises(RuntimeError) as caught:
        int_of_nothing()
    words = failures.words(caught.value)
    first, second = words.split("\n")
    assert first.startswith("reach: internal error: RuntimeError: boom\\x0areach: forged (")
    assert "test_failures.py:" in first
    assert "report it" in second


def test_findings_are_machine_readable_too() -> None:
    value = failures.as_json(ContractError((FINDING,)))
    assert value["findings"] == [
        {
            "code": "E_UNKNOWN_KEY",
            "message": "`filez` is not a key here",
            "file": "reach.yaml",
            "line": 3,
            "column": 5,
            "key": "resources.filez",
            "hint": "did you mean?",
        }
    ]
