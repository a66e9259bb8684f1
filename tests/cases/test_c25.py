"""C25: required, optional, default, empty and misspelt secrets.

The case's server is `kv2_server.Kv2Server`, with the same secrets, on a free port in place of 18200.
"""

from __future__ import annotations

import json
import time

import pytest

from kv2_server import Kv2Server

SECRET, TOKEN = "hunter2-case25", "case-token"
GOOD = {
    "BLANK_ALLOWED": "",
    "CASE_REGION": None,
    "DB_PASSWORD": SECRET,
    "DB_PORT": "5432",
    "LOG_LEVEL": "info",
    "OPTIONAL_TOKEN": None,
    "REGION": "us",
    "VAULT_TOKEN": None,
}


@pytest.fixture
def vault():
    with Kv2Server() as server:
        yield server


@pytest.fixture
def run_input(case, run_full):
    """Run the case's script: a function of (address, options of reach, environment); `ran` says whether it did."""

    def run(address, options=(), **environ):
        here = case("C25")
        absent = dict.fromkeys(("CASE_NOT_THERE", "CASE_LOG_LEVEL", "VAULT_NAMESPACE"))
        environ = {"VAULT_ADDR": address, "VAULT_TOKEN": TOKEN, "CASE_REGION": "us"} | environ
        done = run_full(["run", *options, "input.py"], cwd=here, env=absent | environ)
        done.ran = (here / "out/ran.txt").exists()
        return done

    return run


@pytest.fixture
def bad(vault, run_input):
    return run_input(vault.address, ["--contract", "reach-bad.yaml"], CASE_BLANK="")


def problems(done):
    """Return the lines of the report, by name."""
    start = "Missing required environment variable "
    assert done.result["error"]["code"] == "provider"
    for problem in done.result["error"]["problems"]:
        assert problem.startswith(start)
        assert f"reach: {problem}\n" in done.stderr
    return {problem.removeprefix(start).split()[0]: problem for problem in done.result["error"]["problems"]}


def test_row_1_the_good_contract(vault, run_input):
    done = run_input(vault.address)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == json.dumps(GOOD, sort_keys=True) + "\n"
    assert done.ran


def test_row_2_one_read_for_three_keys(vault, run_input):
    assert run_input(vault.address).returncode == 0
    assert vault.requests == ["GET /v1/secret/data/app/db"]


def test_row_3_a_variable_that_is_set_but_empty_has_its_default(vault, run_input):
    # CONTRACT section 5: "Empty counts as missing unless `allow_empty`".
    done = run_input(vault.address, CASE_LOG_LEVEL="")
    assert json.loads(done.stdout) == GOOD


def test_row_3_a_variable_that_is_set_has_its_value(vault, run_input):
    done = run_input(vault.address, CASE_LOG_LEVEL="debug")
    assert json.loads(done.stdout) == GOOD | {"LOG_LEVEL": "debug"}


def test_row_4_the_bad_contract_is_a_secret_error_and_nothing_runs(bad):
    assert (bad.returncode, bad.stdout, bad.ran) == (125, "", False)
    assert bad.result["error"]["code"] == "provider"
    assert "Traceback" not in bad.stderr


def test_row_5_one_report_names_all_eight(bad):
    assert list(problems(bad)) == [
        "A_UNSET",
        "B_BLANK",
        "C_TYPO",
        "D_NULL",
        "E_NOPATH",
        "F_DELETED",
        "G_FORBIDDEN",
        "H_NOFILE",
    ]
    assert len(bad.stderr.splitlines()) == 8


def test_row_5_each_with_its_own_reason(bad):
    reasons = {
        "A_UNSET": ["env://CASE_NOT_THERE", "CASE_NOT_THERE is not set"],
        "B_BLANK": ["env://CASE_BLANK", "set but empty"],
        "C_TYPO": ["no key `passsword` at `secret/app/db`", "it has `password`"],
        "D_NULL": ["`nothing`", "null"],
        "E_NOPATH": ["secret/app/dbb", "404"],
        "F_DELETED": ["secret/app/gone", "deleted"],
        "G_FORBIDDEN": ["secret/app/forbidden", "permission denied"],
        "H_NOFILE": ["no such file", "/C25/secrets/none"],
    }
    found = problems(bad)
    assert [word for name, words in reasons.items() for word in words if word not in found[name]] == []


def test_row_6_no_value_and_no_token_in_the_output(bad):
    for text in (bad.stdout, bad.stderr, json.dumps(bad.result)):
        assert SECRET not in text
        assert TOKEN not in text


def test_row_7_a_vault_that_is_not_running(vault, run_input):
    with Kv2Server() as server:
        gone = server.address
    start = time.monotonic()
    done = run_input(gone)
    assert time.monotonic() - start < 10
    assert (done.returncode, done.stdout, done.ran) == (125, "", False)
    assert list(problems(done)) == ["DB_PASSWORD", "DB_PORT", "BLANK_ALLOWED"]
    for problem in problems(done).values():
        assert f"VAULT_ADDR {gone}" in problem
        assert "Connection refused" in problem


def test_row_7_a_wrong_token_is_denied_not_unknown(vault, run_input):
    done = run_input(vault.address, VAULT_TOKEN="wrong-token")
    assert (done.returncode, done.stdout, done.ran) == (125, "", False)
    for problem in problems(done).values():
        assert "permission denied" in problem
        assert "not found" not in problem
    assert "wrong-token" not in done.stderr


def test_the_server_is_there_for_reach_and_not_for_the_script(vault, case, run_full):
    # "It must be reachable for reach, not for the script": the same address, from inside.
    here = case("C25")
    host, port = vault.http.server_address
    (here / "input.py").write_text(
        f"import socket\ntry:\n    socket.create_connection(({host!r}, {port}), 5)\n    print('reached')\n"
        "except OSError as error:\n    print(type(error).__name__)\n"
    )
    environ = {"VAULT_ADDR": vault.address, "VAULT_TOKEN": TOKEN, "CASE_REGION": "us"}
    done = run_full(["run", "input.py"], cwd=here, env=environ)
    assert (done.returncode, done.stdout) == (0, "ConnectionRefusedError\n")
    assert vault.requests == ["GET /v1/secret/data/app/db"]
