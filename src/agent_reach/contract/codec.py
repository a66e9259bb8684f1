"""Resolved contracts as JSON values and back, by the annotations of the records.

What comes back from a file is checked field by field: a value of another type is a `Mismatch`, never a contract.
"""

from __future__ import annotations

from agent_reach.contract import model
from agent_reach.contract.model import Contract

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach._util.record import Record

_RECORDS: dict[str, type[Record]] = {
    record.__name__: record
    for record in (
        model.Origin,
        model.Identity,
        model.FileGrant,
        model.EnvGrant,
        model.NetRule,
        model.CommandGrant,
        model.Limit,
        model.Sandbox,
        model.Options,
        model.Contract,
    )
}


class Mismatch(Exception):  # noqa: N818 - the answer is "not from the cache", nothing failed
    """The value is not an encoded contract of this version."""


def encode(value: object) -> object:
    """Return a record as a list of its field values, deeply."""
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    fields = getattr(type(value), "_fields", None)
    return [encode(getattr(value, name)) for name in fields] if fields else value


def decode(value: object) -> Contract:
    """Return the contract that was encoded.

    Raises:
        Mismatch: anything in it has another type or number of fields.
    """
    contract = _decode(value, "Contract")
    if not isinstance(contract, Contract):
        raise Mismatch
    return contract


def _decode(value: object, kind: str) -> object:
    """Return a value of the annotated type `kind`, such as ``str | None`` or ``tuple[tuple[str, Limit], ...]``."""
    if kind in _RECORDS:
        return _decode_record(value, _RECORDS[kind])
    if kind.startswith("tuple["):
        return _decode_tuple(value, kind.removeprefix("tuple[").removesuffix("]"))
    check = _SIMPLE.get(kind)
    if check is None or not check(value):
        raise Mismatch
    return value


def _decode_record(value: object, record: type[Record]) -> object:
    annotations = record.__annotations__
    if not isinstance(value, list) or len(value) != len(record._fields):
        raise Mismatch
    return record(*[_decode(item, annotations[name]) for name, item in zip(record._fields, value, strict=True)])


def _decode_tuple(value: object, inner: str) -> object:
    if not isinstance(value, list):
        raise Mismatch
    if inner.endswith(", ..."):
        kind = inner.removesuffix(", ...")
        return tuple([_decode(item, kind) for item in value])
    kinds = inner.split(", ")
    if len(kinds) != len(value):
        raise Mismatch
    return tuple([_decode(item, kind) for item, kind in zip(value, kinds, strict=True)])


_SIMPLE: dict[str, Callable[[object], bool]] = {
    "str": lambda value: type(value) is str,
    "int": lambda value: type(value) is int,
    "bool": lambda value: type(value) is bool,
    "float": lambda value: type(value) in (int, float),
    "str | None": lambda value: value is None or type(value) is str,
}
