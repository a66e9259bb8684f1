"""Which reader serves a scheme: the user's file first, then reach's own, then installed packages."""

from __future__ import annotations

from agent_reach.providers.faults import SourceError
from agent_reach.providers.userfile import UserFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.providers.session import Reader, Session

SCHEMES = ("env", "file", "dotenv", "vault", "keyring", "cmd")
"""Schemes that reach serves itself."""


class Registry:
    """Finds readers for one resolution and keeps them, so that logins and files are shared.

    Args:
        session: the resolution.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._readers: dict[str, Reader] = {}
        self._user: UserFile | None = None
        self._user_reader: Reader | None = None

    def reader(self, scheme: str) -> Reader:
        """Return the reader of a scheme.

        Raises:
            SourceError: nobody serves the scheme, or its provider cannot be used.
        """
        if scheme not in self._readers:
            self._readers[scheme] = self._from_user(scheme) or _built_in(scheme, self._session) or _installed(scheme)
        return self._readers[scheme]

    def _from_user(self, scheme: str) -> Reader | None:
        """Return the reader of the user's file when it defines the scheme."""
        if self._user is None:
            self._user = UserFile(self._session)
        if not self._user.defines(scheme):
            return None
        if self._user_reader is None:
            self._user_reader = self._user.reader()
        return self._user_reader


def _built_in(scheme: str, session: Session) -> Reader | None:
    """Return reach's own reader; each module is imported only when a contract names its scheme."""
    if scheme == "env":
        from agent_reach.providers.env import EnvReader

        return EnvReader(session)
    if scheme == "file":
        from agent_reach.providers.file import FileReader

        return FileReader(session)
    if scheme == "dotenv":
        from agent_reach.providers.dotenv import DotenvReader

        return DotenvReader(session)
    return _slow(scheme, session)


def _slow(scheme: str, session: Session) -> Reader | None:
    """Return one of the readers that may wait for something outside this process."""
    if scheme == "vault":
        from agent_reach.providers.vault import VaultReader

        return VaultReader(session)
    if scheme == "keyring":
        from agent_reach.providers.keyring import KeyringReader

        return KeyringReader(session)
    if scheme == "cmd":
        from agent_reach.providers.cmd import CmdReader

        return CmdReader(session)
    return None


def _installed(scheme: str) -> Reader:
    """Return the reader that an installed package declares.

    Raises:
        SourceError: no package declares the scheme.
    """
    from agent_reach.providers import plugin

    found = plugin.find(scheme)
    if found is None:
        import difflib

        close = difflib.get_close_matches(scheme, SCHEMES, n=1)
        hint = f"; {close[0]}:// exists" if close else f"; reach knows {', '.join(SCHEMES)}"
        raise SourceError(f"no provider serves {scheme}://{hint}")
    return found
