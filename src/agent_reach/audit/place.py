"""Where records live, and the directory as a descriptor."""

from __future__ import annotations

import os
import stat

from agent_reach.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def record_place(env: Mapping[str, str], home: str) -> str:
    """Return the directory of the records.

    Args:
        env: the caller's environment; an absolute XDG_STATE_HOME decides.
        home: the caller's home directory.
    """
    state = env.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        if os.geteuid() == 0:
            return "/var/lib/reach"
        state = os.path.join(home, ".local", "state")
    return os.path.join(state, "reach")


def open_place(place: str) -> int:
    """Open the directory of the records, made with mode 0700 when it is missing, and return a descriptor.

    Args:
        place: absolute path.

    Raises:
        Unavailable: it cannot be made, is somebody else's or cannot be written; the text names ``--no-record``.
    """
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _no_place(place, error.strerror) from None
    try:
        about = os.fstat(fd)
        if about.st_uid != os.geteuid():
            raise _no_place(place, f"it belongs to uid {about.st_uid}")
        if stat.S_IMODE(about.st_mode) != 0o700:
            os.fchmod(fd, 0o700)
        # a read-only file system refuses here, root or not
        if not os.access(place, os.W_OK | os.X_OK):
            raise _no_place(place, "it cannot be written")
    except OSError as error:
        os.close(fd)
        raise _no_place(place, error.strerror) from None
    except Unavailable:
        os.close(fd)
        raise
    return fd


def _no_place(place: str, found: str | None) -> Unavailable:
    """Build the error that refuses a run without a record."""
    return Unavailable(
        "a place for the record",
        needed="every run leaves one record",
        found=f"{place}: {found}",
        fix="set XDG_STATE_HOME to a directory that you can write, or pass --no-record",
    )
