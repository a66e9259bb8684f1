from __future__ import annotations

import pytest

from agent_reach.contract.model import CommandGrant
from unit.contract.support import loaded, refusal


def commands(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(grant.name, grant.with_) for grant in loaded(f"resources: {{commands: {text}}}\n").commands]


def test_names_and_helpers() -> None:
    assert commands("[git, {name: pg_dump, with: [perl, /usr/lib/postgresql/]}]") == [
        ("git", ()),
        ("pg_dump", ("perl", "/usr/lib/postgresql/")),
    ]
    assert commands("[]") == []
    assert isinstance(loaded("resources: {commands: [git]}\n").commands[0], CommandGrant)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[/usr/bin/git]", "E_VALUE"),
        ("[./git]", "E_VALUE"),
        ("['git status']", "E_VALUE"),
        ("['']", "E_VALUE"),
        ("['..']", "E_VALUE"),
        ('["a\\nb"]', "E_VALUE"),
        ("[3.10]", "E_TYPE"),
        ("git", "E_TYPE"),
        ("[[git]]", "E_TYPE"),
        ("[{with: [perl]}]", "E_MISSING"),
        ("[{name: git, wiht: [perl]}]", "E_UNKNOWN_KEY"),
        ("[{name: git, with: perl}]", "E_TYPE"),
        ("[{name: git, with: [lib/x]}]", "E_VALUE"),
        ("[{name: git, with: ['/usr/${X}']}]", "E_PATH"),
        ("[git, git]", "E_DUPLICATE_ENTRY"),
        ("[git, {name: git}]", "E_DUPLICATE_ENTRY"),
    ],
)
def test_what_is_no_command(text: str, code: str) -> None:
    assert refusal(f"resources: {{commands: {text}}}\n").code == code
