"""The guard in real interpreters: what it explains, what it lets pass, and that it leaves nothing behind.

The broker here is a socket of the test's own that speaks the real frames; no kernel wall is up, so what the guard
lets pass succeeds.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from agent_reach import wire
from agent_reach.contract.model import Contract, FileGrant, NetRule, Options
from agent_reach.host import interpreter, paths, system
from agent_reach.host.model import Caller, ProjectFact
from agent_reach.inside import startup
from agent_reach.plan import guard
from agent_reach.plan.facts import Facts
from agent_reach.wire import frames, reports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCES = {
    "sitecustomize.py": startup,
    "agent_reach/wire/__init__.py": wire,
    "agent_reach/wire/frames.py": frames,
    "agent_reach/wire/reports.py": reports,
}
# Kept on Python 3.9: what runs here is the user's own program.
PROGRAM = r"""
import json, os, pathlib, socket, sys
root, told = sys.argv[1], {}

def attempt(name, call):
    try:
        told[name] = ["ok", call()]
    except BaseException as error:
        told[name] = [type(error).__name__, str(error)]

def read(path):
    with open(path) as stream:
        return stream.read()

def write(path):
    with open(path, "w") as stream:
        stream.write("new")

def connect():
    with socket.socket() as client:
        client.connect(("127.0.0.1", 1))

def beside_a_descriptor():
    directory = os.open(root + "/out", os.O_RDONLY)
    os.close(os.open("../secret", os.O_RDONLY, dir_fd=directory))

def again(path):
    read(path)

attempt("read granted", lambda: read(root + "/in.txt"))
attempt("write what is granted for reading", lambda: write(root + "/in.txt"))
attempt("write granted", lambda: write(root + "/out/new"))
attempt("read what is granted for writing", lambda: read(root + "/out/old"))
attempt("read and write granted", lambda: (write(root + "/db"), read(root + "/db"))[1])
attempt("read by an odd name", lambda: read(root + "/odd\\n\\\\name\n"))
attempt("read project", lambda: read("data.txt"))
attempt("read hidden", lambda: read(".env"))
attempt("read undeclared", lambda: again(root + "/secret"))
attempt("read undeclared through a library", lambda: pathlib.Path(root, "secret").read_text())
attempt("read undeclared by a relative name", lambda: read("../secret"))
attempt("read undeclared as bytes", lambda: read(os.fsencode(root + "/secret")))
attempt("open undeclared", lambda: os.open(root + "/secret", os.O_RDONLY))
attempt("open beside a descriptor", beside_a_descriptor)
attempt("open a descriptor", lambda: read(os.open(root + "/in.txt", os.O_RDONLY)))
attempt("read what nobody has", lambda: read("/no/such/file"))
attempt("read what only the host has", lambda: read("/host/only"))
attempt("read own home", lambda: (write(root + "/home/x"), read(root + "/home/x"))[1])
attempt("read absent at home", lambda: read(root + "/home/absent"))
attempt("read too long a name", lambda: read("/" + "a" * 5000))
attempt("os.system", lambda: os.system("true"))
attempt("connect", connect)
attempt("look up granted", lambda: socket.getaddrinfo("DB.internal.", 5432, flags=socket.AI_NUMERICHOST))
attempt("look up undeclared", lambda: socket.getaddrinfo("evil.example", 443, flags=socket.AI_NUMERICHOST))
import multiprocessing
told["start"] = multiprocessing.get_start_method()
told["trace"] = [name for name in sys.modules if name.startswith("agent_reach")]
told["path"] = [entry for entry in sys.path if "guard" in entry]
told["PYTHONPATH"] = os.environ.get("PYTHONPATH")
told["real sitecustomize"] = getattr(sys, "real_sitecustomize", False)
json.dump(told, sys.stdout)
"""


class Broker:
    """Listens on the guard's channel, keeps every report, and knows one file of the host."""

    def __init__(self, name: str) -> None:
        self.reports: list[dict[str, str]] = []
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind("\0" + name)
        self._server.listen(64)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            client, _ = self._server.accept()
            with client:
                client.settimeout(20)
                decoder, data = frames.Decoder(), client.recv(8192)
                if data == b"end":
                    return
                for fields in decoder.feed(data):
                    self.reports.append(fields)
                    if fields["kind"] == reports.EXISTS:
                        client.sendall(reports.existence(fields["path"] == "/host/only"))

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self._server.getsockname())
            client.sendall(b"end")
        self._thread.join()
        self._server.close()


