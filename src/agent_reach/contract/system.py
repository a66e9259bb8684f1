"""Contracts of the system (`/etc/reach/*.yaml`): they take away, and never add.

A section that a system contract has is an upper bound; one that it does not have bounds nothing. Sections that cannot
bound anything yet are refused, because a line that an administrator wrote and nobody holds is worse than none.
"""

from __future__ import annotations

import os
import posixpath

from agent_reach.contract import cache
from agent_reach.contract.owner import read_owned
from agent_reach.contract.rights import mode_of, rights_of
from agent_reach.contract.sink import Refusal
from agent_reach.contract.table import PROJECT_READ, TIERS
from agent_reach.errors import ContractError, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.model import Contract, EnvGrant, FileGrant, Limit

_BOUNDS = (
    "resources.files",
    "resources.env",
    "resources.network",
    "resources.commands",
    "limits",
    "sandbox",
    "project",
)


def policies(directory: str) -> tuple[str, ...]:
    """Return the system's contracts in the order of their names.

    Args:
        directory: usually ``/etc/reach``.

    Raises:
        ContractError: the directory is there and cannot be read.
    """
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise ContractError((Finding("E_FILE", f"cannot be read: {error.strerror}", file=directory),)) from None
    return tuple(posixpath.join(directory, name) for name in sorted(names) if name.endswith(".yaml"))


def narrow(contract: Contract, paths: tuple[str, ...], *, home: str, cache_dir: str | None) -> Contract:
    """Return what every one of the system's contracts leaves of a contract; notes say what was taken.

    Args:
        contract: the contract.
        paths: the system's contracts.
        home: the caller's home.
        cache_dir: directory of compiled contracts, or None.

    Raises:
        ContractError: one of them cannot be used.
    """
    for path in paths:
        bound = _load(path, home, cache_dir)
        contract = _narrow_one(contract, bound, path)
    return contract


def _load(path: str, home: str, cache_dir: str | None) -> Contract:
    """Return a system contract; its notes are the sections that it has."""
    try:
        data = read_owned(path)
    except Refusal as refusal:
        raise ContractError((Finding(refusal.code, refusal.message, file=path, hint=refusal.hint),)) from None
    key = cache.entry_key(("system", path, home), data)
    found = cache.fetch(cache_dir, key) if cache_dir else None
    if found is not None:
        return found
    bound = _compile(data, path, home)
    if cache_dir:
        cache.store(cache_dir, key, bound, {})
    return bound


def _compile(data: bytes, path: str, home: str) -> Contract:
    from agent_reach.contract.check import check
    from agent_reach.contract.documents import parse
    from agent_reach.contract.nodes import Doc, Map
    from agent_reach.contract.sink import Sink

    sink = Sink()
    document = parse(data, Doc(path, path, posixpath.dirname(path)), sink)
    sink.raise_if_any()
    if document is None:
        raise ContractError((Finding("E_EMPTY", "the contract is empty", file=path),))
    present = []
    for name, entry in document.top.entries.items():
        below = entry.value.entries if name == "resources" and isinstance(entry.value, Map) else {}
        present += [f"resources.{part}" for part in below] if name == "resources" else [name]
        if name != "resources" and name not in _BOUNDS:
            sink.add(entry.key, "E_NOT_YET", f"{name} in a contract of the system (planned: system contracts)")
    if document.profiles or document.targets:
        sink.add(document.root, "E_VALUE", "a contract of the system has no profiles and no targets")
    bound = check(document.top, home, sink)
    sink.raise_if_any()
    return bound.replace(path=path, notes=tuple(present))


