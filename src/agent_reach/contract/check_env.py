"""`resources.env`: names, sources, defaults, templates."""

from __future__ import annotations

from agent_reach.contract.fields import Fields, convert, mistyped
from agent_reach.contract.lists import maps_of, merge_list
from agent_reach.contract.model import EnvGrant
from agent_reach.contract.nodes import Bad, Map, Node, Scalar
from agent_reach.contract.origin import origin_of
from agent_reach.contract.scalars import kind_of
from agent_reach.contract.sink import shown
from agent_reach.contract.table import key_at
from agent_reach.contract.templates import is_name, names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_reach.contract.sink import Sink

# Programs read the content of these through a path, so that `file://` has to deliver one.
PATH_VARIABLES = ("SSL_CERT_FILE", "KUBECONFIG", "GOOGLE_APPLICATION_CREDENTIALS")
PATH_PREFIXES = ("PGSSL",)
PATH_SUFFIXES = ("_CA_BUNDLE", "_FILE")
# libpq's other PGSSL* variables are words, not paths (PostgreSQL documentation, 34.15).
_WORDS = ("PGSSLMODE", "PGSSLNEGOTIATION", "PGSSLCOMPRESSION", "PGSSLSNI", "PGSSLCERTMODE", "PGSSLMINPROTOCOLVERSION")
_WORDS_TOO = ("PGSSLMAXPROTOCOLVERSION",)
_HINT = "write `- {name: DB_HOST, default: localhost}` or `DB_HOST: localhost`"
_DEFAULT = key_at("resources.env[].default")


def env(node: Node | None, sink: Sink, *, complete: bool) -> tuple[EnvGrant, ...]:
    """Return the environment grants of a holder.

    Args:
        node: ``resources.env`` in either form, or the stack of its layers.
        sink: takes the findings.
        complete: whether every layer is there, so that a template can be held against its names.
    """
    places: dict[str, Node] = {}

    def read(part: Node) -> Iterator[tuple[str, EnvGrant, Node]]:
        pairs = _from_map(part, sink) if isinstance(part, Map) else _from_list(part, sink)
        for grant, place in pairs:
            places[grant.name] = place
            yield grant.name, grant, place

    def named(name: str, _place: Node) -> Callable[[str], bool]:
        return lambda key: key == name

    grants = merge_list(node, read, named, sink, complete=complete)
    if complete:
        _check_templates(grants, places, sink)
    return grants


def _from_list(part: Node, sink: Sink) -> Iterator[tuple[EnvGrant, Node]]:
    for entry in maps_of(part, sink, _HINT):
        fields = Fields(entry, "resources.env[]", sink)
        if not fields.has("name"):
            sink.add(entry, "E_MISSING", "`name` is absent", _HINT)
        elif fields.usable("name") and _good_name(fields.text("name"), fields.place("name"), sink):
            yield _grant(fields.text("name"), fields, sink), entry


def _from_map(part: Map, sink: Sink) -> Iterator[tuple[EnvGrant, Node]]:
    for name, entry in part.entries.items():
        key, value = entry.key, entry.value
        if isinstance(value, Bad) or not _good_name(name, key, sink):
            continue
        if isinstance(value, Map):
            fields = Fields(value, "resources.env[]", sink)
            if fields.has("name"):
                sink.add(fields.place("name"), "E_UNKNOWN_KEY", "the name stands before the colon already")
            yield _grant(name, fields, sink, key), key
        elif isinstance(value, Scalar) and kind_of(value) == "null":
            mistyped(value, "a value or a mapping", sink, 'write {} to pass it through, "" for an empty value')
        else:
            text = convert(value, _DEFAULT, sink)
            if isinstance(text, str) and _no_prefix(name, key, sink):
                yield EnvGrant(name, default=text, origin=origin_of(key)), key


def _grant(name: str, fields: Fields, sink: Sink, place: Node | None = None) -> EnvGrant:
    source, template = fields.text("source"), fields.text("template")
    if fields.usable("source"):
        _check_source(source, fields.place("source"), sink)
    if fields.usable("template") and not names_in(template):
        sink.add(fields.place("template"), "E_VALUE", f"{shown(template)} has no place", "write {NAME}")
    if fields.has("template") and (fields.has("source") or fields.has("default")):
        sink.add(fields.place("template"), "E_VALUE", "a `template` is the value; it has no `source` or `default`")
    if any(fields.has(other) for other in ("source", "default", "template")):
        _no_prefix(name, fields.mapping, sink)
    default = fields.text("default") if fields.usable("default") else None
    return EnvGrant(
        name=name,
        source=source,
        default=default,
        required=fields.flag("required", default=bool(source) and not fields.has("default")),
        allow_empty=fields.flag("allow_empty"),
        deliver=fields.text("deliver", _delivery(name, source)),
        template=template,
        origin=origin_of(place or fields.mapping),
    )


def _delivery(name: str, source: str) -> str:
    if not source.startswith("file://") or name in (*_WORDS, *_WORDS_TOO):
        return "value"
    is_path = name in PATH_VARIABLES or name.startswith(PATH_PREFIXES) or name.endswith(PATH_SUFFIXES)
    return "file" if is_path else "value"


def _good_name(name: str, place: Node, sink: Sink) -> bool:
    bare = name.removesuffix("*")
    if is_name(bare):
        return True
    hint = "use letters, digits and `_`, not a digit first; a prefix ends with `*`"
    sink.add(place, "E_VALUE", f"{shown(name)} is not the name of a variable", hint)
    return False


def _no_prefix(name: str, place: Node, sink: Sink) -> bool:
    if name.endswith("*"):
        sink.add(place, "E_VALUE", f"{shown(name)} passes variables through, and has no value of its own")
        return False
    return True


def _check_source(source: str, place: Node, sink: Sink) -> None:
    scheme, mark, rest = source.partition("://")
    if not mark or not rest or not scheme.replace("+", "").replace("-", "").replace("_", "").isalnum():
        hint = "write scheme://path, such as env://NAME or vault://secret/app/db#password"
        sink.add(place, "E_VALUE", f"{shown(source)} is not a source", hint)
    elif "${" in source:
        sink.add(place, "E_VALUE", f"{shown(source)} holds a variable; nothing is expanded in a source")


def _check_templates(grants: tuple[EnvGrant, ...], places: dict[str, Node], sink: Sink) -> None:
    by_name = {grant.name: grant for grant in grants}
    for grant in grants:
        for name in names_in(grant.template):
            if name not in by_name:
                message = f"the template of {shown(grant.name)} uses {shown(name)}, which is not in `env`"
                sink.add(places[grant.name], "E_VALUE", message, f"add `- {{name: {name}}}`")
            elif by_name[name].template:
                message = f"the template of {shown(grant.name)} uses {shown(name)}, which is a template itself"
                sink.add(places[grant.name], "E_VALUE", message, "write that one out")
