"""Who starts the run: ids, name, home, working directory."""

from __future__ import annotations

import os

from agent_reach.host.model import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def look_at_caller(environ: Mapping[str, str]) -> Caller:
    """Gather the facts of the calling process.

    Args:
        environ: the caller's environment; ``HOME`` wins over passwd.
    """
    import pwd

    uid = os.geteuid()
    try:
        entry = pwd.getpwuid(uid)
        name, home = entry.pw_name, entry.pw_dir
    except KeyError:
        # A container's bare uid, or NSS out of reach: a name is still needed inside (getpass.getuser).
        name, home = f"user{uid}", "/home/user"
    home = environ.get("HOME") or home
    if not home.startswith("/") or home == "/":
        home = "/home/user"
    umask = os.umask(0o077)
    os.umask(umask)
    return Caller(
        uid=uid,
        gid=os.getegid(),
        name=name,
        home=os.path.normpath(home),
        cwd=_cwd(),
        umask=umask,
    )


def _cwd() -> str:
    """Return the working directory; a deleted one counts as the root."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"
