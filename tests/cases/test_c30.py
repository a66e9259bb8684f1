"""C30: a database client that has never heard of HTTP_PROXY.

`fake_pg.py` listens on the host's 127.0.0.1:18432, which the contract grants, and on 18433, which it does not.
"""

from __future__ import annotations

import errno
import re
import socket
import subprocess
import sys
import time

import pytest

FIRST_TWO = ["1 by address: N", "2 by name: N"]
CLOSED = ["1 by address: refused (ConnectionRefusedError)", "2 by name: refused (ConnectionRefusedError)"]
# CONTRACT section 6: "a connect to one where nobody inside listens is ECONNREFUSED to the program".
OTHERS = [
    "3 other port: refused (ConnectionRefusedError)",
    "4 own server, urllib: hello",
    "5 own server, localhost: hello",
    "6 socketpair: x",
    "7 unknown name: gaierror",
    "8 udp: no answer",
]


class Databases:
    """A running fake_pg.py."""

    def __init__(self, here):
        self.process = subprocess.Popen(
            [sys.executable, "fake_pg.py"], cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "up\n", self.process.stderr.read()

    def lines(self):
        """End it, and return what it printed after `up`."""
        self.process.kill()
        output, errors = self.process.communicate(timeout=60)
        assert errors == "", "fake_pg.py needs the ports 18432 and 18433 of 127.0.0.1"
        return output.splitlines()


@pytest.fixture
def here(case):
    return case("C30")


def _is_taken(lock):
    try:
        lock.bind("\0reach-case-c30")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return True
    return False


@pytest.fixture
def ports():
    """Hold the ports that the case's programs name against other runs of these tests on this machine."""
    with socket.socket(socket.AF_UNIX) as lock:
        deadline = time.monotonic() + 300
        while _is_taken(lock):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield


@pytest.fixture
def databases(here, ports):
    running = Databases(here)
    yield running
    running.process.kill()
    running.process.communicate()


def denials(done):
    """Return action, subject and count of how often it is shown, for each denial of a run."""
    blocks = re.findall(r"^reach: denied (\w+) (\S+)", done.stderr, flags=re.MULTILINE)
    assert sorted(blocks) == sorted((denial["action"], denial["subject"]) for denial in done.result["denials"])
    return blocks


def test_rows_1_to_8_eight_lines(here, databases, run_full):
    done = run_full(["run", "input.py"], cwd=here)
    assert (done.returncode, done.stdout.splitlines()) == (0, FIRST_TWO + OTHERS)


def test_row_9_the_database_sees_two_connections_and_the_other_port_none(here, databases, run_full):
    assert run_full(["run", "input.py"], cwd=here).returncode == 0
    assert databases.lines() == ["connection on 18432"] * 2


def test_row_10_the_report_names_each_refusal_once_with_the_entry_to_add(here, databases, run_full):
    done = run_full(["run", "input.py"], cwd=here)
    assert denials(done) == [("connect", "127.0.0.1:18433"), ("resolve", "db.internal.invalid:5432")]
    assert done.stderr.count(" (reach.yaml:5)\n") == 2  # where the section is written
    for entry in (
        "{host: 127.0.0.1, port: 18433, protocol: tcp}",
        "{host: db.internal.invalid, port: 5432, protocol: tcp}",
    ):
        assert done.stderr.count(f"to allow it add:  - {entry}\n") == 1


def test_row_10_the_entry_that_the_report_names_opens_the_port(here, databases, run_full):
    done = run_full(["run", "input.py"], cwd=here)
    (entry,) = (denial["entry"] for denial in done.result["denials"] if denial["subject"] == "127.0.0.1:18433")
    contract = here / "reach.yaml"
    text = contract.read_text()
    contract.write_text(text.replace("    allow_outbound:\n", f"    allow_outbound:\n      {entry}\n"))
    assert contract.read_text() != text
    done = run_full(["run", "input.py"], cwd=here)
    assert done.stdout.splitlines() == [*FIRST_TWO, "3 other port: N", *OTHERS[1:]]
    assert denials(done) == [("resolve", "db.internal.invalid:5432")]


def test_row_11_under_the_closed_contract_the_first_two_are_refused(here, databases, run_full):
    start = time.monotonic()
    done = run_full(["run", "--contract", "reach-closed.yaml", "input.py"], cwd=here)
    # "Nothing takes longer than 5 s": line 8 waits for 2 of them, the other lines share one such bound.
    assert time.monotonic() - start < 5 + 2
    assert (done.returncode, done.stdout.splitlines()) == (0, CLOSED + OTHERS)
    assert databases.lines() == []


def test_row_11_and_its_report_names_them_once_each(here, databases, run_full):
    done = run_full(["run", "--contract", "reach-closed.yaml", "input.py"], cwd=here)
    shown = denials(done)
    assert len(shown) == len(set(shown))
    subjects = {subject for _, subject in shown} - {"[::1]:18432"}  # localhost may be asked for as ::1 too
    assert subjects == {"127.0.0.1:18432", "127.0.0.1:18433", "db.internal.invalid:5432"}
