"""The small providers: files that are none, dotenv, cmd, keyring, entry points, configuration."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from agent_reach.contract.model import EnvGrant
from agent_reach.errors import ProviderError
from agent_reach.providers.config import UserConfig, load_user_config
from agent_reach.providers.dotenv import DotenvError, parse
from agent_reach.providers.resolve import resolve_env


@pytest.fixture
def value(tmp_path):
    """Resolve one URI to its value."""

    def call(uri, config=None, env=None):
        environment = {"PATH": "/usr/bin:/bin", **(env or {})}
        grants = (EnvGrant("X", source=uri, required=True),)
        home, base = str(tmp_path / "home"), str(tmp_path)
        return resolve_env(grants, caller_env=environment, home=home, contract_dir=base, user_config=config).values["X"]

    (tmp_path / "home").mkdir()
    return call


def reason(value, uri, **more):
    with pytest.raises(ProviderError) as caught:
        value(uri, **more)
    (problem,) = caught.value.problems
    head = f"Missing required environment variable X from {uri}: "
    assert problem.startswith(head)
    return problem.removeprefix(head)


# -- file ------------------------------------------------------------------------------------------------


def test_files_by_every_kind_of_path(value, tmp_path):
    (tmp_path / "s").write_text("rel\n")
    (tmp_path / "home" / "s").write_text("home\n")
    os.symlink("s", tmp_path / "link")
    assert value("file://s") == value("file://./s") == value(f"file://{tmp_path}/s") == value("file://link") == "rel"
    assert value("file://~/s") == "home"


def test_a_fifo_does_not_hang(value, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    assert reason(value, "file://fifo") == f"{tmp_path}/fifo: not a regular file"


def test_a_fifo_that_takes_the_place_of_a_file_does_not_hang(tmp_path):
    """The name changes hands between the look and the open."""
    from agent_reach.providers.faults import SourceError
    from agent_reach.providers.files import read_regular

    path, fifo, stop = tmp_path / "x", tmp_path / "fifo", threading.Event()
    os.mkfifo(fifo)
    path.write_text("ok")

    def swap():
        while not stop.is_set():
            for source in (fifo, tmp_path / "file"):
                (tmp_path / "file").write_text("ok")
                os.replace(os.link(source, tmp_path / "tmp") or tmp_path / "tmp", path)

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(300):
            try:
                seen.add(read_regular(str(path), 10))
            except SourceError as error:
                seen.add(str(error))
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"ok", b"", f"{path}: not a regular file"}


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/proc", "/"])
def test_devices_and_directories_are_no_files(value, path):
    assert reason(value, f"file://{path}") == f"{path}: not a regular file"


def test_a_file_of_proc_with_size_zero_is_read(value):
    assert value("file:///proc/sys/kernel/ostype") == "Linux"


def test_a_path_that_cannot_be_followed_is_not_a_missing_one(value, tmp_path):
    os.symlink("loop", tmp_path / "loop")
    assert reason(value, "file://loop") == f"{tmp_path}/loop: Too many levels of symbolic links"
    assert reason(value, "file://loops") == f"no such file: {tmp_path}/loops"


def test_a_name_with_an_escape_sequence_is_shown_harmless(value):
    assert "\x1b" not in reason(value, "file://a%1b[31m")


def test_long_files_are_refused(value, tmp_path):
    with open(tmp_path / "long", "wb") as file:
        file.truncate(17 * 1024 * 1024)
    assert "is longer than 16777216 bytes" in reason(value, "file://long")


# -- dotenv ----------------------------------------------------------------------------------------------


def test_dotenv_forms():
    text = (
        '\ufeff# comment\n\nA=1\nexport B = two words  # why\nC=\'lit $X ${Y} \\n\'\nD="a\\n\\"b\\" \\$"\n'
        'E=\nF=\'two\nlines\'\r\nG=a#b\nH = "x" # y\nA=last\nI="\\q"\n'
    ).removeprefix("\ufeff")
    assert parse(text) == {
        "A": "last", "B": "two words", "C": "lit $X ${Y} \\n", "D": 'a\n"b" $', "E": "", "F": "two\nlines",
        "G": "a#b", "H": "x", "I": "\\q",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("A", 1),
        ("A=1\n1B=2", 2),
        ("A='open\nmore", 1),
        ('A="a" b', 1),
        ("A=${B}", 1),
        ('A="x${B}"', 1),
        ("a-b=c", 1),
        ('A="\\', 1),
    ],
)
def test_dotenv_lines_that_tools_read_differently(text, line):
    with pytest.raises(DotenvError) as caught:
        parse(text)
    assert caught.value.line == line


def test_dotenv_reads_one_name(value, tmp_path):
    (tmp_path / ".env").write_text("A=1\nPASS='hunter2'\nEMPTY=\n")
    assert value("dotenv://.env#PASS") == "hunter2"
    assert reason(value, "dotenv://.env#PAS") == f"no key `PAS` at `{tmp_path}/.env`; it has `PASS`"
    assert reason(value, "dotenv://.env#EMPTY") == f"key `EMPTY` at `{tmp_path}/.env` is empty"
    assert reason(value, "dotenv://.env") == "dotenv:// names the variable behind #: dotenv://.env#NAME"
    (tmp_path / ".env").write_text("A=1\nhunter2 oops\n")
    assert reason(value, "dotenv://.env#A") == f"{tmp_path}/.env:2: this line is not NAME=value"


# -- cmd -------------------------------------------------------------------------------------------------

ALLOWED = UserConfig(allow_cmd=True)


def test_cmd_needs_the_user_s_permission(value, tmp_path):
    ran = tmp_path / "ran"
    assert "to allow it set providers.allow_cmd" in reason(value, f"cmd://touch {ran}")
    assert not ran.exists()
    assert value("cmd://echo hi", config=ALLOWED) == "hi"


def test_cmd_runs_without_a_shell(value, tmp_path):
    assert value(f"cmd://echo 'a  b' $HOME ; touch {tmp_path}/ran", config=ALLOWED).startswith("a  b $HOME ; touch")
    assert not (tmp_path / "ran").exists()


def test_cmd_drops_trailing_line_ends_only(value):
    assert value("cmd://printf ' a\\n b \\n\\n'", config=ALLOWED) == " a\n b "


def test_cmd_fields(value):
    assert value("""cmd://echo '{"password": "p", "n": 1}'#password""", config=ALLOWED) == "p"
    assert "is not a JSON object" in reason(value, "cmd://echo hunter2#password", config=ALLOWED)
    assert "hunter2" not in reason(value, "cmd://cat /etc/hostname#password", config=ALLOWED)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("false", "false ended with status 1"),
        ("sh -c 'kill -9 $$'", "sh was killed by signal 9"),
        ("no-such-program-here", "cannot start no-such-program-here: No such file or directory"),
        ("echo 'open", "the command line cannot be split: No closing quotation"),
        ("true", "true is empty"),
    ],
)
def test_cmd_failures(value, command, text):
    assert reason(value, f"cmd://{command}", config=ALLOWED) == text