def _narrow_one(contract: Contract, bound: Contract, path: str) -> Contract:
    has = frozenset(bound.notes)
    result = contract
    if "resources.files" in has:
        result = result.replace(files=_files(contract.files, bound.files))
    if "resources.env" in has:
        result = result.replace(env=_env(contract.env, bound.env))
    if "resources.network" in has:
        allowed = {(rule.host, rule.port, rule.protocol) for rule in bound.network}
        kept = tuple(rule for rule in contract.network if (rule.host, rule.port, rule.protocol) in allowed)
        result = result.replace(network=kept)
    if "resources.commands" in has:
        names = {grant.name: set(grant.with_) for grant in bound.commands}
        kept_commands = tuple(g for g in contract.commands if g.name in names and names[g.name].issuperset(g.with_))
        result = result.replace(commands=kept_commands)
    if "project" in has:
        result = result.replace(project_read=min(contract.project_read, bound.project_read, key=PROJECT_READ.index))
    if TIERS.index(bound.sandbox.minimum) > TIERS.index(contract.sandbox.minimum) and "sandbox" in has:
        result = result.replace(sandbox=bound.sandbox)
    result = result.replace(limits=_limits(contract.limits, bound.limits))
    return result.replace(notes=(*contract.notes, *_notes(contract, result, path)))


def _files(grants: tuple[FileGrant, ...], bounds: tuple[FileGrant, ...]) -> tuple[FileGrant, ...]:
    """Return the common part of every grant and every bound, the widest mode for each path."""
    kept: dict[str, FileGrant] = {}
    for grant in grants:
        for bound in bounds:
            common = _common(grant, bound)
            old = kept.get(common.path) if common else None
            if common and (old is None or rights_of(common.mode) & ~rights_of(old.mode)):
                kept[common.path] = common
    return tuple(kept.values())


def _common(grant: FileGrant, bound: FileGrant) -> FileGrant | None:
    rights = rights_of(grant.mode) & rights_of(bound.mode)
    mode = grant.mode if rights == rights_of(grant.mode) else mode_of(rights)
    if not rights or mode is None:
        return None
    if grant.glob or bound.glob:
        inside = grant.path == bound.path or (not bound.glob and _below(_fixed_part(grant.path), bound.path))
        return grant.replace(mode=mode) if inside else None
    if _below(grant.path, bound.path):
        return grant.replace(mode=mode)
    if _below(bound.path, grant.path) and not grant.source:
        return grant.replace(path=bound.path, mode=mode, directory=bound.directory, required=False)
    return None


def _below(path: str, directory: str) -> bool:
    """Whether a path is a directory or below it, as written and with every symbolic link followed."""
    return _is_prefix(path, directory) and _is_prefix(os.path.realpath(path), os.path.realpath(directory))


def _is_prefix(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _fixed_part(pattern: str) -> str:
    """Return the directory in front of the first wildcard."""
    parts = pattern.split("/")
    fixed = next((place for place, part in enumerate(parts) if not set("*?[").isdisjoint(part)), len(parts))
    return "/".join(parts[:fixed]) or "/"


def _env(grants: tuple[EnvGrant, ...], bounds: tuple[EnvGrant, ...]) -> tuple[EnvGrant, ...]:
    names = {bound.name for bound in bounds}
    prefixes = tuple(name.removesuffix("*") for name in names if name.endswith("*"))
    return tuple(grant for grant in grants if grant.name in names or (prefixes and grant.name.startswith(prefixes)))


def _limits(
    have: tuple[tuple[str, Limit], ...], bounds: tuple[tuple[str, Limit], ...]
) -> tuple[tuple[str, Limit], ...]:
    limits = dict(have)
    for name, bound in bounds:
        own = limits.get(name)
        nearer = bound if own is None or bound.value < own.value else own
        limits[name] = nearer.replace(enforced=bound.enforced or (own is not None and own.enforced))
    return tuple(limits.items())


def _notes(before: Contract, after: Contract, path: str) -> list[str]:
    """Say what a contract of the system took away."""
    gone = [
        *(f"file {grant.path}" for grant in before.files if grant not in after.files),
        *(f"variable {grant.name}" for grant in before.env if grant not in after.env),
        *(f"{rule.host}:{rule.port}" for rule in before.network if rule not in after.network),
        *(f"command {grant.name}" for grant in before.commands if grant not in after.commands),
    ]
    return [f"narrowed by {path}: {', '.join(gone)}" if gone else f"bounded by {path}"]
