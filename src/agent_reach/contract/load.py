"""Contracts for every door: find one, load it, add grants of the command line, narrow it by the system's."""

from __future__ import annotations

import os
import posixpath

from agent_reach.contract import cache
from agent_reach.contract.model import Contract
from agent_reach.contract.owner import check_owner, read_owned
from agent_reach.contract.sink import Refusal
from agent_reach.errors import ContractError, Finding

_LONGEST_HEAD = 1 << 18

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def load(
    path: str,
    *,
    profile: str | None = None,
    targets: tuple[str, ...] = (),
    home: str,
    cache_dir: str | None = None,
    origin_name: str | None = None,
    data: bytes | None = None,
) -> Contract:
    """Return a resolved contract.

    Args:
        path: the document; relative paths in it start from its directory.
        profile: name of the profile, or None for the contract's own choice.
        targets: names of targets, merged last in this order.
        home: the caller's home, for ``~``; empty when there is none.
        cache_dir: directory of compiled contracts, or None.
        origin_name: what messages call the document instead of `path`, such as ``fd:3``.
        data: its content, when it was read already.

    Raises:
        ContractError: with every finding; nothing of a wrong contract is used.
    """
    absolute = posixpath.abspath(path)
    content = _content(path, absolute, origin_name) if data is None else data
    key = ""
    if cache_dir is not None:
        choice = ("-",) if profile is None else ("=", profile)
        key = cache.entry_key((absolute, home, *choice, *targets), content)
        found = cache.fetch(cache_dir, key)
        if found is not None:
            return found
    from agent_reach.contract.compile import compile_contract
    from agent_reach.contract.nodes import Doc

    doc = Doc(origin_name or path, absolute, posixpath.dirname(absolute))
    contract, others = compile_contract(content, doc, profile=profile, targets=targets, home=home)
    if cache_dir is not None:
        cache.store(cache_dir, key, contract, others)
    return contract


def empty(path: str = "") -> Contract:
    """Return the contract of a run that has none: nothing is granted but the project's own files.

    Args:
        path: absolute path that the project is found from, or empty.
    """
    return Contract(path=path, digest="", notes=("no contract: nothing is granted",))


def choose_profile(option: str | None, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the profile to ask for, and a remark when it comes from REACH_ENV.

    Args:
        option: value of ``--env``, which always wins, or None.
        environ: the caller's environment.
    """
    if option is not None:
        return option, ""
    named = environ.get("REACH_ENV", "")
    return (named, f"profile {named} from REACH_ENV") if named else (None, "")


def inline(script: str) -> bytes | None:
    """Return the contract that a script holds itself (PEP 723, ``[tool.reach]``), or None.

    Args:
        script: absolute path.

    Raises:
        ContractError: the block cannot be read, or somebody else could have written the script.
    """
    try:
        with open(script, "rb", buffering=0) as stream:
            status = os.fstat(stream.fileno())
            head = stream.read(_LONGEST_HEAD)
    except OSError:
        return None
    if b"# /// script" not in head:
        return None
    from agent_reach.contract.inline import contract_in

    found = contract_in(head, script)
    if found is not None:
        try:
            check_owner(script, status)
        except Refusal as refusal:
            raise _error(refusal, script) from None
    return found


def discover(script: str | None, cwd: str, home: str) -> str | None:
    """Return the path of the contract that belongs to a script, or None.

    Args:
        script: the script, or None for ``-m``, ``-c`` and standard input.
        cwd: absolute working directory.
        home: the caller's home, where the way upward ends.

    Raises:
        ContractError: one was found that somebody else could have written (``E_PERMISSIONS``).
    """
    from agent_reach.contract.discover import find

    return find(script, cwd, home)


def with_cli_grants(
    contract: Contract,
    *,
    read: tuple[str, ...] = (),
    write: tuple[str, ...] = (),
    net: tuple[str, ...] = (),
    passes: tuple[str, ...] = (),
    commands: tuple[str, ...] = (),
    limits: tuple[str, ...] = (),
    cwd: str = "",
    home: str = "",
) -> Contract:
    """Return a contract with what the command line adds; every addition has the origin ``cli``.

    Args:
        contract: the contract.
        read: paths to read, relative to `cwd`.
        write: paths to write, relative to `cwd`.
        net: ``host:port``.
        passes: names of variables that pass through.
        commands: names of commands.
        limits: ``name=value``.
        cwd: absolute directory that relative paths start from; the working directory when empty.
        home: the caller's home, for ``~``.

    Raises:
        ContractError: with every finding.
    """
    if not (read or write or net or passes or commands or limits):
        return contract
    from agent_reach.contract.grants import Additions, add

    return add(contract, Additions(read, write, net, passes, commands, limits), cwd=cwd, home=home)


def narrow_by_system(
    contract: Contract, directory: str = "/etc/reach", *, home: str = "", cache_dir: str | None = None
) -> Contract:
    """Return what is left of a contract under the contracts of the system, which can only take away.

    Args:
        contract: the contract, with the grants of the command line.
        directory: where the system's contracts are.
        home: the caller's home, for ``~``.
        cache_dir: directory of compiled contracts, or None.

    Raises:
        ContractError: one of them cannot be used; it is never passed over.
    """
    if not os.path.lexists(directory):
        return contract
    from agent_reach.contract.system import narrow, policies

    names = policies(directory)
    return narrow(contract, names, home=home, cache_dir=cache_dir) if names else contract


def _content(path: str, absolute: str, origin_name: str | None) -> bytes:
    try:
        return read_owned(absolute)
    except Refusal as refusal:
        raise _error(refusal, origin_name or path) from None


def _error(refusal: Refusal, name: str) -> ContractError:
    """Return the failure of a whole document."""
    return ContractError((Finding(refusal.code, refusal.message, file=name, hint=refusal.hint),))
