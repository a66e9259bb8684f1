"""A sandbox of the network alone: namespaces, the real filter, and a broker that serves it from this process."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import tempfile
import threading
import time

from agent_reach.contract.model import NetRule
from agent_reach.egress import addresses
from agent_reach.egress.broker import Broker
from agent_reach.egress.policy import Policy
from agent_reach.egress.resolve import Resolved, Resolver
from agent_reach.linux import _syscalls, caps, fdpass, namespaces, netlink, pidfd
from agent_reach.linux.abi.prctl import PR_SET_NO_NEW_PRIVS
from agent_reach.linux.seccomp import notify
from agent_reach.linux.seccomp.compile import build
from agent_reach.linux.seccomp.options import FilterOptions
from agent_reach.sandbox.init import FAKE_RANGES

MS_REC_PRIVATE = 0x4000 | 0x40000
MS_BIND = 0x1000
STUB = "127.0.0.53"
SOURCE = os.path.dirname(os.path.dirname(sys.modules["agent_reach"].__file__))
FILES = {
    "/etc/resolv.conf": f"nameserver {STUB}\noptions timeout:2 attempts:2\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


class Ended:
    """How a program ended: exit status, output, and what the broker took down."""

    def __init__(self, status, output, broker, events):
        self.status, self.output, self.events = status, output, events
        self.denials, self.connections = broker.denials(), broker.connections()

    def subjects(self):
        return [denial.subject for denial in self.denials]


class World:
    """Runs programs in a fresh sandbox.

    Args:
        rules: pairs of host and port.
        hosts: what names resolve to on the host; a function is called with the name.
        tier: ``full`` or ``reduced``.
        options: further arguments of the broker.
    """

    def __init__(self, rules=(), hosts=None, tier="full", **options):
        self.policy = Policy([NetRule(host, port) for host, port in rules])
        self.hosts, self.tier, self.options = hosts or {}, tier, options
        self.filter = FilterOptions(tier=tier, notify_socket=options.get("notify_socket", False))

    def look_up(self, name):
        found = self.hosts(name) if callable(self.hosts) else self.hosts.get(name, ())
        return Resolved(tuple(addresses.parse(one) for one in found), not found)

    def run(self, code, *args, timeout=30, env=None, python=""):
        """Run Python code inside and return how it ended.

        Args:
            code: source text.
            args: become `sys.argv[1:]`.
            timeout: seconds until it is killed and the test fails.
            env: environment of the program.
            python: interpreter.
        """
        # Not the venv's: in a clone below /tmp, all of it but SOURCE is out of sight inside.
        command = [python or os.path.realpath(sys.executable), "-I", "-c", code, *map(str, args)]
        with tempfile.TemporaryFile() as output, contextlib.ExitStack() as stack:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            flags = namespaces.CLONE_NEWUSER | namespaces.CLONE_NEWNET | namespaces.CLONE_NEWNS
            program = build(_syscalls.machine(), self.filter)  # a clone below /tmp is out of sight inside
            pid = namespaces.fork_into(flags) if self.tier == "full" else os.fork()
            if pid == 0:
                ours.close()
                self._inside(theirs, output.fileno(), command, env, program)
            theirs.close()
            watch = pidfd.open(pid)
            stack.callback(os.close, watch)
            stack.callback(_end, pid, watch)
            if self.tier == "full":
                namespaces.write_map(
                    pid, inner_uid=os.geteuid(), outer_uid=os.geteuid(), inner_gid=os.getegid(), outer_gid=os.getegid()
                )
            ours.send(b"mapped")
            words, descriptors = fdpass.receive(ours, 100, 3)
            listener, *dns = descriptors
            stack.callback(os.close, listener)
            events = []
            broker = Broker(
                listener,
                self.policy,
                events.append,
                tier=self.tier,
                resolver=Resolver(self.look_up),
                dns_sockets=tuple(dns) or None,
                private_devices=frozenset((int(words),)),
                **self.options,
            )
            stack.callback(broker.close)
            ours.send(b"go")
            ours.close()
            status = _serve(broker, watch, pid, timeout)
            output.seek(0)
            return Ended(status, output.read().decode(errors="replace"), broker, events)

    def _inside(self, link, output, command, env, program):
        """Set up the child and become the program; never returns."""
        try:
            link.recv(10)
            descriptors = []
            device = 0
            if self.tier == "full":
                descriptors = _set_up_network()
                device = _set_up_files()
                caps.drop_all()
            _syscalls.prctl(PR_SET_NO_NEW_PRIVS, 1)
            listener = notify.install(program)
            fdpass.send(link, b"%d" % device, (listener, *descriptors))
            link.recv(10)
            for target in (1, 2):
                os.dup2(output, target)
            os.execve(command[0], command, env or {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"})
        except BaseException as error:  # noqa: BLE001 - the child must not run the rest of the test
            os.write(2, repr(error).encode() + b"\n")
        finally:
            os._exit(99)


def _set_up_network():
    """Return the resolver's sockets in this new namespace."""
    netlink.bring_up(FAKE_RANGES)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((STUB, 53))
    tcp = socket.socket()
    tcp.bind((STUB, 53))
    tcp.listen(16)
    return [udp.detach(), tcp.detach()]


def _set_up_files():
    """Lay the resolver's files over those of the host, and a private /tmp; return its st_dev."""
    source = os.open(SOURCE, os.O_PATH)
    _syscalls.mount(None, "/", None, MS_REC_PRIVATE)
    _syscalls.mount("tmpfs", "/tmp", "tmpfs", 0)
    if not os.path.exists(SOURCE):  # a clone below /tmp
        os.makedirs(SOURCE)
        _syscalls.mount(f"/proc/self/fd/{source}", SOURCE, None, MS_BIND)
    os.close(source)
    for number, (path, text) in enumerate(FILES.items()):
        with open(f"/tmp/{number}", "w") as file:
            file.write(text)
        _syscalls.mount(f"/tmp/{number}", os.path.realpath(path), None, MS_BIND)
    return os.stat("/tmp").st_dev


def _serve(broker, watch, pid, timeout):
    """Serve until the child ends; return its exit status."""
    poll = select.poll()
    poll.register(broker.epoll_fd, select.POLLIN)
    poll.register(watch, select.POLLIN)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        due = broker.timeout()
        ready = dict(poll.poll(1000 if due < 0 else due))
        broker.run_once()
        if watch in ready:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    raise TimeoutError(f"still running after {timeout} s")


def _end(pid, watch):
    """Kill the child, if it is still there."""
    try:
        pidfd.send_signal(watch, 9)
        os.waitpid(pid, 0)
    except (ChildProcessError, ProcessLookupError):
        return


class Echo:
    """A server on the host's loopback that sends back what it gets; counts its connections.

    Args:
        address: where it listens.
        port: 0 takes a free one.
        backlog: connections that wait; a server that never accepts and has no room is a slow host.
        accepting: whether it accepts at all.
    """

    def __init__(self, address="127.0.0.1", port=0, backlog=512, accepting=True):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((address, port))
        self.socket.listen(backlog)
        self.port = self.socket.getsockname()[1]
        self.count = 0
        self.accepting = accepting

    def __enter__(self):
        if self.accepting:
            threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_exception):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def _accept(self):
        while True:
            try:
                peer, _address = self.socket.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self._echo, args=(peer,), daemon=True).start()

    @staticmethod
    def _echo(peer):
        with peer, contextlib.suppress(OSError):
            while data := peer.recv(65536):
                peer.sendall(data)
