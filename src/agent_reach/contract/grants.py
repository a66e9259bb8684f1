"""Grants of the command line, added to a contract."""

from __future__ import annotations

import os

from agent_reach._util.record import Record
from agent_reach.contract import hosts, paths
from agent_reach.contract.check_commands import check_command
from agent_reach.contract.check_limits import limit_names, value_of
from agent_reach.contract.model import CommandGrant, EnvGrant, FileGrant, Limit, NetRule, Origin
from agent_reach.contract.rights import mode_of, rights_of
from agent_reach.contract.sink import Refusal, shown, suggestion
from agent_reach.contract.templates import is_name
from agent_reach.errors import ContractError, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from agent_reach.contract.model import Contract

    Grant = TypeVar("Grant")

CLI = Origin("cli")
_MAX_PORT = 65535


class Additions(Record):
    """Values of ``--read --write --net --pass --command --limit``, in order."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    net: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


def add(contract: Contract, additions: Additions, *, cwd: str, home: str) -> Contract:
    """Return a contract with the additions; what is granted already stays granted.

    Args:
        contract: the contract.
        additions: what to add.
        cwd: absolute directory of relative paths; the working directory when empty.
        home: the caller's home.

    Raises:
        ContractError: with every finding.
    """
    findings: list[Finding] = []
    base = cwd or os.getcwd()
    added = [
        *_each("--read", additions.read, lambda text: _file(text, "r", base, home), findings),
        *_each("--write", additions.write, lambda text: _file(text, "w", base, home), findings),
    ]
    result = contract.replace(
        files=_with_files(contract.files, added, findings),
        network=_joined(contract.network, _each("--net", additions.net, _rule, findings), _rule_key),
        env=_joined(contract.env, _each("--pass", additions.passes, _pass, findings), lambda grant: grant.name),
        commands=_joined(contract.commands, _each("--command", additions.commands, _command, findings), _command_key),
        limits=tuple({**dict(contract.limits), **dict(_each("--limit", additions.limits, _limit, findings))}.items()),
    )
    if findings:
        raise ContractError(tuple(findings))
    return result


def _each(option: str, texts: Iterable[str], read: Callable[[str], Grant], findings: list[Finding]) -> list[Grant]:
    values = []
    for text in texts:
        try:
            values.append(read(text))
        except Refusal as refusal:
            findings.append(Finding(refusal.code, refusal.message, file="cli", key=option, hint=refusal.hint))
    return values


def _joined(have: tuple[Grant, ...], added: list[Grant], key: Callable[[Grant], object]) -> tuple[Grant, ...]:
    by_key = {key(grant): grant for grant in have}
    by_key.update({key(grant): grant for grant in added})
    return tuple(by_key.values())


def _with_files(have: tuple[FileGrant, ...], added: list[FileGrant], findings: list[Finding]) -> tuple[FileGrant, ...]:
    by_path = {grant.path: grant for grant in have}
    for grant in added:
        old = by_path.get(grant.path)
        by_path[grant.path] = grant if old is None else _union(old, grant, findings)
    return tuple(by_path.values())


def _union(old: FileGrant, new: FileGrant, findings: list[Finding]) -> FileGrant:
    rights = rights_of(old.mode) | rights_of(new.mode)
    if rights == rights_of(old.mode):
        return old
    mode = mode_of(rights)
    if mode is None or old.source:
        why = "only appended to" if mode is None else f"staged from {shown(old.source)}"
        message = f"{shown(old.path)} is {why} under the contract, and no mode adds this to it"
        findings.append(Finding("E_VALUE", message, file="cli", hint="change its mode in the contract"))
        return old
    return old.replace(mode=mode, origin=CLI)


def _file(text: str, mode: str, cwd: str, home: str) -> FileGrant:
    path, glob = paths.resolve(text, cwd, home), paths.is_glob(text)
    if glob and mode != "r":
        raise Refusal("E_PATH", f"{shown(text)} is a pattern, and patterns are read-only", "grant the directory")
    return FileGrant(path, mode, directory=paths.is_directory(text), glob=glob, origin=CLI)


def _rule(text: str) -> NetRule:
    host, colon, port = text.rpartition(":")
    if not colon:
        raise Refusal("E_VALUE", f"{shown(text)} has no port", "write host:port, such as db.internal:5432")
    name = hosts.canonical(host)
    if not (port.isascii() and port.isdigit() and port[0] != "0" and len(port) < 6 and int(port) <= _MAX_PORT):
        raise Refusal("E_VALUE", f"the port {shown(port)} is out of range", "a port is one number from 1 to 65535")
    return NetRule(name, int(port), origin=CLI)


def _rule_key(rule: NetRule) -> object:
    return rule.host, rule.port, rule.protocol


def _pass(text: str) -> EnvGrant:
    name, assigned, _value = text.partition("=")
    if assigned:
        raise Refusal("E_VALUE", f"--pass takes a name, not a value: {shown(name)}", "the value is the caller's own")
    if not is_name(text.removesuffix("*")):
        raise Refusal("E_VALUE", f"{shown(text)} is not the name of a variable")
    return EnvGrant(text, origin=CLI)


def _command(text: str) -> CommandGrant:
    return CommandGrant(check_command(text), origin=CLI)


def _command_key(grant: CommandGrant) -> object:
    return grant.name


def _limit(text: str) -> tuple[str, Limit]:
    written, assigned, value = text.partition("=")
    name, names = written.replace("io.", "io_"), limit_names()
    if not assigned:
        raise Refusal("E_VALUE", f"{shown(text)} has no value", "write name=value, such as memory=512MiB")
    if name not in names:
        hint = suggestion(name, names) or f"the limits are: {', '.join(names)}"
        raise Refusal("E_UNKNOWN_KEY", f"there is no limit {shown(written)}", hint)
    return name, Limit(value_of(name, value), origin=CLI)
