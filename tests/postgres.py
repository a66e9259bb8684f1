"""A real PostgreSQL server for tests, from Debian's package, in a directory of its own, gone at the end."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from glob import glob
from pathlib import Path

from netns import ordinary_user


class NoPostgresError(Exception):
    """There is no server binary, or no ordinary user to run it; the text says what to install."""


def binaries():
    """Return the directory of the newest server that is installed.

    Raises:
        NoPostgresError: there is none.
    """
    found = sorted(glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda path: float(path.split("/")[4]))
    if not found:
        raise NoPostgresError("no PostgreSQL server: apt-get install postgresql")
    return Path(found[-1]).parent


def free_port(address="127.0.0.1"):
    """Return a TCP port on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def is_taken(port, address="127.0.0.1"):
    """Return whether somebody listens on that port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return True
    return False


class Postgres:
    """A running server, as a context manager; its superuser is `postgres`, passwords are asked for over TCP.

    PostgreSQL refuses to run as root: started by root it runs as an ordinary user of this machine.

    Args:
        port: TCP port to listen on, 0 for a free one.
        addresses: addresses to listen on.
        namespace: a `netns.NetworkNamespace` to run in, or None for the network of the tests.

    Attributes:
        port: TCP port.
        directory: holds the data, the log and the server's Unix socket.
    """

    def __init__(self, port=0, addresses=("127.0.0.1",), namespace=None):
        self.port = port or free_port(addresses[0])
        self.addresses, self.namespace = addresses, namespace
        self.server = None

    def __enter__(self):
        self.bin = binaries()
        self.user = ordinary_user() if os.geteuid() == 0 else None
        if os.geteuid() == 0 and self.user is None:
            raise NoPostgresError("needs an ordinary user: useradd --create-home tester")
        # Not under pytest's directory: that of root is closed to everybody else.
        self.directory = Path(tempfile.mkdtemp(prefix="reach-postgres-"))
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception):
        if self.server is not None:
            self.server.terminate()
            try:
                self.server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _start(self):
        if self.user:
            os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
        data = self.directory / "data"
        options = ["--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8"]
        self._run([self.bin / "initdb", "--pgdata", data, "--no-sync", "--locale=C", *options])
        with (data / "pg_hba.conf").open("a") as rules:  # initdb lets in loopback addresses alone
            rules.write("host all all all scram-sha-256\n")
        log = (self.directory / "log").open("wb")
        with log:
            self.server = subprocess.Popen(
                self._command([self.bin / "postgres", "-D", data, *self._settings()]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )
        self._wait_until_ready()

    def _settings(self):
        settings = {
            "listen_addresses": ",".join(self.addresses),
            "port": self.port,
            "unix_socket_directories": self.directory,
            "fsync": "off",
            "shared_buffers": "16MB",
            "max_connections": 20,
        }
        return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]

    def _command(self, args, *, outside=False):
        words = [str(arg) for arg in args]
        if self.user:
            change = ["--reuid", str(self.user.pw_uid), "--regid", str(self.user.pw_gid), "--clear-groups"]
            words = ["setpriv", *change, *words]
        return words if outside or self.namespace is None else [*self.namespace.prefix("/"), *words]

    def _run(self, args):
        done = subprocess.run(
            self._command(args, outside=True), cwd="/", capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{args[0]} failed: {done.stderr or done.stdout}")
        return done.stdout

    def _wait_until_ready(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.server.poll() is not None:
                raise RuntimeError(f"PostgreSQL ended: {(self.directory / 'log').read_text()}")
            ready = [self.bin / "pg_isready", "-q", "-h", self.directory, "-p", self.port]
            if subprocess.run(self._command(ready, outside=True), cwd="/", check=False).returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError(f"PostgreSQL was not ready within a minute: {(self.directory / 'log').read_text()}")

    def sql(self, statements, database="postgres"):
        """Run SQL as the superuser, over the server's Unix socket; returns the rows as psql prints them, unaligned."""
        where = ["-h", self.directory, "-p", self.port, "-U", "postgres", "-d", database]
        flags = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "-v", "ON_ERROR_STOP=1"]
        return self._run([self.bin / "psql", *where, *flags, "-c", statements]).strip()
