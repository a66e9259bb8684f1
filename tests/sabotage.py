"""Run reach with one of its own walls taken out: python sabotage.py WALL ARGUMENTS-OF-REACH."""

from __future__ import annotations

import struct
import sys

from agent_reach.cli import main
from agent_reach.linux import caps, landlock
from agent_reach.linux.seccomp import notify


def nothing(*_words, **_options):
    """Do nothing."""


def without_landlock():
    """The rules are not put on."""
    landlock.restrict = nothing


def open_filter():
    """The filter lets everything through."""
    install = notify.install
    notify.install = lambda _program: install(struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000))


def deaf_supervisor():
    """Notified calls are answered with success, unseen."""
    respond = notify.respond
    notify.respond = lambda listener, cookie, **_answer: respond(listener, cookie)


def with_privileges():
    """no_new_privs is not set."""
    caps.no_new_privileges = nothing


WALLS = {wall.__name__: wall for wall in (without_landlock, open_filter, deaf_supervisor, with_privileges)}

if __name__ == "__main__":
    WALLS[sys.argv.pop(1)]()
    sys.exit(main(sys.argv[1:]))
