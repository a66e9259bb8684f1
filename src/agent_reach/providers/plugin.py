"""Providers of other packages: entry points of the group ``agent_reach.providers``."""

from __future__ import annotations

from agent_reach._util.visible import visible
from agent_reach.providers.faults import NotFoundError, SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.providers.content import Content
    from agent_reach.providers.uri import Ref

GROUP = "agent_reach.providers"


class PluginReader:
    """Calls one installed function ``provider(path) -> str | bytes | dict | None``.

    Args:
        function: what the entry point names; None means *not found*, an exception *cannot answer*.
    """

    slow = True
    batched = False

    def __init__(self, function: Callable[[str], object]) -> None:
        self._function = function

    def locate(self, ref: Ref, base: str) -> Ref:  # noqa: ARG002 - same shape as every reader
        """Leave the URI as it is: the path belongs to the provider."""
        return ref

    def read(self, ref: Ref) -> Content:
        """Call the function with the path, and the options when there are any.

        Raises:
            NotFoundError: it returned None.
            SourceError: it raised, or returned something else.
        """
        options = "&".join(f"{name}={value}" for name, value in ref.options)
        try:
            answer = self._function(f"{ref.path}?{options}" if options else ref.path)
        except Exception as error:  # noqa: BLE001 - a provider may raise anything; its text could hold the value
            raise SourceError(f"the provider for {ref.scheme}:// failed ({type(error).__name__})") from None
        if answer is None:
            raise NotFoundError(f"the provider for {ref.scheme}:// has no `{visible(ref.path)}`")
        if isinstance(answer, (str, bytes)):
            return answer
        if isinstance(answer, dict):
            return {str(key): value for key, value in answer.items()}
        raise SourceError(f"the provider for {ref.scheme}:// answered neither text nor a mapping")

    def describe(self, ref: Ref) -> str:
        """Name the path."""
        return visible(ref.path)


def find(scheme: str) -> PluginReader | None:
    """Load the provider that an installed package declares for a scheme, or return None.

    Args:
        scheme: a scheme that reach itself does not know.

    Raises:
        SourceError: it cannot be imported, or two packages declare it.
    """
    from importlib.metadata import entry_points

    found = {point.value: point for point in entry_points(group=GROUP, name=scheme)}
    if not found:
        return None
    if len(found) > 1:
        raise SourceError(f"several packages provide {scheme}://: {', '.join(sorted(found))}")
    (point,) = found.values()
    try:
        function = point.load()
    except Exception as error:  # noqa: BLE001 - importing a package may raise anything
        raise SourceError(f"the provider {point.value} cannot be loaded ({type(error).__name__})") from None
    if not callable(function):
        raise SourceError(f"the provider {point.value} is not a function")
    return PluginReader(function)
