"""The small sections: identity, sandbox, options, project, python."""

from __future__ import annotations

from agent_reach.contract.fields import mapping_fields
from agent_reach.contract.model import Identity, Options, Sandbox
from agent_reach.contract.origin import origin_of
from agent_reach.contract.paths import resolve
from agent_reach.contract.sink import Refusal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.fields import Fields
    from agent_reach.contract.nodes import Node
    from agent_reach.contract.sink import Sink

_MAX_CLAIM = 256


def identity(node: Node | None, sink: Sink) -> Identity:
    """Return who runs."""
    fields = mapping_fields(node, "identity", sink)
    if fields is None:
        return Identity()
    kind, name, roles = fields.text("type", "service-account"), fields.text("name"), fields.texts("roles")
    for claim in (kind, name, *roles):
        if len(claim) > _MAX_CLAIM:
            sink.add(fields.mapping, "E_VALUE", f"{shown(claim)} is longer than {_MAX_CLAIM} characters")
    return Identity(kind, name, roles)


def sandbox(node: Node | None, sink: Sink) -> Sandbox:
    """Return how strong the sandbox has to be."""
    fields = mapping_fields(node, "sandbox", sink)
    if fields is None or not fields.usable("minimum"):
        return Sandbox()
    return Sandbox(fields.text("minimum"), origin_of(fields.place("minimum")))


def options(node: Node | None, sink: Sink) -> Options:
    """Return how the run behaves."""
    fields = mapping_fields(node, "options", sink)
    if fields is None:
        return Options()
    return Options(
        context_isolation=fields.flag("context_isolation", default=True),
        disable_pycache=fields.flag("disable_pycache"),
        multiprocessing_start_method=fields.text("multiprocessing_start_method"),
        on_denial=fields.text("on_denial", "continue"),
    )


def project_read(node: Node | None, sink: Sink) -> str:
    """Return what of the project may be read."""
    fields = mapping_fields(node, "project", sink)
    return fields.text("read", "all") if fields else "all"


def python(fields: Fields, home: str, sink: Sink) -> str:
    """Return the interpreter: a name or version stays, a path is made absolute from the file that holds it."""
    written = fields.text("python")
    if "/" not in written and not written.startswith("~"):
        return written
    place = fields.place("python")
    try:
        return resolve(written, place.doc.directory, home)
    except Refusal as refusal:
        sink.refuse(place, refusal)
        return ""
