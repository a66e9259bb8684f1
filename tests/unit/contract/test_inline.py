"""A contract inside a script (PEP 723)."""

import json

import pytest

from agent_reach.contract.inline import contract_in
from agent_reach.errors import ContractError

SCRIPT = b"""#!/usr/bin/env python3
# /// script
# requires-python = ">=3.11"
# [tool.reach]
# version = "1"
# [tool.reach.limits]
# wall = "5s"
# ///
print("hello")
"""


def test_the_table_is_the_contract():
    found = contract_in(SCRIPT, "job.py")
    assert json.loads(found) == {"version": "1", "limits": {"wall": "5s"}}


@pytest.mark.parametrize(
    "source", [b"print(1)\n", b"# /// script\n# dependencies = []\n# ///\n", b"# /// script\nx = 1\n"]
)
def test_a_script_without_the_table_has_no_contract(source):
    assert contract_in(source, "job.py") is None


def test_dependencies_become_packages_so_that_they_are_never_ignored():
    source = SCRIPT.replace(b"# requires-python", b'# dependencies = ["requests"]\n# requires-python')
    assert json.loads(contract_in(source, "job.py"))["packages"] == {"requirements": ["requests"]}


@pytest.mark.parametrize(
    ("source", "line"),
    [(b"\n# /// script\n# = 1\n# ///\n", 2), (SCRIPT + SCRIPT, 11)],
    ids=["no TOML", "two blocks"],
)
def test_a_block_that_cannot_be_read_is_refused_with_its_line(source, line):
    with pytest.raises(ContractError) as refused:
        contract_in(source, "job.py")
    assert (refused.value.findings[0].file, refused.value.findings[0].line) == ("job.py", line)


@pytest.mark.parametrize("block", ["tool = 1", "[tool]", 'dependencies = ["a"]'])
def test_other_values_of_tool_are_no_contract(block: str) -> None:
    source = "# /// script\n# " + block + "\n# ///\n"
    assert contract_in(source.encode(), "job.py") is None


def test_a_contract_that_is_no_table_is_the_readers_to_refuse() -> None:
    source = '# /// script\n# dependencies = ["a"]\n# tool = {reach = 5}\n# ///\n'
    assert contract_in(source.encode(), "job.py") == b"5"
