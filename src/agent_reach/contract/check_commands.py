"""`resources.commands`: programs by name, and what comes with them."""

from __future__ import annotations

from agent_reach.contract.fields import Fields, mistyped
from agent_reach.contract.lists import items_of, merge_list
from agent_reach.contract.model import CommandGrant
from agent_reach.contract.nodes import Map, Scalar
from agent_reach.contract.origin import origin_of
from agent_reach.contract.paths import resolve
from agent_reach.contract.scalars import kind_of
from agent_reach.contract.sink import Refusal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_reach.contract.nodes import Node
    from agent_reach.contract.sink import Sink

_HINT = "write `[git, {name: pg_dump, with: [perl]}]`"


def commands(node: Node | None, sink: Sink, *, complete: bool) -> tuple[CommandGrant, ...]:
    """Return the command grants of a holder.

    Args:
        node: ``resources.commands``, or the stack of its layers.
        sink: takes the findings.
        complete: whether every layer is there.
    """

    def read(part: Node) -> Iterator[tuple[str, CommandGrant, Node]]:
        for item in items_of(part, sink, _HINT):
            grant = _grant(item, sink)
            if grant is not None:
                yield grant.name, grant, item

    def named(name: str, _place: Node) -> Callable[[str], bool]:
        return lambda key: key == name

    return merge_list(node, read, named, sink, complete=complete)


def check_command(name: str) -> str:
    """Return the name of a command.

    Raises:
        Refusal: it is empty, a path, or more than one word.
    """
    if not name or "/" in name or name in (".", "..") or not name.isprintable() or " " in name:
        hint = "write its name alone, as found on PATH; arguments are not part of a grant"
        raise Refusal("E_VALUE", f"{shown(name)} is not the name of a command", hint)
    return name


def _grant(item: Node, sink: Sink) -> CommandGrant | None:
    if isinstance(item, Scalar) and kind_of(item) == "text":
        return _named(item.text, (), item, item, sink)
    if not isinstance(item, Map):
        mistyped(item, "text or a mapping", sink, _HINT)
        return None
    fields = Fields(item, "resources.commands[]", sink)
    if not fields.has("name"):
        sink.add(item, "E_MISSING", "`name` is absent", _HINT)
    if not fields.usable("name"):
        return None
    helpers = tuple(_helper(name, fields.place("with"), sink) for name in fields.texts("with"))
    return _named(fields.text("name"), helpers, item, fields.place("name"), sink)


def _named(name: str, helpers: tuple[str, ...], item: Node, place: Node, sink: Sink) -> CommandGrant | None:
    try:
        return CommandGrant(check_command(name), helpers, origin_of(item))
    except Refusal as refusal:
        sink.refuse(place, refusal)
        return None


def _helper(name: str, place: Node, sink: Sink) -> str:
    """Check one helper: a name on PATH or an absolute path, whose trailing slash is kept."""
    try:
        if not name.startswith("/"):
            return check_command(name)
        return resolve(name, "/", "") + ("/" if name.endswith("/") and name != "/" else "")
    except Refusal as refusal:
        sink.refuse(place, refusal)
        return name
