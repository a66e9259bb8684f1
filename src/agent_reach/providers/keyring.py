"""``keyring://SERVICE/USERNAME``: the desktop's keyring, through the `keyring` package (an extra)."""

from __future__ import annotations

from agent_reach._util.visible import visible
from agent_reach.providers.faults import NotFoundError, SourceError
from agent_reach.providers.session import no_field, no_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.providers.session import Session
    from agent_reach.providers.uri import Ref


class KeyringReader:
    """Asks the keyring backend that the `keyring` package chooses."""

    slow = True
    batched = False

    def __init__(self, session: Session) -> None:
        """Take nothing: the keyring finds its own way to the desktop."""
        del session

    def locate(self, ref: Ref, base: str) -> Ref:  # noqa: ARG002 - same shape as every reader
        """Check that service and user name are there."""
        no_field(ref)
        no_options(ref)
        service, _mark, user = ref.path.rpartition("/")
        if not service or not user:
            raise SourceError("keyring:// is followed by SERVICE/USERNAME")
        return ref

    def read(self, ref: Ref) -> str:
        """Return the password.

        Raises:
            NotFoundError: the keyring has none.
            SourceError: there is no keyring, or it cannot be opened.
        """
        import importlib

        try:
            keyring = importlib.import_module("keyring")
        except ImportError:
            raise SourceError("the keyring package is missing; pip install 'agent-reach-runtime[keyring]'") from None
        service, _mark, user = ref.path.rpartition("/")
        try:
            password: str | None = keyring.get_password(service, user)
        except Exception as error:  # noqa: BLE001 - a backend may raise anything, with anything in its text
            raise SourceError(f"the keyring failed ({type(error).__name__})") from None
        if password is None:
            raise NotFoundError(f"the keyring has no password of `{visible(user)}` for `{visible(service)}`")
        return password

    def describe(self, ref: Ref) -> str:
        """Name service and user."""
        return visible(ref.path)
