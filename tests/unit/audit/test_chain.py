"""The log: one event one line, nothing half-written, and every later change is found."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys

import pytest

from agent_reach.audit.journal import Journal
from agent_reach.audit.place import record_place
from agent_reach.audit.query import entries, find, latest, parsed, verify
from agent_reach.audit.store import fold
from agent_reach.errors import Unavailable


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "state" / "reach")


def write(place, *numbers, **more):
    with Journal(place) as journal:
        return [journal.append({"event": "run", "run": f"{number:04d}abcd", **more}) for number in numbers]


def runs(place):
    return [parsed(entry).get("run") for entry in entries(place)]


def journal_file(place):
    (name,) = [name for name in os.listdir(place) if name.startswith("journal.")]
    return os.path.join(place, name)


# -- the ordinary way ------------------------------------------------------------------------------------


def test_records_come_back_in_order_from_journal_and_database(place):
    write(place, 1, 2)
    with Journal(place) as journal:
        fold(journal)
    assert not os.path.exists(os.path.join(place, "journal.1"))
    write(place, 3)
    assert verify(place).whole
    assert runs(place) == ["0001abcd", "0002abcd", "0003abcd"]
    assert [entry.seq for entry in latest(place, 2)] == [2, 3]
    verdict = verify(place)
    assert (verdict.count, verdict.problems) == (3, ())
    assert verdict.head == entries(place)[-1].hash


def test_no_log_is_an_empty_one(place):
    assert entries(place) == []
    assert verify(place).whole
    assert not os.path.exists(place)


def test_the_database_uses_wal_and_refuses_changes(place):
    write(place, 1)
    entries(place)
    with sqlite3.connect(os.path.join(place, "records.db")) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        for change in ("DELETE FROM records", "UPDATE records SET body = ''"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                database.execute(change)
    database.close()


def test_only_the_owner_can_read(place):
    os.makedirs(place, mode=0o755)
    write(place, 1)
    entries(place)
    write(place, 2)
    assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
    for name in os.listdir(place):
        assert stat.S_IMODE(os.stat(os.path.join(place, name)).st_mode) == 0o600, name


def test_find_by_the_start_of_the_identifier(place):
    write(place, 1, 2)
    assert parsed(find(place, "0002"))["run"] == "0002abcd"
    with pytest.raises(LookupError, match="2 runs start with `000`: 0001abcd, 0002abcd"):
        find(place, "000")
    for nothing in ("9", "", "%"):
        with pytest.raises(LookupError, match="no run starts with"):
            find(place, nothing)


def test_place(tmp_path):
    assert record_place({"XDG_STATE_HOME": "/s"}, "/h") == "/s/reach"
    default = "/var/lib/reach" if os.geteuid() == 0 else "/h/.local/state/reach"
    assert record_place({}, "/h") == record_place({"XDG_STATE_HOME": "relative"}, "/h") == default


def test_a_place_that_cannot_be_used_says_no_record(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="--no-record"):
        Journal(str(tmp_path / "file" / "reach"))
    with pytest.raises(Unavailable, match=r"Permission denied|Read-only|No such file"):
        Journal("/proc/reach")


def test_symbolic_links_in_the_place_are_not_followed(place, tmp_path):
    os.makedirs(place)
    os.symlink(tmp_path / "elsewhere", os.path.join(place, "journal.1"))
    with Journal(place) as journal, pytest.raises(OSError, match="Too many levels"):
        journal.append({"event": "run"})
    assert not (tmp_path / "elsewhere").exists()


# -- several processes -----------------------------------------------------------------------------------

WRITER = """
import sys
from agent_reach.audit.journal import Journal
with Journal(sys.argv[1]) as journal:
    for number in range(int(sys.argv[3])):
        journal.append({"event": "run", "run": f"{sys.argv[2]}{number:05d}", "fill": "x" * 100_000})
        print(number, flush=True)
