"""From the bytes of a document to one resolved contract: read, check everything, choose, lay over, check again."""

from __future__ import annotations

import posixpath

from agent_reach.contract.check import check
from agent_reach.contract.digest import digest
from agent_reach.contract.documents import Document, Library, parse
from agent_reach.contract.sink import Sink, shown, suggestion
from agent_reach.errors import ContractError, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.contract.model import Contract
    from agent_reach.contract.nodes import Doc, Map

# Every profile is checked with all that it inherits, so that the work is the product of both.
MAX_WORK = 1 << 20


def compile_contract(
    data: bytes, doc: Doc, *, profile: str | None, targets: tuple[str, ...], home: str
) -> tuple[Contract, dict[str, bytes]]:
    """Return the contract of a document and the content of the other documents that took part, by path.

    Every profile and target is checked, not only the chosen ones.

    Args:
        data: content of the document.
        doc: what it is called.
        profile: the chosen profile, or None.
        targets: the chosen targets, in order.
        home: the caller's home.

    Raises:
        ContractError: with every finding.
    """
    sink = Sink()
    document = parse(data, doc, sink)
    if document is None:
        sink.raise_if_any()
        raise ContractError(())
    library = Library(document, sink)
    chosen = choose(document, profile, sink)
    _choose_targets(document, targets, sink)
    if len(data) * (1 + len(document.profiles) + len(document.targets)) > MAX_WORK:
        sink.add(document.root, "E_SIZE", "the contract has too many profiles for its size", "spread it over files")
        sink.raise_if_any()
    contracts = {
        name: check(library.whole(document, name), home, sink, complete=bool(name) or chosen == "")
        for name in ("", *document.profiles)
    }
    for name in document.targets:
        check(library.target(document, name), home, sink, complete=False)
    sink.raise_if_any()
    contract = contracts[chosen]
    if targets:
        contract = check(_with_targets(library, chosen, targets), home, sink)
        sink.raise_if_any()
    parts = library.parts
    return (
        contract.replace(path=doc.path, digest=_digest(data, doc, parts), profile=chosen, targets=targets),
        parts,
    )


def choose(document: Document, profile: str | None, sink: Sink) -> str:
    """Return the name of the profile to use, empty for the top level; a wrong choice is reported.

    Args:
        document: the contract.
        profile: what was asked for, or None.
        sink: takes the finding.
    """
    names = sorted(document.profiles)
    default = document.text("default_profile")
    if default is not None and default.text not in document.profiles:
        hint = suggestion(default.text, names) or f"the profiles are: {', '.join(names) or 'none'}"
        sink.add(default, "E_VALUE", f"there is no profile {shown(default.text)}", hint)
    if profile is not None:
        _check_choice(document, profile, sink)
        return profile
    if default is not None:
        return default.text
    if names and document.top.get("resources") is None:
        _refuse(document, f"choose a profile: {', '.join(names)} (--env {names[0]})", "", sink)
    return ""


def _check_choice(document: Document, profile: str, sink: Sink) -> None:
    if profile in document.profiles:
        return
    names = sorted(document.profiles)
    name, assigned, _value = profile.partition("=")
    if assigned:
        _refuse(document, f"--env names a profile; to pass a variable use --pass {name}", "", sink)
    elif profile in document.free:
        _refuse(document, f"{shown(profile)} is a block for anchors and cannot be run", _choices(names), sink)
    else:
        hint = suggestion(profile, names) or _choices(names)
        _refuse(document, f"there is no profile {shown(profile)}", hint, sink)


def _choices(names: list[str]) -> str:
    return f"choose a profile: {', '.join(names)} (--env {names[0]})" if names else "the contract has no profiles"


def _choose_targets(document: Document, targets: tuple[str, ...], sink: Sink) -> None:
    for target in targets:
        if target not in document.targets:
            names = sorted(document.targets)
            hint = suggestion(target, names) or f"the targets are: {', '.join(names) or 'none'}"
            _refuse(document, f"there is no target {shown(target)}", hint, sink)


def _refuse(document: Document, message: str, hint: str, sink: Sink) -> None:
    sink.note(Finding("E_CHOICE", message, file=document.doc.display, hint=hint))


def _with_targets(library: Library, chosen: str, targets: tuple[str, ...]) -> Map:
    document = library.main
    layers = [library.whole(document, chosen), *(library.target(document, target) for target in targets)]
    return library.laid(document, layers)


def _digest(data: bytes, doc: Doc, parts: dict[str, bytes]) -> str:
    """Return the digest of every document; names are relative, so that a checkout elsewhere has the same."""
    chunks = [data]
    for path in sorted(parts):
        chunks += [posixpath.relpath(path, doc.directory).encode("utf-8", "surrogateescape"), parts[path]]
    return digest(chunks)
