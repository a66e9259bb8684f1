"""examples/sync_users end to end: a real PostgreSQL, a KV v2 server over real HTTP, two virtual environments.

Everything that listens on a fixed address does so in a network namespace of this test's own: 5432 may be
taken on the host, and 8.8.8.8 must never be anybody real.
"""

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from netns import NetworkNamespace, UnsupportedError
from postgres import NoPostgresError, Postgres, is_taken

pytestmark = pytest.mark.postgres

TESTS = Path(__file__).parents[1]
EXAMPLE = TESTS.parent / "examples" / "sync_users"
LOG_DIRECTORY = Path("/tmp/log")
KEY = Path("/etc/secrets/user-sync-db.key")
SERVICE_ADDRESS = "10.96.0.10"
SERVICE_NAME = "user-db.prod.svc.cluster.local"
TOKEN = "s.of-the-test"
SECRETS = {"db-host": SERVICE_NAME, "db-user": "produser", "db-pass": "prodpass"}
MISSING = "Missing required environment variable DB_PASS from vault://prod/user-sync/db-pass"

TABLE = """
CREATE ROLE devuser LOGIN PASSWORD 'devpass';
CREATE ROLE produser LOGIN PASSWORD 'prodpass';
CREATE TABLE users (id integer, name text, email text, last_login double precision);
INSERT INTO users VALUES
    (1, 'Ada', 'ada@example.org', extract(epoch FROM now())),
    (2, 'Grace', 'grace@example.org', extract(epoch FROM now()) - 3600),
    (3, 'Barbara', 'barbara@example.org', extract(epoch FROM now()) - 7200),
    (4, 'Edsger', 'edsger@example.org', extract(epoch FROM now()) - 200000);
GRANT SELECT ON users TO devuser, produser;
"""

# A KV v2 server in a process of its own, so that it can live in the namespace; ends with its standard input.
KV2_SERVER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from kv2_server import Kv2Server
with Kv2Server(json.loads(sys.argv[2]), token=sys.argv[3]) as server:
    print(server.address, flush=True)
    sys.stdin.read()
    agents = [headers.get("User-Agent", "") for headers in server.headers]
    print(json.dumps([server.requests, agents]))
"""

# Prints a line for every connection that reaches 8.8.8.8:53.
LISTENER = """
import socket
server = socket.create_server(("8.8.8.8", 53))
print("listening", flush=True)
while True:
    print("connection from", server.accept()[1], flush=True)
"""

CONTROL = """
import socket
print("connection from", socket.create_connection(("8.8.8.8", 53), 5).getsockname())
"""


@pytest.fixture(scope="module")
def script_python(request):
    """The interpreter of a virtual environment with the script's dependencies, kept between runs of the tests."""
    venv = request.config.cache.mkdir("sync-users") / "venv"
    python = venv / "bin" / "python"
    check = [python, "-c", "import psycopg2, hvac"]
    if python.exists() and subprocess.run(check, capture_output=True, check=False).returncode == 0:
        return python
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([sys._base_executable, "-m", "venv", venv], check=True, timeout=120)
    install = [python, "-m", "pip", "install", "--quiet", "--requirement", EXAMPLE / "requirements.txt"]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"psycopg2-binary and hvac could not be installed: {done.stderr.strip()[-300:]}")
    return python


@pytest.fixture
def log_directory():
    """The host's /tmp/log, which the contract names; whatever was there comes back afterwards."""
    saved = None
    if LOG_DIRECTORY.exists():
        saved = LOG_DIRECTORY.with_name(f"log.saved-{os.getpid()}")
        LOG_DIRECTORY.rename(saved)
    LOG_DIRECTORY.mkdir()
    try:
        yield LOG_DIRECTORY
    finally:
        shutil.rmtree(LOG_DIRECTORY)
        if saved:
            saved.rename(LOG_DIRECTORY)


class World:
    """Where the example runs: a database, and in a namespace also the key file, the service's name and 8.8.8.8."""

    def __init__(self, server, namespace):
        self.server, self.namespace = server, namespace

    def prefix(self, cwd):
        return self.namespace.prefix(cwd) if self.namespace else []


