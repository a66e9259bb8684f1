"""Network namespaces of a test's own, with addresses on their loopback interface.

A test that must see whether a packet to 8.8.8.8 leaves the sandbox puts that address on `lo` here and
listens on it: nothing real is ever addressed.
"""

from __future__ import annotations

import os
import pwd
import shlex
import subprocess
import tempfile
from pathlib import Path


class UnsupportedError(Exception):
    """This machine gives us no such namespace; the text says which step failed."""


def ordinary_user():
    """Return the passwd entry of an ordinary user with a home, one made for tests first, or None."""
    users = [entry for entry in pwd.getpwall() if 1000 <= entry.pw_uid < 60000 and Path(entry.pw_dir).is_dir()]
    return min(users, key=lambda entry: (entry.pw_name not in {"tester", "reach-ci"}, entry.pw_uid), default=None)


class NetworkNamespace:
    """A network and mount namespace that lives as long as the `with` block.

    Args:
        addresses: IPv4 or IPv6 addresses to put on `lo` besides 127.0.0.1 and ::1.
        hosts: lines that stand behind those of /etc/hosts for whatever runs in it, or None.
        setup: further shell commands to run in it before it is used.
    """

    def __init__(self, addresses=(), hosts=None, setup=""):
        self.addresses, self.hosts, self.setup = addresses, hosts, setup
        self.root = os.geteuid() == 0

    def _unshare(self):
        # An ordinary user keeps its uid in a user namespace of its own; the capabilities which that gives
        # are for the set-up alone: a program started later through nsenter loses them at exec.
        if self.root:
            return ["unshare", "--net", "--mount", "--propagation", "private"]
        own_user = ["--user", "--map-current-user", "--keep-caps"]
        return ["unshare", *own_user, "--net", "--mount", "--propagation", "private"]

    def _script(self):
        # Whoever runs in it may listen on port 53.
        lines = ["set -e", "ip link set lo up", "echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start"]
        for address in self.addresses:
            width = 128 if ":" in address else 32
            lines.append(f"ip address add {shlex.quote(address)}/{width} dev lo")
        if self.hosts:
            lines.append(f"mount --bind {shlex.quote(self._hosts_file())} /etc/hosts")
        return "\n".join([*lines, self.setup, "echo ready", "exec cat"])

    def _hosts_file(self):
        with tempfile.NamedTemporaryFile("w", prefix="reach-hosts-", delete=False) as file:
            file.write(Path("/etc/hosts").read_text() + "\n" + self.hosts + "\n")
            os.fchmod(file.fileno(), 0o644)
        self._hosts_path = file.name
        return file.name

    def __enter__(self):
        self._hosts_path = None
        self.holder = subprocess.Popen(
            [*self._unshare(), "sh", "-c", self._script()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self.holder.stdout.readline() != "ready\n":
            error = self.holder.stderr.read().strip()
            self.__exit__()
            raise UnsupportedError(error or "unshare ended without a word")
        return self

    def __exit__(self, *_exception):
        for stream in (self.holder.stdin, self.holder.stdout, self.holder.stderr):
            stream.close()
        self.holder.wait(timeout=20)
        if self._hosts_path:
            os.unlink(self._hosts_path)

    def prefix(self, cwd):
        """Return the words that, put before a command, run it in this namespace and in the directory `cwd`."""
        own_user = [] if self.root else ["--user", "--preserve-credentials"]
        # The directory is entered by name afterwards: one opened before lies in the mounts that we leave.
        enter = ["nsenter", f"--target={self.holder.pid}", *own_user, "--net", "--mount"]
        return [*enter, "env", f"--chdir={cwd}"]

    def run(self, args, cwd="/", **options):
        """Run a command in this namespace; further options as for `subprocess.run`."""
        options = {"capture_output": True, "text": True, "timeout": 60} | options
        return subprocess.run([*self.prefix(cwd), *map(str, args)], check=False, **options)

    def popen(self, args, cwd="/", **options):
        """Start a command in this namespace; further options as for `subprocess.Popen`."""
        return subprocess.Popen([*self.prefix(cwd), *map(str, args)], **options)
