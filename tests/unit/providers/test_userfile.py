"""``~/.reach/providers.py``: beats the built-ins, in a process of its own, and cannot be planted by others."""

from __future__ import annotations

import os
import sys
import textwrap
import time

import pytest

from agent_reach.contract.model import EnvGrant
from agent_reach.errors import ProviderError
from agent_reach.providers.config import UserConfig
from agent_reach.providers.resolve import resolve_env


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    (home / ".reach").mkdir(parents=True, mode=0o755)
    return home


@pytest.fixture
def resolve(home):
    def call(source, env=None, config=None, **sources):
        path = home / ".reach" / "providers.py"
        path.write_text(textwrap.dedent(source))
        path.chmod(0o600)
        grants = tuple(EnvGrant(name, source=uri, required=True) for name, uri in sources.items())
        return resolve_env(
            grants,
            caller_env={"PATH": os.environ["PATH"], **(env or {})},
            home=str(home),
            contract_dir=str(home),
            user_config=config,
        ).values

    return call


def problem(resolve, source, **more):
    with pytest.raises(ProviderError) as caught:
        resolve(source, **more)
    (only,) = caught.value.problems
    return only


SEED = """\
import fakehvac  # stands for HashiCorp's client
client = fakehvac.Client(url="https://vault.internal", token=os.getenv("VAULT_TOKEN"))
def vault_provider(path):
    return client.read(path)["data"]["data"]["value"]
"""


def test_the_seed_s_form_with_a_client_and_without_an_import_of_os(resolve, home):
    (home / ".reach" / "fakehvac.py").write_text(
        "class Client:\n"
        "    def __init__(self, url, token): self.token = token\n"
        "    def read(self, path): return {'data': {'data': {'value': f'{path} with {self.token}'}}}\n"
    )
    values = resolve(SEED, env={"VAULT_TOKEN": "t"}, DB_HOST="vault://prod/user-sync/db-host")
    assert values == {"DB_HOST": "prod/user-sync/db-host with t"}


def test_beats_a_built_in_and_leaves_the_others(resolve):
    source = "def env_provider(path):\n    return 'mine ' + path\n"
    assert resolve(source, A="env://PATH") == {"A": "mine PATH"}
    source = "def other_provider(path):\n    return 'mine'\n"
    assert resolve(source, env={"X": "caller"}, A="env://X", B="other://y") == {"A": "caller", "B": "mine"}


def test_a_comment_or_an_inner_name_defines_nothing(resolve):
    source = "# env_provider\nclass A:\n    def env_provider(path): pass\ndef my_env_provider(path): pass\n"
    assert resolve(source, env={"X": "caller"}, A="env://X") == {"A": "caller"}


def test_other_ways_to_define(resolve):
    assert resolve("kms_provider = lambda path: path\n", A="kms://x") == {"A": "x"}
    assert resolve("from os.path import basename as aws_sm_provider\n", A="aws-sm://x/y") == {"A": "y"}


def test_mappings_fields_numbers_bytes_and_options(resolve):
    source = """
        calls = 0
        def kms_provider(path):
            global calls
            calls += 1
            return {"user": "u", "port": 5432, "none": None, "calls": calls, "bad": [1], "path": path}
        def raw_provider(path):
            return b"bytes"
    """
    uris = {"U": "kms://db?v=2#user", "P": "kms://db?v=2#port", "C": "kms://db?v=2#calls", "A": "kms://db?v=2#path"}
    assert resolve(source, R="raw://x", **uris) == {"R": "bytes", "U": "u", "P": "5432", "C": "1", "A": "db?v=2"}
    assert "is null" in problem(resolve, source, X="kms://db#none")
    assert "is a list or an object" in problem(resolve, source, X="kms://db#bad")
    assert "holds keys `bad`, `calls`" in problem(resolve, source, X="kms://db")


def test_none_is_not_found(resolve, home):
    text = problem(resolve, "def kms_provider(path): return None\n", X="kms://a")
    assert text == (
        "Missing required environment variable X from kms://a: "
        f"kms_provider in {home}/.reach/providers.py returned None"
    )


