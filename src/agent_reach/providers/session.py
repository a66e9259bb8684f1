"""What all readers of one resolution share."""

from __future__ import annotations

import os

from agent_reach.providers.faults import SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from agent_reach.providers.config import UserConfig
    from agent_reach.providers.content import Content
    from agent_reach.providers.uri import Ref

    class Reader(Protocol):
        """One provider during one resolution.

        ``slow`` says whether a read may wait for something outside this process; ``batched`` whether one call
        should take every read at once.
        """

        slow: bool
        batched: bool

        def locate(self, ref: Ref, base: str) -> Ref:
            """Bring a URI into the form under which two entries share one read; no waiting."""

        def read(self, ref: Ref) -> Content:
            """Ask the source for everything at the path."""

        def describe(self, ref: Ref) -> str:
            """Name the place in messages."""

    class BatchReader(Reader, Protocol):
        """A provider that takes every read of a run in one call."""

        def read_all(self, refs: Sequence[Ref]) -> list[Content | Exception]:
            """Return an answer or a fault for each URI, in order."""


class Session:
    """The caller's side of one resolution.

    Args:
        caller_env: the caller's environment, which providers may use and the program never sees.
        home: the caller's home directory, absolute.
        user_config: the user's configuration, or None to read it when a provider asks for it.
    """

    def __init__(self, caller_env: Mapping[str, str], home: str, user_config: UserConfig | None) -> None:
        self.caller_env = caller_env
        self.home = home
        self._config = user_config

    @property
    def config(self) -> UserConfig:
        """The user's configuration, read once.

        Raises:
            SourceError: the file cannot be used.
        """
        if self._config is None:
            from agent_reach.providers.config import read_config

            self._config = read_config(self.home)
        return self._config


def absolute(path: str, base: str, home: str) -> str:
    """Resolve the path of a URI: absolute, below ``~``, or relative to the document that holds it.

    Args:
        path: path of the URI.
        base: directory of the declaring document, absolute.
        home: the caller's home directory.
    """
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return os.path.normpath(os.path.join(base, path))


def no_field(ref: Ref) -> None:
    """Refuse ``#field`` where a source has one value.

    Raises:
        SourceError: the URI has a field.
    """
    if ref.field:
        raise SourceError(f"{ref.scheme}:// has one value and takes no #field")


def no_options(ref: Ref, *known: str) -> None:
    """Refuse options that a provider does not know.

    Raises:
        SourceError: the URI has another option.
    """
    for name, _value in ref.options:
        if name not in known:
            raise SourceError(f"{ref.scheme}:// has no option `{name}`")
