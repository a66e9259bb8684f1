from __future__ import annotations

import pytest

from agent_reach.contract.model import Identity, Options, Origin, Sandbox
from unit.contract.support import PATH, loaded, refusal


def test_defaults() -> None:
    contract = loaded("")
    assert contract.identity == Identity("service-account", "", ())
    assert contract.sandbox == Sandbox("reduced")
    assert contract.options == Options(context_isolation=True)
    assert contract.project_read == "all"
    assert contract.python == ""


def test_values() -> None:
    contract = loaded(
        "identity: {type: user, name: alice, roles: [a, b]}\n"
        "sandbox: {minimum: full}\n"
        "options: {context_isolation: false, disable_pycache: true, on_denial: kill,"
        " multiprocessing_start_method: spawn}\n"
        "project: {read: code}\n"
        "python: ./venv/bin/python\n"
    )
    assert contract.identity == Identity("user", "alice", ("a", "b"))
    assert contract.sandbox == Sandbox("full", Origin(PATH, 3))
    assert contract.options == Options(
        context_isolation=False, disable_pycache=True, multiprocessing_start_method="spawn", on_denial="kill"
    )
    assert contract.project_read == "code"
    assert contract.python == "/srv/job/venv/bin/python"


@pytest.mark.parametrize(
    ("written", "python"),
    [("python3.12", "python3.12"), ("'3.12'", "3.12"), ("~/v/bin/python", "/home/alice/v/bin/python")],
)
def test_interpreters(written: str, python: str) -> None:
    assert loaded(f"python: {written}\n").python == python


@pytest.mark.parametrize(
    ("text", "code", "key"),
    [
        ("python: 3.10", "E_TYPE", "python"),
        ("identity: {naem: x}", "E_UNKNOWN_KEY", "identity.naem"),
        ("identity: {name: 5}", "E_TYPE", "identity.name"),
        ('identity: {name: "a\\u001bb"}', "E_VALUE", "identity.name"),
        ("identity: {roles: admin}", "E_TYPE", "identity.roles"),
        ("identity: {roles: [1]}", "E_TYPE", "identity.roles[0]"),
        ("identity: [a]", "E_TYPE", "identity"),
        (f"identity: {{name: {'x' * 300}}}", "E_VALUE", "identity"),
        ("sandbox: {minimum: ful}", "E_VALUE", "sandbox.minimum"),
        ("sandbox: full", "E_TYPE", "sandbox"),
        ("options: {on_denial: ask}", "E_VALUE", "options.on_denial"),
        ("options: {disable_pycache: 'true'}", "E_TYPE", "options.disable_pycache"),
        ("options: {disable_pycache: yes}", "E_TYPE", "options.disable_pycache"),
        ("options: {multiprocessing_start_method: thread}", "E_VALUE", "options.multiprocessing_start_method"),
        ("project: {read: some}", "E_VALUE", "project.read"),
    ],
)
def test_refusals(text: str, code: str, key: str) -> None:
    finding = refusal(f"{text}\n")
    assert (finding.code, finding.key) == (code, key)


@pytest.mark.parametrize(
    "text",
    [
        "packages: {requirements: r.txt}",
        "pip_dependencies: [requests]",
        "scripts: {'jobs/*.py': {extends: worker}}",
        "options: {static: warn}",
        "options: {strict: true}",
        "options: {preload: [numpy]}",
        "sandbox: {backend: oci}",
        "sandbox: {runtime: runsc}",
        "sandbox: {image: x}",
        "resources: {sockets: [/run/x]}",
        "resources: {devices: [/dev/x]}",
        "resources: {network: {expose: [8080]}}",
    ],
)
def test_planned_keys_have_a_code_of_their_own(text: str) -> None:
    finding = refusal(f"{text}\n")
    assert finding.code == "E_NOT_YET"
    name = finding.key.rpartition(".")[2]
    assert finding.message.startswith(f"{name} (planned: ")