"""


def writer(place, name, count):
    command = [sys.executable, "-c", WRITER, place, name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_append_while_a_third_folds(place):
    with writer(place, "a", 40) as one, writer(place, "b", 40) as two:
        while one.stdout.readline() and two.stdout.readline():
            with Journal(place) as journal:
                fold(journal)
        one.stdout.read(), two.stdout.read()
    assert (one.returncode, two.returncode) == (0, 0)
    assert sorted(runs(place)) == sorted(f"{name}{number:05d}" for name in "ab" for number in range(40))
    assert verify(place).problems == ()


def test_killed_in_the_middle_leaves_whole_records_only(place):
    promised = 0
    for round_ in range(8):
        with writer(place, str(round_), 10_000) as process:
            for _ in range(round_ * 3 + 1):
                process.stdout.readline()
                promised += 1
            process.send_signal(signal.SIGKILL)
    write(place, 9999)
    verdict = verify(place)
    assert verdict.problems == ()
    assert verdict.count > promised
    assert all(len(parsed(entry).get("fill", "x" * 100_000)) == 100_000 for entry in entries(place))


# -- death at each point ---------------------------------------------------------------------------------


def test_a_line_cut_at_any_byte_is_dropped_and_the_next_record_fits(place):
    write(place, 1)
    before = os.path.getsize(journal_file(place))
    write(place, 2)
    with open(journal_file(place), "rb") as file:
        whole = file.read()
    for cut in range(before, len(whole), 7):
        with open(journal_file(place), "wb") as file:
            file.write(whole[:cut])
        restore_head(place, before)
        write(place, 3)
        assert verify(place).problems == (), cut
        with open(journal_file(place), "rb") as file:
            assert [line.split(b" ")[0] for line in file.read().splitlines()] == [b"1", b"2"]


def restore_head(place, size):
    """Put the head back to the first record, as if the process had died before it moved the head."""
    with open(journal_file(place), "rb") as file:
        digest = file.readline().split(b" ")[1].decode()
    with open(os.path.join(place, "head"), "w") as file:
        file.write(f"1 {digest} {size} 1".ljust(127) + "\n")


def test_a_whole_line_that_the_head_does_not_know_yet_counts(place):
    write(place, 1)
    size = os.path.getsize(journal_file(place))
    write(place, 2)
    restore_head(place, size)
    assert verify(place).count == 2
    restore_head(place, size)
    write(place, 3)
    assert runs(place) == ["0001abcd", "0002abcd", "0003abcd"]
    assert verify(place).whole


def test_a_full_disk_leaves_the_journal_as_it_was(place):
    """RLIMIT_FSIZE cuts the write in the middle, as a full disk does."""
    write(place, 1)
    size = os.path.getsize(journal_file(place))

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5000, size + 5000))

    command = [sys.executable, "-c", WRITER, place, "big", "1"]
    done = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, check=False)
    assert "File too large" in done.stderr
    assert os.path.getsize(journal_file(place)) == size
    write(place, 2)
    assert verify(place).problems == ()


def test_death_between_commit_and_new_journal(place, monkeypatch):
    write(place, 1, 2)

    def die(self, head):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, Journal(place) as journal:
        patch.setattr(Journal, "start_next", die)
        with pytest.raises(KeyboardInterrupt):
            fold(journal)
    assert verify(place).problems == ()
    write(place, 3)
    assert runs(place) == ["0001abcd", "0002abcd", "0003abcd"]
    assert verify(place).problems == ()


# -- tampering -------------------------------------------------------------------------------------------


@pytest.fixture
def folded(place):
    write(place, 1, 2, 3, 4, 5)
    entries(place)
    return place


@pytest.fixture
def unfolded(place):
    write(place, 1, 2, 3, 4, 5)
    return place


def change(place, *statements):
    with sqlite3.connect(os.path.join(place, "records.db")) as database:
        database.executescript("DROP TRIGGER records_no_update; DROP TRIGGER records_no_delete;")
        for statement in statements:
            database.execute(statement)
    database.close()


def rewrite(place, edit):
    with open(journal_file(place)) as file:
        lines = file.read().splitlines()
    with open(journal_file(place), "w") as file:
        file.write("".join(line + "\n" for line in edit(lines)))


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE records SET body = replace(body, '0003', '9999') WHERE seq = 3", "record 3 or the hash of"),
        ("UPDATE records SET hash = replace(hash, 'a', 'b') WHERE seq = 3", "record 3 or the hash of"),
        ("DELETE FROM records WHERE seq = 3", "record 3 is missing"),
        ("DELETE FROM records WHERE seq IN (2, 3)", "records 2 to 3 are missing"),
        ("DELETE FROM records WHERE seq = 1", "record 1 is missing"),
        ("DELETE FROM records WHERE seq > 3", "the log ends at record 3, but 5 were written"),
        ("DELETE FROM records", "the log ends at record 0, but 5 were written"),
    ],
)
def test_changes_in_the_database_are_found(folded, statement, problem):
    assert verify(folded).whole
    change(folded, statement)
    assert any(problem in found for found in verify(folded).problems)


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda lines: [line.replace("0003", "9999") for line in lines], "record 3 or the hash of"),
        (lambda lines: lines[:2] + lines[3:], "record 3 is missing"),
        (lambda lines: lines[:3], "the log ends at record 3, but 5 were written"),
        (lambda lines: [*lines[:2], lines[3], lines[2], lines[4]], "record 3 stands behind record 4"),
        (lambda lines: [*lines[:2], "garbage", *lines[2:]], "a line that is no record"),
    ],
)
def test_changes_in_the_journal_are_found(unfolded, edit, problem):
    assert verify(unfolded).whole
    rewrite(unfolded, edit)
    verdict = verify(unfolded)
    assert any(problem in found for found in verdict.problems)
    write(unfolded, 6)
    assert runs(unfolded)[-1] == "0006abcd"
    assert any(problem.partition(",")[0] in found or "missing" in found for found in verify(unfolded).problems)


def test_a_tampered_journal_is_not_hidden_by_reading_the_log(unfolded):
    rewrite(unfolded, lambda lines: [*lines[:2], "garbage", *lines[2:]])
    assert len(entries(unfolded)) == 6
    assert runs(unfolded)[-1] == "0005abcd"
    assert not verify(unfolded).whole


def test_records_go_on_after_a_cut_and_the_cut_stays_visible(folded):
    change(folded, "DELETE FROM records WHERE seq > 3")
    write(folded, 6)
    assert "records 4 to 5 are missing" in verify(folded).problems


@pytest.mark.parametrize("reading", [False, True])
def test_a_lost_head_is_noted_in_the_chain(folded, reading):
    write(folded, 6)
    os.unlink(os.path.join(folded, "head"))
    if reading:
        assert not verify(folded).whole
    write(folded, 7)
    assert runs(folded)[-1] == "0007abcd"
    assert [problem for problem in verify(folded).problems if "the head was lost before record 7" in problem]


def test_an_unreadable_head_is_a_lost_one(unfolded):
    with open(os.path.join(unfolded, "head"), "w") as file:
        file.write("x" * 5000)
    write(unfolded, 6)
    assert any("the head was lost" in problem for problem in verify(unfolded).problems)


def test_a_new_chain_in_the_place_of_the_old_one_differs_in_its_head(folded):
    kept = verify(folded).head
    for name in os.listdir(folded):
        os.unlink(os.path.join(folded, name))
    write(folded, 1, 2, 3, 4)
    assert verify(folded).head != kept
