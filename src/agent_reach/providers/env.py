"""``env://NAME``: a variable of the caller."""

from __future__ import annotations

from agent_reach._util.visible import visible
from agent_reach.providers.faults import NotFoundError, SourceError
from agent_reach.providers.session import no_field, no_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.providers.session import Session
    from agent_reach.providers.uri import Ref


class EnvReader:
    """Reads the caller's environment, which was copied when reach started."""

    slow = False
    batched = False

    def __init__(self, session: Session) -> None:
        self._env = session.caller_env

    def locate(self, ref: Ref, base: str) -> Ref:  # noqa: ARG002 - same shape as every reader
        """Check that the path is one variable name."""
        no_field(ref)
        no_options(ref)
        if not ref.path.isidentifier() or not ref.path.isascii():
            raise SourceError("env:// is followed by one variable name")
        return ref

    def read(self, ref: Ref) -> str:
        """Return the variable, which may be empty.

        Raises:
            NotFoundError: the caller has no such variable.
        """
        value = self._env.get(ref.path)
        if value is None:
            raise NotFoundError(f"{visible(ref.path)} is not set")
        return value

    def describe(self, ref: Ref) -> str:
        """Name the variable."""
        return visible(ref.path)
