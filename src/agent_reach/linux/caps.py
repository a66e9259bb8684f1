"""Give up privileges for good: capabilities of every set, and new ones by exec."""

from __future__ import annotations

from agent_reach.linux import _syscalls

_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_PR_SET_DUMPABLE = 4
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SIGKILL = 9
_MOST_CAPABILITIES = 64


def no_new_privileges() -> None:
    """Let no exec give privileges: set-id bits and file capabilities have no effect from here on."""
    _syscalls.prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_all() -> None:
    """Empty the bounding, ambient, inheritable, permitted and effective sets, in an order that works."""
    for capability in range(_MOST_CAPABILITIES):
        try:
            _syscalls.prctl(_PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno == 22:  # past the last capability of this kernel
                break
            if error.errno == 1:  # no CAP_SETPCAP: an unprivileged caller, whose permitted set is empty anyway
                break
            raise
    _syscalls.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    _syscalls.capset_empty()


def set_dumpable(value: bool) -> None:
    """Open or close the process to tracing, `/proc/PID/mem` and core dumps of its own uid."""
    _syscalls.prctl(_PR_SET_DUMPABLE, int(value))


def die_with_parent() -> None:
    """Be killed when the parent ends; a change of credentials clears it, so call it after the last one."""
    _syscalls.prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def adopt_orphans() -> None:
    """Become the reaper of every descendant (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    _syscalls.prctl(_PR_SET_CHILD_SUBREAPER, 1)