def test_cmd_is_stopped(value, monkeypatch):
    monkeypatch.setattr("agent_reach.providers.cmd.SECONDS", 0.3)
    assert reason(value, "cmd://sleep 300", config=ALLOWED) == "no answer within 0.3 s"


def test_cmd_output_is_bounded(value, monkeypatch):
    monkeypatch.setattr("agent_reach.providers.cmd.MAX_ANSWER", 1000)
    assert "longer than 1000 bytes" in reason(value, "cmd://yes", config=ALLOWED)


# -- keyring and entry points ----------------------------------------------------------------------------


def test_keyring_by_the_package_s_interface(value, tmp_path, monkeypatch):
    """The `keyring` package is an extra; this module has the one function of it that reach calls."""
    (tmp_path / "keyring.py").write_text(
        "def get_password(service, user):\n"
        "    if service == 'broken': raise RuntimeError('hunter2')\n"
        "    return {('my/app', 'me'): 'pw'}.get((service, user))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    assert value("keyring://my/app/me") == "pw"
    assert reason(value, "keyring://my/app/you") == "the keyring has no password of `you` for `my/app`"
    assert reason(value, "keyring://broken/me") == "the keyring failed (RuntimeError)"
    assert reason(value, "keyring://app") == "keyring:// is followed by SERVICE/USERNAME"
    monkeypatch.delitem(sys.modules, "keyring")


def install(folder, monkeypatch, name, scheme, target):
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[agent_reach.providers]\n{scheme} = {target}\n")
    monkeypatch.syspath_prepend(folder)


def test_an_installed_package_serves_a_scheme(value, tmp_path, monkeypatch):
    (tmp_path / "reach_acme_provider.py").write_text(
        "def get(path):\n"
        "    if path == 'boom': raise ValueError('hunter2')\n"
        "    return {'none': None, 'odd': 5}.get(path, {'k': path})\n"
    )
    install(tmp_path, monkeypatch, "reach_acme", "acme", "reach_acme_provider:get")
    assert value("acme://a?x=1#k") == "a?x=1"
    assert reason(value, "acme://none") == "the provider for acme:// has no `none`"
    assert reason(value, "acme://odd") == "the provider for acme:// answered neither text nor a mapping"
    assert reason(value, "acme://boom") == "the provider for acme:// failed (ValueError)"
    install(tmp_path, monkeypatch, "reach_lost", "lost", "reach_no_such_module:get")
    assert "cannot be loaded (ModuleNotFoundError)" in reason(value, "lost://x")


def test_an_installed_package_does_not_replace_a_built_in(value, tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "reach_env", "env", "reach_no_such_module:get")
    assert value("env://A", env={"A": "1"}) == "1"


def test_an_unknown_scheme_lists_the_known_ones(value):
    assert reason(value, "zzz://x") == "no provider serves zzz://; reach knows env, file, dotenv, vault, keyring, cmd"


def test_a_provider_that_never_returns_is_left_behind(tmp_path, monkeypatch):
    from agent_reach.providers import parallel
    from agent_reach.providers.plugin import PluginReader
    from agent_reach.providers.uri import parse as parse_uri

    monkeypatch.setattr(parallel, "_SLACK", 0.0)
    forever = threading.Event()
    readers = [
        (PluginReader(lambda _path: forever.wait(30) and "x"), parse_uri("a://x")),
        (PluginReader(str.upper), parse_uri("b://x")),
    ]
    stuck, fine = parallel.read_side_by_side(readers, seconds=0.3)
    assert str(stuck) == "no answer within 0.3 s"
    assert fine == "X"
    forever.set()


# -- configuration ---------------------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path):
    path = tmp_path / ".config" / "reach" / "config.yaml"
    path.parent.mkdir(parents=True)

    def write(text, mode=0o644):
        path.write_text(text)
        path.chmod(mode)
        return load_user_config(str(tmp_path))

    return write


def test_no_configuration_means_the_defaults(tmp_path):
    assert load_user_config(str(tmp_path)) == UserConfig("", False)


def test_configuration(config, tmp_path):
    assert config("") == config("other: {x: 1}\n") == config("providers:\n") == UserConfig()
    assert config("providers: {python: /usr/bin/python3, allow_cmd: true}") == UserConfig(
        "/usr/bin/python3", allow_cmd=True
    )
    assert config("providers: {python: ~/v/bin/python}").python == f"{tmp_path}/v/bin/python"


@pytest.mark.parametrize(
    "text",
    [
        "providers: 1",
        "[1]",
        "providers: {allow_cmd: yes please}",
        "providers: {allow_cmd: 1}",
        "providers: {python: py}",
        "providers: {pyhton: /x}",
        "a: [",
        "\x00",
        "providers: {python: 3}",
    ],
)
def test_configuration_that_cannot_be_used(config, text):
    with pytest.raises(ProviderError, match=r"config\.yaml"):
        config(text)


def test_configuration_that_others_can_write(config):
    with pytest.raises(ProviderError, match="can be written by others"):
        config("providers: {allow_cmd: true}", mode=0o666)
