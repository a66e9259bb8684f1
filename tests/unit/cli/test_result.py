"""The result as JSON, on a file and on a descriptor."""

from __future__ import annotations

import json
import os

import pytest

from agent_reach.cli.options import UsageError
from agent_reach.cli.result import ResultFile
from agent_reach.errors import Unavailable
from agent_reach.outcome import Connection, Denial, Enforced, Place, Receipt, Result, Usage

RESULT = Result(
    run_id="6929c1-00",
    exit_code=137,
    signal=9,
    cause="limit",
    limit="memory",
    message="limits.memory reached",
    denials=(Denial("open", "/x\n", "not in resources.files", "- {path: /x}", Place("a.py", 3, "f")),),
    connections=(Connection("a.b", "10.0.0.1", 443),),
    usage=Usage(wall=1.5),
    receipt=Receipt("full", (Enforced("a", "enforced", "b"),), ("note",)),
)


def test_a_result_is_one_line_of_json(tmp_path) -> None:
    path = tmp_path / "out.json"
    path.write_text("something old and longer than what is written over it" * 100)
    ResultFile(str(path)).write(RESULT)
    text = path.read_text()
    assert text.count("\n") == 1
    value = json.loads(text)
    assert value["exit_code"] == 137
    assert value["cause"] == "limit"
    assert value["denials"] == [
        {
            "action": "open",
            "subject": "/x\n",
            "clause": "not in resources.files",
            "entry": "- {path: /x}",
            "place": {"file": "a.py", "line": 3, "function": "f"},
            "shown": True,
            "layer": "kernel",
            "count": 1,
        }
    ]
    assert value["receipt"] == {
        "tier": "full",
        "lines": [{"what": "a", "level": "enforced", "by": "b"}],
        "notes": ["note"],
    }
    assert value["error"] is None


def test_a_failure_has_the_same_keys(tmp_path) -> None:
    ResultFile(str(tmp_path / "good")).write(RESULT)
    ResultFile(str(tmp_path / "bad")).fail(Unavailable("tier `full`", fix="sysctl"), 125)
    good, bad = (json.loads((tmp_path / name).read_text()) for name in ("good", "bad"))
    assert good.keys() == bad.keys()
    assert (bad["cause"], bad["exit_code"], bad["error"]["code"]) == ("refused", 125, "unavailable")
    assert bad["error"]["fix"] == "sysctl"


def test_a_descriptor_is_written_and_stays_the_callers() -> None:
    read, write = os.pipe()
    ResultFile(f"fd:{write}").write(RESULT)
    os.close(write)  # still ours: it was duplicated
    with open(read, "rb") as stream:
        assert json.loads(stream.read())["run"] == "6929c1-00"


@pytest.mark.parametrize("text", ["fd:99", "fd:", "fd:x", "fd:-1", "fd:99999999999999999999"])
def test_a_descriptor_that_is_not_open_is_refused_before_anything_runs(text) -> None:
    with pytest.raises(UsageError, match="is not open"):
        ResultFile(text)


def test_without_the_option_nothing_is_written() -> None:
    out = ResultFile(None)
    out.write(RESULT)
    out.fail(ValueError(), 125)


def test_a_reader_that_has_gone_is_no_failure() -> None:
    read, write = os.pipe()
    os.close(read)
    ResultFile(f"fd:{write}").write(RESULT)
    os.close(write)
