"""`reach check`: what is wrong with a contract, for people, editors and CI. Nothing is run."""

from __future__ import annotations

from agent_reach import prepare
from agent_reach._util.record import Record
from agent_reach._util.visible import visible
from agent_reach.cli import advice, failures, request
from agent_reach.cli.clauses import shorten
from agent_reach.cli.options import UsageError
from agent_reach.cli.terminal import paint_for, say
from agent_reach.errors import ContractError, Finding, ReachError
from agent_reach.host.caller import look_at_caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_reach.audit.canonical import Json
    from agent_reach.cli.options import Parsed
    from agent_reach.cli.terminal import Paint
    from agent_reach.contract.model import Contract
    from agent_reach.host.model import Caller
    from agent_reach.prepare import Request

_FINDINGS = 1
_UNUSABLE = 2


class Checked(Record):
    """What came of a check.

    Args:
        path: the contract, as a person in the working directory would write it.
        profiles: those that were checked; empty for the top level alone.
        findings: what is wrong.
        usable: whether a run could use it.
    """

    path: str
    profiles: tuple[str, ...]
    findings: tuple[Finding, ...]
    usable: bool


def execute(parsed: Parsed, environ: Mapping[str, str]) -> int:
    """Check a contract: the named profile, else every one.

    Raises:
        UsageError: the command line cannot be understood, or there is no contract.
    """
    form = parsed.one("--format") or "text"
    if form not in {"text", "json"}:
        raise UsageError(f"--format {form}: text or json")
    try:
        checked = check(request.for_contract(parsed), environ, save=parsed.has("--save"))
    except (ReachError, failures.NotRunnable, OSError) as error:
        say(failures.words(error))
        return _UNUSABLE
    if form == "json":
        _print_json(checked)
    else:
        _print_text(checked, paint_for(1, environ))
    return 0 if not checked.findings else _FINDINGS if checked.usable else _UNUSABLE


def check(asked: Request, environ: Mapping[str, str], *, save: bool = False) -> Checked:
    """Load every profile in question and gather the findings.

    Args:
        asked: the request; without a profile every one is checked.
        environ: the caller's environment.
        save: write the grants of the command line into the profile.

    Raises:
        UsageError: there is no contract.
    """
    caller = look_at_caller(environ)
    try:
        path, data = prepare.find_document(asked, caller)
    except ContractError as error:
        return _unusable(error, asked.target, caller)
    if not path:
        raise UsageError("there is no contract here", "name one, or write one with `reach init`")
    shown = shorten(path, caller.cwd)
    try:
        names = _profiles(path, data) if asked.profile is None else (asked.profile,)
        found = asked.replace(contract=path, contract_data=data)
        contracts = [_load(found.replace(profile=name), environ, caller) for name in names]
        if save:
            _save(asked, contracts, caller)
    except ContractError as error:
        return _unusable(error, shown, caller)
    findings = {finding: None for contract in contracts for finding in advice.findings(contract, shown, caller.home)}
    return Checked(shown, tuple(name for name in names if name), tuple(findings), usable=True)


def _save(asked: Request, contracts: list[Contract], caller: Caller) -> None:
    """Write the grants of the command line into the one profile that is meant.

    Raises:
        UsageError: several could be.
    """
    from agent_reach.cli.save import save

    if len(contracts) > 1:
        raise UsageError("--save needs one profile", "name it with --env")
    save(asked, contracts[0], caller)


def _profiles(path: str, data: bytes | None) -> tuple[str | None, ...]:
    """Return every profile, and None for the top level where it can be run alone.

    Raises:
        ContractError: the document cannot be read.
    """
    from agent_reach.contract.documents import parse
    from agent_reach.contract.nodes import Doc
    from agent_reach.contract.owner import read_owned
    from agent_reach.contract.sink import Refusal, Sink

    try:
        content = read_owned(path) if data is None else data
    except Refusal as refusal:
        raise ContractError((Finding(refusal.code, refusal.message, file=path, hint=refusal.hint),)) from None
    document = parse(content, Doc(path, path, ""), Sink())
    if document is None or not document.profiles:
        return (None,)
    return (*([None] if document.top.get("resources") else []), *sorted(document.profiles))


def _load(asked: Request, environ: Mapping[str, str], caller: Caller) -> Contract:
    """Load one profile with what the command line adds, as a run would; REACH_ENV does not choose here."""
    where = prepare.places(environ, caller.home, use_cache=asked.use_cache)
    others = {name: value for name, value in environ.items() if name != "REACH_ENV"}
    return prepare.find_contract(asked, caller, where, others)


def _unusable(error: ContractError, shown: str, caller: Caller) -> Checked:
    """Return what to say of a contract that cannot be used."""
    findings = tuple(finding.replace(file=shorten(finding.file, caller.cwd)) for finding in error.findings)
    return Checked(shown, (), findings, usable=False)


def _print_text(checked: Checked, paint: Paint) -> None:
    """Print one finding a line, as compilers do, and a verdict."""
    for finding in checked.findings:
        head, _, hint = str(finding).partition("\n")
        print(visible(head))
        if hint:
            print(f"    {visible(hint.strip())}")
    count = len(checked.findings)
    profiles = f" (profiles {', '.join(checked.profiles)})" if checked.profiles else ""
    if not count:
        print(f"{visible(checked.path)}: {paint('green', 'clean')}{profiles}")
        return
    verdict = paint("yellow", "usable") if checked.usable else paint("red", "cannot be used")
    print(f"{visible(checked.path)}: {verdict}, {count} finding{'s' * (count != 1)}{profiles}")


def _print_json(checked: Checked) -> None:
    """Print everything as one JSON value."""
    import json

    value: dict[str, Json] = {
        "contract": checked.path,
        "profiles": list(checked.profiles),
        "usable": checked.usable,
        "findings": [failures.finding_json(finding) for finding in checked.findings],
    }
    print(json.dumps(value))