@pytest.fixture(scope="module")
def world():
    """A namespace with PostgreSQL on localhost:5432 and on the address of the production service."""
    setup, made = "", []
    if os.geteuid() == 0:
        # The key lies on a tmpfs that only this namespace sees; its mount point must exist on the host.
        if not KEY.parent.exists():
            KEY.parent.mkdir(mode=0o755)
            made.append(KEY.parent)
        setup = f"mount -t tmpfs -o mode=755 tmpfs {KEY.parent}; umask 077; echo key >{KEY}"
    with ExitStack() as stack:
        stack.callback(lambda: [directory.rmdir() for directory in made])
        try:
            addresses = ["8.8.8.8", SERVICE_ADDRESS]
            space = NetworkNamespace(addresses, f"{SERVICE_ADDRESS} {SERVICE_NAME}", setup)
            stack.enter_context(space)
            server = Postgres(5432, ("127.0.0.1", "::1", SERVICE_ADDRESS), space)
            stack.enter_context(server)
        except (UnsupportedError, NoPostgresError) as error:
            pytest.skip(str(error))
        server.sql(TABLE)
        yield World(server, space)


class Job:
    """A copy of the example with the caller's home beside it, run under reach or bare.

    An ordinary user cannot write /etc/secrets: for one, the contract's key lies in the test's directory.
    """

    def __init__(self, directory, python, run_reach):
        self.project, self.home = directory / "sync", directory / "home"
        self.python, self.run_reach = python, run_reach
        self.home.mkdir()
        self.project.mkdir()
        shutil.copy(EXAMPLE / "sync_users.py", self.project)
        contract = (EXAMPLE / "reach.yaml").read_text()
        if os.geteuid() != 0:
            key = directory / KEY.name
            key.write_text("key\n")
            assert str(KEY) in contract
            contract = contract.replace(str(KEY), str(key))
        (self.project / "reach.yaml").write_text(contract)

    def run(self, world, profile, **env):
        base = {"HOME": self.home, "DB_NAME": "postgres", "VIRTUAL_ENV": None, "XDG_CONFIG_HOME": None}
        base |= dict.fromkeys(("VAULT_ADDR", "VAULT_TOKEN", "VAULT_NAMESPACE", "VAULT_KV_MOUNT"))
        return self.run_reach(
            ["run", "--env", profile, "--python", self.python, "sync_users.py"],
            cwd=self.project,
            env=base | env,
            prefix=world.prefix(self.project),
        )

    def run_bare(self, world, **env):
        command = [*world.prefix(self.project), self.python, "sync_users.py"]
        return subprocess.run(
            command, cwd=self.project, env=os.environ | env, capture_output=True, text=True, timeout=60, check=False
        )

    def add_to_main(self, line):
        """Put a line at the start of the script's main()."""
        script = self.project / "sync_users.py"
        text = script.read_text()
        assert text.count("def main():\n") == 1
        script.write_text(text.replace("def main():\n", f"def main():\n    {line}\n"))

    def use_hvac(self):
        """Install examples/sync_users/providers.py as the user's own provider."""
        (self.home / ".reach").mkdir()
        shutil.copy(EXAMPLE / "providers.py", self.home / ".reach")
        (self.home / ".config" / "reach").mkdir(parents=True)
        (self.home / ".config" / "reach" / "config.yaml").write_text(f"providers:\n  python: {self.python}\n")


@pytest.fixture
def job(tmp_path, script_python, run_reach):
    return Job(tmp_path, script_python, run_reach)


class Vault:
    """A running KV v2 server in the namespace that holds these fields of prod/user-sync."""

    def __init__(self, namespace, fields):
        known = json.dumps({"secret/prod/user-sync": fields})
        command = [sys._base_executable, "-c", KV2_SERVER, TESTS, known, TOKEN]
        self.process = namespace.popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.env = {"VAULT_ADDR": self.process.stdout.readline().strip(), "VAULT_TOKEN": TOKEN}

    def stop(self):
        """End the server; returns the requests that it saw and the programs that sent them."""
        said, _ = self.process.communicate(timeout=20)
        return json.loads(said)


@pytest.fixture
def vault(world):
    """Start a KV v2 server in the namespace: a function of the fields that it holds."""
    with ExitStack() as stack:

        def start(fields):
            server = Vault(world.namespace, fields)
            stack.enter_context(server.process)
            stack.callback(server.process.kill)
            return server

        yield start


def test_the_example_is_the_seeds_script_without_a_branch_for_any_environment():
    text = (EXAMPLE / "sync_users.py").read_text()
    assert "if env" not in text
    assert "except" not in text
    compile(text, "sync_users.py", "exec")


