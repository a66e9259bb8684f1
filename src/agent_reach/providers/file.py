"""``file://./path``, ``file:///path``, ``file://~/path``: the content of a file of the caller."""

from __future__ import annotations

from agent_reach._util.visible import visible
from agent_reach.providers.content import MAX_ANSWER
from agent_reach.providers.files import read_regular
from agent_reach.providers.session import absolute, no_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.providers.session import Session
    from agent_reach.providers.uri import Ref


class FileReader:
    """Reads regular files with the caller's rights; ``#key`` names a key of a JSON object in one."""

    slow = False
    batched = False

    def __init__(self, session: Session) -> None:
        self._home = session.home

    def locate(self, ref: Ref, base: str) -> Ref:
        """Make the path absolute."""
        no_options(ref)
        return ref.replace(path=absolute(ref.path, base, self._home))

    def read(self, ref: Ref) -> bytes:
        """Return every byte of the file."""
        return read_regular(ref.path, MAX_ANSWER)

    def describe(self, ref: Ref) -> str:
        """Name the file."""
        return visible(ref.path)
