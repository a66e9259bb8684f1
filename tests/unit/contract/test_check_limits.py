from __future__ import annotations

import pytest

from agent_reach.contract.check_limits import limit_names, value_of
from agent_reach.contract.sink import Refusal
from unit.contract.support import loaded, refusal, refused


def limits(text: str) -> dict[str, tuple[float, bool]]:
    return {name: (limit.value, limit.enforced) for name, limit in loaded(f"limits: {text}\n").limits}


def test_every_limit() -> None:
    text = (
        "{wall: 10m, grace: 500ms, cpu_time: 1h, cpus: 0.5, memory: 512MiB, swap: 0, processes: 64, open_files: 256,"
        " scratch: {max: 1GiB, inodes: 1000}, output: 8MB, io: {read: 10MiB/s, write: 5MiB}}"
    )
    assert limits(text) == {
        "wall": (600.0, False),
        "grace": (0.5, False),
        "cpu_time": (3600.0, False),
        "cpus": (0.5, False),
        "memory": (2**29, False),
        "swap": (0, False),
        "processes": (64, False),
        "open_files": (256, False),
        "scratch": (2**30, False),
        "scratch_inodes": (1000, False),
        "output": (8_000_000, False),
        "io_read": (10 * 2**20, False),
        "io_write": (5 * 2**20, False),
    }
    assert set(limits(text)) == set(limit_names())


def test_enforced() -> None:
    assert limits("{memory: {max: 1GiB, enforced: true}, cpus: {max: 2}}") == {
        "cpus": (2.0, False),
        "memory": (2**30, True),
    }
    assert limits("{io: {read: {max: 1MiB, enforced: true}}}") == {"io_read": (2**20, True)}
    assert limits("{scratch: {inodes: 10}}") == {"scratch_inodes": (10, False)}


def test_a_limit_that_is_not_written_is_not_there() -> None:
    assert limits("{}") == {}
    assert loaded("").limits == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{wall: 60}", "E_UNIT"),
        ("{wall: 0s}", "E_VALUE"),
        ("{memory: 512}", "E_UNIT"),
        ("{memory: 512M}", "E_UNIT"),
        ("{processes: -3}", "E_VALUE"),
        ("{processes: 0}", "E_VALUE"),
        ("{processes: 1.5}", "E_VALUE"),
        ("{processes: many}", "E_VALUE"),
        ("{processes: 99999999999999}", "E_VALUE"),
        ("{cpus: 0}", "E_VALUE"),
        ("{cpus: -1}", "E_VALUE"),
        ("{cpus: .inf}", "E_VALUE"),
        ("{cpus: .nan}", "E_VALUE"),
        ("{cpus: 1e9}", "E_VALUE"),
        ("{memory: }", "E_TYPE"),
        ("{memory: true}", "E_TYPE"),
        ("{memory: [1GiB]}", "E_TYPE"),
        ("{memory: {enforced: true}}", "E_MISSING"),
        ("{memory: {max: 1GiB, enforcd: true}}", "E_UNKNOWN_KEY"),
        ("{memory: {max: 1GiB, enforced: 'yes'}}", "E_TYPE"),
        ("{memory: {max: 1GiB, inodes: 5}}", "E_UNKNOWN_KEY"),
        ("{timeout: 5m}", "E_UNKNOWN_KEY"),
        ("{io: 5MiB}", "E_TYPE"),
        ("{io: {reed: 5MiB}}", "E_UNKNOWN_KEY"),
        ("5m", "E_TYPE"),
        ("{bandwidth: {in: 1MiB}}", "E_NOT_YET"),
        ("{connections: 5}", "E_NOT_YET"),
        ("{cell: 60s}", "E_NOT_YET"),
        ("{idle: 60s}", "E_NOT_YET"),
        ("{lifetime: 60s}", "E_NOT_YET"),
    ],
)
def test_what_is_no_limit(text: str, code: str) -> None:
    assert refusal(f"limits: {text}\n").code == code


def test_several_mistakes_at_once() -> None:
    findings = refused("limits:\n  wall: 5 minuts\n  memory: 256MB2\n  processes: -3\n")
    assert [(finding.line, finding.key) for finding in findings] == [
        (3, "limits.wall"),
        (4, "limits.memory"),
        (5, "limits.processes"),
    ]


def test_values_of_the_command_line() -> None:
    assert value_of("io_read", "1MiB/s") == 2**20
    assert value_of("scratch_inodes", "5") == 5
    with pytest.raises(Refusal):
        value_of("wall", "5")
