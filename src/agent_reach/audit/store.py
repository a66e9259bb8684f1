"""The log in SQLite, into which the lines of the journal move when somebody reads it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from agent_reach.audit.journal import GENESIS, Entry, Journal, link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
  seq INTEGER PRIMARY KEY, time TEXT NOT NULL, run TEXT NOT NULL, body TEXT NOT NULL,
  previous TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS records_run ON records (run);
CREATE TRIGGER IF NOT EXISTS records_no_update BEFORE UPDATE ON records
  BEGIN SELECT RAISE(ABORT, 'records are append-only'); END;
CREATE TRIGGER IF NOT EXISTS records_no_delete BEFORE DELETE ON records
  BEGIN SELECT RAISE(ABORT, 'records are append-only'); END;
"""
_BUSY_SECONDS = 10.0


def fold(journal: Journal) -> None:
    """Move the lines of the journal into SQLite.

    Lines that do not continue the chain stay where they are: what was changed is evidence, for `verify` to report.

    Args:
        journal: the journal of the directory.

    Raises:
        sqlite3.Error: the database cannot be used.
        TimeoutError: another process holds the lock.
    """
    with journal.locked():
        head = journal.recover()
        entries = list(journal.lines(head))
        if not entries:
            return
        with closing(_connect(journal.place)) as database:
            database.execute("BEGIN IMMEDIATE")
            last = _last(database)
            # somebody died between the commit and the new journal: those lines are in SQLite already
            fresh = [entry for entry in entries if entry.seq > last.seq]
            if len(fresh) < len(entries) and last not in entries:
                return
            for entry in fresh:
                if entry.seq != last.seq + 1 or entry.hash != link(entry.seq, last.hash, entry.body):
                    return
                time, run = _columns(entry.body)
                row = (entry.seq, time, run, entry.body, last.hash, entry.hash)
                database.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", row)
                last = entry
            database.execute("COMMIT")
        journal.start_next(head)


def rows(place: str, *, run: str = "") -> Iterator[Entry]:
    """Yield the links in SQLite, oldest first.

    Args:
        place: directory of the records.
        run: prefix of a run's identifier, or empty for all.
    """
    if not os.path.exists(_path(place)):
        return
    with closing(_connect(place)) as database:
        query = "SELECT seq, hash, body FROM records WHERE substr(run, 1, ?) = ? ORDER BY seq"
        for seq, digest, body in database.execute(query, (len(run), run)):
            yield Entry(int(seq), str(digest), str(body))


def last_link(place: str) -> dict[str, object]:
    """Return sequence number and hash of the last link in SQLite."""
    with closing(_connect(place)) as database:
        last = _last(database)
    return {"seq": last.seq, "hash": last.hash}


def _last(database: sqlite3.Connection) -> Entry:
    """Return the last link, or the one before the first."""
    found = database.execute("SELECT seq, hash, body FROM records ORDER BY seq DESC LIMIT 1").fetchone()
    return Entry(*found) if found else Entry(0, GENESIS, "")


def _connect(place: str) -> sqlite3.Connection:
    """Open the database, made on first use, readable by its owner only."""
    os.close(os.open(_path(place), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    database = sqlite3.connect(_path(place), timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        # the journal file is removed after the commit, so the commit must be on the disk
        database.execute("PRAGMA synchronous = FULL")
        database.executescript(_SCHEMA)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _columns(body: str) -> tuple[str, str]:
    """Return time and run of a record for the index; a tampered body has none."""
    import json

    try:
        record = json.loads(body)
        return str(record.get("time", "")), str(record.get("run", ""))
    except (ValueError, AttributeError, RecursionError):
        return "", ""


def _path(place: str) -> str:
    """Return the path of the database."""
    return os.path.join(place, "records.db")