class Told:
    """What a program met, and what the guard reported of it."""

    def __init__(self, root: Path, outcomes: dict[str, list[str]], found: list[dict[str, str]]) -> None:
        self.root, self.outcomes, self.reports = root, outcomes, found

    def denials(self, subject: str) -> list[dict[str, str]]:
        kept = [fields for fields in self.reports if fields["kind"] == reports.DENIED]
        return [fields for fields in kept if fields["subject"] == subject.format(self.root)]


def guard_files(root: Path, python: str, channel: bytes) -> Iterator[tuple[str, bytes]]:
    """Return the guard of a contract of this test's, on a channel of its own."""
    files = (
        FileGrant(f"{root}/in.txt"),
        FileGrant(f"{root}/out", "w", directory=True),
        FileGrant(f"{root}/db", "rw"),
        FileGrant(f"{root}/odd\\n\\\\name\n"),
    )
    options = Options(multiprocessing_start_method="spawn")
    contract = Contract(files=files, network=(NetRule("db.internal", 5432),), options=options)
    facts = Facts(
        tier="full",
        landlock=0,
        caller=Caller(1001, 1001, "alice", f"{root}/home", f"{root}/project", 0o22),
        interpreter=interpreter.discover(asked=python, script="", project_root="", environ={}, cache_dir=None),
        project=ProjectFact(f"{root}/project", masks=((f"{root}/project/.env", "file"),)),
        system=system.look_at_system(),
        paths=tuple(paths.look(grant.path) for grant in files),
    )
    # /tmp is private inside; here it holds this test's files as well
    lines = [
        line for line in guard.table(contract, facts).split(b"\n") if line.split(b" ")[1] not in {b"/tmp", b"/var/tmp"}
    ]
    yield "grants", b"\n".join(lines)
    yield "agent_reach/__init__.py", b""
    for inside, module in SOURCES.items():
        with open(module.__file__, "rb") as stream:
            yield inside, stream.read().replace(rb'b"\0reach"', b'b"\\0' + channel + b'"')