def test_an_exception_shows_type_line_and_first_line_without_values(resolve, home):
    source = """
        def good_provider(path):
            return "s3cret-from-good"
        def kms_provider(path):
            token = os.environ["VAULT_TOKEN"]
            raise PermissionError(f"no access with {token} and s3cret-from-good\\nsecond \\x1b[31m line")
    """
    text = problem(resolve, source, env={"VAULT_TOKEN": "hvs.CAESI"}, G="good://x", X="kms://a")
    assert text == (
        "Missing required environment variable X from kms://a: "
        f"kms_provider in {home}/.reach/providers.py: "
        "PermissionError: no access with [removed] and [removed] (line 6)"
    )


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nothing_of_that_name\nkms_provider = 1\n", "ModuleNotFoundError"),
        ("def kms_provider(path)\n", "SyntaxError"),
        ("kms_provider = 1\n", "defines no function of that name"),
        ("raise SystemExit(3)\nkms_provider = 1\n", "SystemExit: 3"),
        ("def kms_provider(path): os._exit(7)\n", "ended with status 7 and without an answer"),
        ("def kms_provider(path): return 5\n", "answered neither text nor a mapping"),
        ("def kms_provider(path): return b'\\xff'\n", "UnicodeDecodeError"),
    ],
)
def test_failures_are_named(resolve, source, reason):
    assert reason in problem(resolve, source, X="kms://a")


def test_what_it_prints_is_no_answer(resolve, capfd):
    source = "print('noise', flush=True)\ndef kms_provider(path):\n    os.write(1, b'more'); return 'v'\n"
    assert resolve(source, X="kms://a") == {"X": "v"}
    out, err = capfd.readouterr()
    assert out == ""
    assert "noise" in err


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


def test_it_is_stopped_after_its_limit_with_all_it_started(resolve, home, monkeypatch):
    monkeypatch.setattr("agent_reach.providers.userfile.SECONDS", 3)
    source = """
        import subprocess
        def kms_provider(path):
            child = subprocess.Popen(["sleep", "300"])
            open(path, "w").write(str(child.pid))
            child.wait()
    """
    assert "no answer within 3 s" in problem(resolve, source, X=f"kms://{home}/pid")
    pid = int((home / "pid").read_text())
    deadline = time.monotonic() + 10  # a signal takes effect when the process is scheduled next
    while state_of(pid) not in ("Z", "X", "gone"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_answer_without_end_is_cut_off(resolve, monkeypatch):
    monkeypatch.setattr("agent_reach.providers.userfile.MAX_ANSWER", 100_000)
    assert "longer than 100000 bytes" in problem(resolve, "def kms_provider(path): return 'x' * 200_000\n", X="kms://a")


def test_the_interpreter_that_the_user_names(resolve, home):
    wrapper = home / "python"
    wrapper.write_text(f'#!/bin/sh\nexport WRAPPED=yes\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o700)
    source = "def kms_provider(path): return os.environ.get('WRAPPED', 'no')\n"
    assert resolve(source, X="kms://a") == {"X": "no"}
    assert resolve(source, config=UserConfig(python=str(wrapper)), X="kms://a") == {"X": "yes"}
    config = home / ".config" / "reach" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("providers:\n  python: ~/python\n")
    config.chmod(0o600)
    assert resolve(source, X="kms://a") == {"X": "yes"}
    assert "cannot start /nowhere" in problem(resolve, source, config=UserConfig(python="/nowhere"), X="kms://a")


def test_modules_of_the_project_and_of_pythonpath_are_not_imported(resolve, tmp_path, monkeypatch):
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "wave.py").write_text("EVIL = True\n")
    monkeypatch.chdir(tmp_path / "evil")
    source = "import wave, keyword\ndef kms_provider(path): return str(hasattr(wave, 'EVIL'))\n"
    assert resolve(source, env={"PYTHONPATH": str(tmp_path / "evil")}, X="kms://a") == {"X": "False"}


@pytest.mark.parametrize("mode", [0o622, 0o620, 0o602])
def test_a_file_that_others_can_write_is_not_run(resolve, home, mode):
    resolve("def kms_provider(path): return 'v'\n", X="kms://a")
    (home / ".reach" / "providers.py").chmod(mode)
    with pytest.raises(ProviderError, match="can be written by others; chmod go-w"):
        resolve_env((EnvGrant("X", source="kms://a"),), caller_env={}, home=str(home), contract_dir="/")


def test_a_folder_that_others_can_write_is_not_used(resolve, home):
    (home / ".reach").chmod(0o777)
    assert "can be written by others" in problem(resolve, "def kms_provider(path): return 'v'\n", X="kms://a")


@pytest.mark.root
def test_a_file_of_another_user_is_not_run(resolve, home):
    resolve("def kms_provider(path): return 'v'\n", X="kms://a")
    os.chown(home / ".reach" / "providers.py", 4242, 4242)
    with pytest.raises(ProviderError, match="belongs to uid 4242"):
        resolve_env((EnvGrant("X", source="kms://a"),), caller_env={}, home=str(home), contract_dir="/")
