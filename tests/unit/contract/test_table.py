from __future__ import annotations

import importlib.util
import os
import re

import agent_reach.contract
from agent_reach.contract.codes import CODES
from agent_reach.contract.table import DOCUMENT, HOLDER, NOW, TYPES, children, key_at

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PACKAGE = os.path.dirname(agent_reach.contract.__file__)


def test_every_key_is_there_once_with_a_known_type() -> None:
    paths = [key.path for key in (*DOCUMENT, *HOLDER)]
    assert len(set(paths)) == len(paths)
    assert {key.type for key in (*DOCUMENT, *HOLDER)} <= set(TYPES)
    assert all(key.doc.endswith(".") for key in (*DOCUMENT, *HOLDER))


def test_planned_keys_say_of_what_and_choices_have_values() -> None:
    for key in (*DOCUMENT, *HOLDER):
        assert bool(key.planned) is (key.status != NOW)
        assert bool(key.values) is (key.type == "choice" and key.status == NOW)


def test_children() -> None:
    assert set(children(HOLDER, "resources.files[]")) == {"path", "mode", "required", "source", "sha256"}
    assert set(children(HOLDER, "limits.io")) == {"read", "write"}
    assert children(HOLDER, "resources.files[].path") == {}
    assert key_at("limits.memory").name == "memory"


def test_every_code_that_is_used_is_explained_and_every_one_explained_is_used() -> None:
    used: set[str] = set()
    for folder, _folders, names in os.walk(os.path.dirname(PACKAGE)):
        for name in names:
            if name.endswith(".py") and name != "codes.py":
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    used.update(re.findall(r'"([EW]_[A-Z_]+)"', file.read()))
    assert used == set(CODES), "contract/codes.py explains every code of a finding; then tools/gen_contract_docs.py"


def test_the_documents_are_those_of_the_table() -> None:
    spec = importlib.util.spec_from_file_location("gen_contract_docs", os.path.join(ROOT, "tools/gen_contract_docs.py"))
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    with open(os.path.join(ROOT, "docs/contract.md"), encoding="utf-8") as file:
        assert file.read() == tool.contract_page()
    with open(os.path.join(ROOT, "docs/reach.schema.json"), encoding="utf-8") as file:
        assert file.read() == tool.schema_text()


def test_the_package_knows_no_kernel() -> None:
    for name in os.listdir(PACKAGE):
        if name.endswith(".py"):
            with open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
                text = file.read()
            assert not re.search(r"agent_reach\.(linux|host)|\bctypes\b", text), name
