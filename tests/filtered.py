"""Run a function, or a program, under the real filter in a process of a test's own."""

from __future__ import annotations

import os
import pickle
import select
import socket
import tempfile
import time

from agent_reach.linux import _syscalls, fdpass, pidfd
from agent_reach.linux.abi.prctl import PR_SET_NO_NEW_PRIVS
from agent_reach.linux.seccomp import notify
from agent_reach.linux.seccomp.compile import build
from agent_reach.linux.seccomp.options import FilterOptions

DEFAULT = FilterOptions()


def lock(options=DEFAULT, flags=0):
    """Put this process under the filter, without anybody who answers: notified calls give ENOSYS."""
    _syscalls.prctl(PR_SET_NO_NEW_PRIVS, 1)
    _syscalls.seccomp_install(build(_syscalls.machine(), options), flags)


def in_child(action, timeout=30):
    """Return what a function returns in a forked child, or raise what it raises there."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            outcome = (True, action())
        except BaseException as error:  # noqa: BLE001 - an exit or an assertion of the child is its outcome
            outcome = (False, repr(error))
        os.write(writer, pickle.dumps(outcome))
        os._exit(0)
    os.close(writer)
    try:
        ready, _, _ = select.select([reader], [], [], timeout)
        data = os.read(reader, 1 << 16) if ready else b""
    finally:
        os.close(reader)
        if not data:
            os.kill(child, 9)
        _, status = os.waitpid(child, 0)
    if not data:
        raise ChildProcessError(f"the child ended with {os.waitstatus_to_exitcode(status)} and said nothing")
    fine, value = pickle.loads(data)
    if not fine:
        raise AssertionError(value)
    return value


def outcome(call):
    """Return the error number of a call, 0 when it succeeded."""
    try:
        call()
    except OSError as error:
        return error.errno
    return 0


class Child:
    """A forked child under the filter, with its listener here.

    Args:
        action: what the child does; its return value is its exit status.
        options: of the filter.
    """

    def __init__(self, action, options=DEFAULT):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = build(_syscalls.machine(), options)
        self.pid = os.fork()
        if self.pid == 0:
            status = 99
            try:
                ours.close()
                _syscalls.prctl(PR_SET_NO_NEW_PRIVS, 1)
                listener = notify.install(program)
                fdpass.send(theirs, b"x", (listener,))
                os.close(listener)
                status = action()
            finally:
                os._exit(status if isinstance(status, int) else 98)
        theirs.close()
        self.pidfd = pidfd.open(self.pid)
        with ours:
            _, (self.listener,) = fdpass.receive(ours, 1, 1)
        self.status = None

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        if self.status is None:
            pidfd.send_signal(self.pidfd, 9)
            self.wait()
        os.close(self.listener)
        os.close(self.pidfd)

    def next_call(self, timeout=20):
        """Return the next notification."""
        ready, _, _ = select.select([self.listener], [], [], timeout)
        assert ready, "no call was notified"
        return notify.receive(self.listener)

    def wait(self):
        """Return the exit status."""
        if self.status is None:
            _, status = os.waitpid(self.pid, 0)
            self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def serve(self, answer, timeout):
        """Answer every call by a function of the listener and the notification until the child ends."""
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        poll.register(self.pidfd, select.POLLIN)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            ready = dict(poll.poll(1000))
            if ready.get(self.listener, 0) & select.POLLIN:
                call = notify.receive(self.listener)
                if call is not None:
                    answer(self.listener, call)
            elif self.pidfd in ready:
                return self.wait()
        raise TimeoutError(f"still running after {timeout} s")


def carry_out(listener, call):
    """Let every notified call go ahead: for tests of what the filter allows, not of what a broker decides."""
    notify.continue_call(listener, call.id)


def run_program(argv, options=DEFAULT, timeout=90, cwd="/", env=None):
    """Run a program under the filter and return its exit status and all its output."""
    with tempfile.TemporaryFile() as output:

        def start():
            os.setsid()
            os.chdir(cwd)
            null = os.open("/dev/null", os.O_RDONLY)
            for target, source in ((0, null), (1, output.fileno()), (2, output.fileno())):
                os.dup2(source, target)
            os.execve(argv[0], argv, env or {"PATH": "/usr/bin:/bin", "HOME": cwd, "LANG": "C.UTF-8"})

        with Child(start, options) as child:
            status = child.serve(carry_out, timeout)
        output.seek(0)
        return status, output.read().decode(errors="replace")
