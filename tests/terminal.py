"""Run a command on a terminal of a test's own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import termios


def run_on_terminal(words, env, cwd, seconds=30):
    """Run a command whose standard input and output are a terminal; return exit status and what it showed."""
    master, slave = pty.openpty()
    pid = os.fork()
    if pid == 0:
        os.close(master)
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for number in range(3):
            os.dup2(slave, number)
        os.chdir(cwd)
        os.execvpe(words[0], [*map(str, words)], env)
    os.close(slave)
    said = b""
    while select.select([master], [], [], seconds)[0]:
        try:
            part = os.read(master, 4096)
        except OSError:  # the other side has been closed
            break
        if not part:
            break
        said += part
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode(errors="replace")