@pytest.fixture(scope="module", params=["3.9", "3.10", "3.11", "3.12", "3.13"])
def told(request, interpreters, tmp_path_factory) -> Told:
    python = interpreters.get(request.param)
    if python is None:
        pytest.skip(f"interpreter not readable here: {request.param}")
    root = tmp_path_factory.mktemp("world")
    for name in ("out/old", "db", "in.txt", "secret", "project/.env", "project/data.txt", "odd\\n\\\\name\n"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("old")
    (root / "home").mkdir()
    (root / "project" / "job.py").write_text(PROGRAM)
    (root / "site").mkdir()
    (root / "site" / "sitecustomize.py").write_text("import sys\nsys.real_sitecustomize = True\n")
    channel = f"reach-test-{os.getpid()}-{request.param}"
    for name, content in guard_files(root, python, channel.encode()):
        (root / "guard" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "guard" / name).write_bytes(content)
    broker = Broker(channel)
    try:
        done = subprocess.run(
            [python, "job.py", root],
            cwd=root / "project",
            env={"PYTHONPATH": f"{root}/guard:{root}/site", "HOME": f"{root}/home", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            timeout=60,
            check=False,
        )
    finally:
        broker.close()
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return Told(root, json.loads(done.stdout), broker.reports)


@pytest.mark.parametrize(
    "what",
    [
        "read granted",
        "write granted",
        "read and write granted",
        "read by an odd name",
        "read project",
        "open a descriptor",
        "read own home",
    ],
)
def test_what_is_granted_passes(told: Told, what: str) -> None:
    assert told.outcomes[what][0] == "ok"
    for name in ("/in.txt", "/out/new", "/db", "/project/data.txt", "/home/x"):
        assert [line for line in told.denials("{}" + name) if line["action"] == "open"] == []


@pytest.mark.parametrize("what", ["read what is granted for writing", "open beside a descriptor"])
def test_what_only_the_kernel_can_judge_is_left_to_it(told: Told, what: str) -> None:
    assert told.outcomes[what][0] == "ok"


@pytest.mark.parametrize(
    ("what", "path"),
    [
        ("read undeclared", "{}/secret"),
        ("read undeclared through a library", "{}/secret"),
        ("read undeclared by a relative name", "../secret"),
        ("open undeclared", "{}/secret"),
        ("read hidden", ".env"),
        ("write what is granted for reading", "{}/in.txt"),
        ("read what only the host has", "/host/only"),
    ],
)
def test_what_is_refused_is_a_permission_error_on_the_name_that_was_given(told: Told, what: str, path: str) -> None:
    text = f"[Errno 13] Permission denied: {path.format(told.root)!r}"
    assert told.outcomes[what] == ["PermissionError", text]


def test_a_name_in_bytes_is_refused_as_well(told: Told) -> None:
    assert told.outcomes["read undeclared as bytes"][0] == "PermissionError"


@pytest.mark.parametrize("what", ["read what nobody has", "read absent at home"])
def test_what_does_not_exist_stays_absent(told: Told, what: str) -> None:
    assert told.outcomes[what][0] == "FileNotFoundError"


def test_a_name_beyond_every_length_gets_the_kernels_answer(told: Told) -> None:
    kind, text = told.outcomes["read too long a name"]
    assert kind == "OSError"
    assert "File name too long" in text


def test_os_system_is_disabled(told: Told) -> None:
    assert told.outcomes["os.system"] == ["SystemError", "os.system() is disabled in restricted context"]
    (denial,) = told.denials("os.system")
    assert (denial["action"], denial["entry"]) == ("call", "")


def test_a_refusal_is_reported_with_clause_entry_and_line(told: Told) -> None:
    denials = told.denials("{}/secret")
    lines = PROGRAM.split("\n")
    assert len(denials) == 5
    assert {denial["clause"] for denial in denials} == {"not in resources.files"}
    assert {denial["entry"] for denial in denials} == {f"- {{path: {told.root}/secret, mode: r}}"}
    assert {denial["shown"] for denial in denials} == {"yes"}
    for denial in denials:
        assert os.path.basename(denial["file"]) == "job.py"
        assert any(words in lines[int(denial["line"]) - 1] for words in ("open(", "read_text()"))


def test_the_line_is_the_users_not_the_librarys(told: Told) -> None:
    found = [PROGRAM.split("\n")[int(denial["line"]) - 1] for denial in told.denials("{}/secret")]
    assert len([line for line in found if "pathlib.Path" in line]) == 1


def test_writing_to_what_is_granted_for_reading_says_so(told: Told) -> None:
    (denial,) = told.denials("{}/in.txt")
    assert (denial["action"], denial["clause"]) == ("write", "granted for reading only")
    assert denial["entry"] == f"- {{path: {told.root}/in.txt, mode: w}}"


def test_the_host_is_asked_only_about_what_is_not_there_and_not_at_home(told: Told) -> None:
    asked = [fields["path"] for fields in told.reports if fields["kind"] == reports.EXISTS]
    assert asked == ["/no/such/file", "/host/only"]
    (absent,) = told.denials("/no/such/file")
    assert absent["shown"] == "no"
    (private,) = told.denials("{}/home/absent")
    assert private["shown"] == "no"


def test_a_connect_is_announced_and_left_to_the_broker(told: Told) -> None:
    assert told.outcomes["connect"][0] == "ConnectionRefusedError"
    (at,) = [fields for fields in told.reports if fields["kind"] == reports.AT]
    assert at["tid"].isdigit()
    assert at["function"] == "connect"


def test_only_a_lookup_that_no_rule_names_is_announced(told: Told) -> None:
    (name,) = [fields for fields in told.reports if fields["kind"] == reports.NAME]
    assert (name["name"], name["port"]) == ("evil.example", "443")
    for what in ("look up granted", "look up undeclared"):
        assert told.outcomes[what][0] == "gaierror"


def test_nothing_of_the_guard_is_left_to_see(told: Told) -> None:
    assert told.outcomes["trace"] == []
    assert told.outcomes["path"] == []
    assert told.outcomes["PYTHONPATH"] == f"{told.root}/site"


def test_the_real_sitecustomize_runs(told: Told) -> None:
    assert told.outcomes["real sitecustomize"] is True


def test_the_start_method_of_the_contract_is_set(told: Told) -> None:
    assert told.outcomes["start"] == "spawn"


def test_this_interpreter_is_untouched() -> None:
    assert "sitecustomize" not in sys.modules or not hasattr(sys.modules["sitecustomize"], "Guard")
