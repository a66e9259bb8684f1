"""A holder of sections, completely laid over each other, to the typed parts of a contract."""

from __future__ import annotations

from agent_reach.contract.check_commands import commands
from agent_reach.contract.check_env import env
from agent_reach.contract.check_files import files
from agent_reach.contract.check_limits import limits
from agent_reach.contract.check_network import network
from agent_reach.contract.check_settings import identity, options, project_read, python, sandbox
from agent_reach.contract.fields import Fields, mapping_fields
from agent_reach.contract.model import Contract
from agent_reach.contract.nodes import Map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.sink import Sink


def check(holder: Map, home: str, sink: Sink, *, complete: bool = True) -> Contract:
    """Return the grants of a holder; path, digest, profile and targets are the caller's to fill in.

    Args:
        holder: all layers as one, see `merge.overlay_all`.
        home: the caller's home, for ``~``.
        sink: takes every finding of the pass.
        complete: whether every layer is there; only then a name that leads nowhere is a mistake.
    """
    top = Fields(holder, "", sink)
    resources = mapping_fields(top.node("resources"), "resources", sink)
    if resources is None:
        resources = Fields(Map(holder.doc, holder.line, holder.column, "resources", {}), "resources", sink)
    return Contract(
        identity=identity(top.node("identity"), sink),
        files=files(resources.node("files"), home, sink, complete=complete),
        env=env(resources.node("env"), sink, complete=complete),
        network=network(resources.node("network"), sink, complete=complete),
        commands=commands(resources.node("commands"), sink, complete=complete),
        limits=limits(top.node("limits"), sink),
        sandbox=sandbox(top.node("sandbox"), sink),
        options=options(top.node("options"), sink),
        project_read=project_read(top.node("project"), sink),
        python=python(top, home, sink),
    )
