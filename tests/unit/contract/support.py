"""Contracts from text, and their findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_reach.contract.load import load
from agent_reach.errors import ContractError

if TYPE_CHECKING:
    from agent_reach.contract.model import Contract
    from agent_reach.errors import Finding

VERSION = 'version: "1.0"\n'
HOME = "/home/alice"
PATH = "/srv/job/reach.yaml"


def loaded(
    text: str | bytes,
    profile: str | None = None,
    targets: tuple[str, ...] = (),
    *,
    path: str = PATH,
    home: str = HOME,
) -> Contract:
    """Return the contract of a text; `version` stands in front of it unless it is bytes."""
    data = text if isinstance(text, bytes) else (VERSION + text).encode()
    return load(path, profile=profile, targets=targets, home=home, origin_name="reach.yaml", data=data)


def refused(text: str | bytes, profile: str | None = None, targets: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """Return every finding of a text that has some."""
    with pytest.raises(ContractError) as caught:
        loaded(text, profile, targets)
    assert caught.value.findings
    return caught.value.findings


def refusal(text: str | bytes, profile: str | None = None, targets: tuple[str, ...] = ()) -> Finding:
    """Return the only finding of a text."""
    findings = refused(text, profile, targets)
    assert len(findings) == 1, findings
    return findings[0]