def test_the_script_works_bare_with_the_same_variables(job, log_directory, world):
    dev = {"DB_HOST": "localhost", "DB_USER": "devuser", "DB_PASS": "devpass", "DB_NAME": "postgres"}
    done = job.run_bare(world, **dev)
    assert (done.returncode, done.stdout) == (0, "Synced 3 users\n"), done.stderr
    done = job.run_bare(world, **dev | {"DB_HOST": SERVICE_NAME, "DB_USER": "produser", "DB_PASS": "prodpass"})
    assert (done.returncode, done.stdout) == (0, "Synced 3 users\n"), done.stderr


def test_dev_synchronises_and_appends_to_the_log_of_the_host(job, log_directory, world):
    (log_directory / "sync.log").write_text("earlier line\n")
    with ExitStack() as stack:
        if not is_taken(5432):  # then without any namespace of ours: just as a developer has it
            world = World(stack.enter_context(Postgres(5432)), None)
            world.server.sql(TABLE)
        for _ in range(2):
            done = job.run(world, "dev")
            assert done.returncode == 0, done.stderr
            assert done.stdout == "Synced 3 users\n"
    lines = (log_directory / "sync.log").read_text().splitlines()
    assert lines[0] == "earlier line"
    assert [line.partition("] ")[2] for line in lines[1:]] == ["Synced 3 users"] * 2


def test_dev_without_a_database_name_runs_nothing(job, log_directory, world):
    job.add_to_main("print('started')")
    done = job.run(world, "dev", DB_NAME=None)
    assert done.returncode == 125
    assert "Missing required environment variable DB_NAME (not set by the caller)" in done.stderr
    assert done.stdout == ""
    assert list(log_directory.iterdir()) == []


def test_prod_takes_its_secrets_from_vault(job, log_directory, world, vault):
    server = vault(SECRETS)
    done = job.run(world, "prod", **server.env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Synced 3 users\n"
    assert "Synced 3 users" in (log_directory / "sync.log").read_text()
    requests, _ = server.stop()
    assert requests == ["GET /v1/secret/data/prod/user-sync"], "one read per path and run"


def test_prod_takes_its_secrets_from_the_users_own_provider_with_hvac(job, log_directory, world, vault):
    job.use_hvac()
    server = vault(SECRETS)
    done = job.run(world, "prod", **server.env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Synced 3 users\n"
    requests, agents = server.stop()
    assert {request.partition("?")[0] for request in requests} == {"GET /v1/secret/data/prod/user-sync"}
    assert all("requests" in agent for agent in agents), "hvac speaks through requests"


@pytest.mark.parametrize("provider", ["built in", "hvac"])
def test_a_missing_secret_is_named_and_nothing_runs(job, log_directory, world, vault, provider):
    if provider == "hvac":
        job.use_hvac()
    server = vault({"db-host": SERVICE_NAME, "db-user": "produser"})
    job.add_to_main("print('started')")
    done = job.run(world, "prod", **server.env)
    assert done.returncode == 125
    assert MISSING in done.stderr
    assert done.stdout == ""
    assert "produser" not in done.stderr, "a message never carries a value"
    assert list(log_directory.iterdir()) == []


def test_os_system_is_disabled(job, log_directory, world):
    job.add_to_main('os.system("id")')
    done = job.run(world, "dev")
    assert done.returncode == 1
    assert "SystemError: os.system() is disabled in restricted context" in done.stderr.splitlines()
    assert "uid=" not in done.stdout + done.stderr


@pytest.mark.parametrize("profile", ["dev", "prod"])
def test_a_connection_to_an_undeclared_address_is_refused_and_nothing_arrives(
    job, log_directory, world, vault, profile
):
    job.add_to_main('import socket; s = socket.socket(); s.connect(("8.8.8.8", 53))')
    listener = world.namespace.popen([sys._base_executable, "-c", LISTENER], stdout=subprocess.PIPE, text=True)
    with listener:
        try:
            assert listener.stdout.readline() == "listening\n"
            done = job.run(world, profile, **vault(SECRETS).env)
            assert done.returncode == 1
            assert "PermissionError: [Errno 13]" in done.stderr
            assert "denied connect 8.8.8.8:53" in done.stderr
            # The control: the listener does hear, and this is the first that it hears.
            control = world.namespace.run([sys._base_executable, "-c", CONTROL])
            assert control.returncode == 0, control.stderr
            assert listener.stdout.readline() == control.stdout
        finally:
            listener.kill()
