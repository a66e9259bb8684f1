"""The JSON Schema of a contract, generated from the table; for editors and for `reach schema`."""

from __future__ import annotations

from agent_reach.contract.table import DOCUMENT, HOLDER, NOW, Key, children
from agent_reach.contract.units import DURATIONS, SIZES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ID = "https://json-schema.org/draft/2020-12/schema"
_NUMBER = "^[0-9]+([.][0-9]+)?"
_TEXTS = {"type": "array", "items": {"type": "string"}}
_SIMPLE: dict[str, dict[str, Any]] = {
    "count": {"type": "integer", "minimum": 1},
    "cpus": {"type": "number", "exclusiveMinimum": 0},
    "duration": {"type": "string", "pattern": f"{_NUMBER}({'|'.join(DURATIONS)})$"},
    "flag": {"type": "boolean"},
    "path": {"type": "string", "minLength": 1},
    "port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "rate": {"type": "string", "pattern": f"{_NUMBER}({'|'.join(SIZES)})(/s)?$"},
    "size": {"type": "string", "pattern": f"{_NUMBER}({'|'.join(SIZES)})$"},
    "text": {"type": "string"},
    "texts": _TEXTS,
    "value": {"type": ["string", "integer"]},
    "version": {"anyOf": [{"type": "string", "pattern": "^1([.]0)?$"}, {"enum": [1, 1.0]}]},
}
_REQUIRED = {
    "resources.files[]": ["path"],
    "resources.network.allow_outbound[]": ["host", "port"],
    "resources.commands[]": ["name"],
}


def schema() -> dict[str, Any]:
    """Return the schema as JSON values.

    It is looser than the checker where JSON Schema has no words for a rule: hosts, duplicates, names that must exist.
    """
    holder = {"$ref": "#/$defs/holder"}
    holders = {"type": "object", "additionalProperties": holder}
    properties: dict[str, Any] = {name: _described(key, _of_key(key)) for name, key in children(DOCUMENT, "").items()}
    properties |= {name: _described(children(DOCUMENT, "")[name], holders) for name in ("profiles", "targets")}
    properties |= {name: {"$ref": f"#/$defs/holder/properties/{name}"} for name in children(HOLDER, "")}
    return {
        "$schema": ID,
        "title": "reach contract",
        "type": "object",
        "required": ["version"],
        "properties": properties,
        "patternProperties": {"^(x-|base_)": {}},
        "additionalProperties": holder,
        "$defs": {"holder": _mapping("", HOLDER)},
    }


def _mapping(at: str, keys: tuple[Key, ...]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "type": "object",
        "properties": {name: _described(key, _of_key(key)) for name, key in children(keys, at).items()},
        "additionalProperties": False,
    }
    if at in _REQUIRED:
        result["required"] = _REQUIRED[at]
    return result


def _of_key(key: Key) -> dict[str, Any]:
    """Return the schema of the value of one key."""
    if key.status != NOW:
        return {"not": {}}
    special = _SPECIAL.get(key.path)
    if special is not None:
        return special
    if key.path.startswith("limits."):
        return _limit(key)
    build = _BUILDERS.get(key.type)
    return build(key) if build else dict(_SIMPLE[key.type])


def _env(key: Key) -> dict[str, Any]:
    entry = _entry(key)
    named = {**entry, "required": ["name"]}
    bare = {**entry, "properties": {name: part for name, part in entry["properties"].items() if name != "name"}}
    names = {"type": "object", "additionalProperties": {"anyOf": [_SIMPLE["value"], bare]}}
    return {"anyOf": [{"type": "array", "items": named}, names]}


def _limit(key: Key) -> dict[str, Any]:
    if key.type == "mapping":
        return _mapping(key.path, HOLDER)
    value = dict(_SIMPLE[key.type])
    if key.path == "limits.swap":
        value = {"anyOf": [value, {"const": 0}]}
    parts: dict[str, Any] = {"max": value, "enforced": _SIMPLE["flag"]}
    if key.path == "limits.scratch":
        parts["inodes"] = _SIMPLE["count"]
    return {"anyOf": [value, {"type": "object", "properties": parts, "additionalProperties": False}]}


def _entry(key: Key) -> dict[str, Any]:
    """Return the schema of an entry of a list."""
    return _mapping(f"{key.path}[]", HOLDER)


def _described(key: Key, part: dict[str, Any]) -> dict[str, Any]:
    words = key.doc if key.status == NOW else f"{key.doc} Not yet: refused with E_NOT_YET ({key.planned})."
    return {"description": words, **part}


_SPECIAL: dict[str, dict[str, Any]] = {
    "extends": {"anyOf": [{"type": "string"}, _TEXTS]},
    "allowed_files": {"$ref": "#/$defs/holder/properties/resources/properties/files"},
}
_BUILDERS: dict[str, Callable[[Key], dict[str, Any]]] = {
    "choice": lambda key: {"enum": list(key.values)},
    "commands": lambda key: {"type": "array", "items": {"anyOf": [{"type": "string"}, _entry(key)]}},
    "env": _env,
    "list": lambda key: {"type": "array", "items": _entry(key)},
    "mapping": lambda key: _mapping(key.path, HOLDER),
}
