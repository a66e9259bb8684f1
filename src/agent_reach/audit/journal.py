r"""Append records to a hash chain at the cost of three small writes.

SQLite would take 10 ms at the end of each run, most of it import, while the user waits for the prompt. So a run
appends one line to a journal, and whoever reads the log first moves the lines into SQLite (`store`). The chain
runs through both: ``hash = SHA-256(seq \n previous hash \n body)``.

Files of the directory, all 0600: ``lock`` (flock), ``head`` (the last sequence number and hash, the length and
generation of the journal), ``journal.N`` (lines of ``seq hash body``).

A process can die at any instruction. Killed before its line is whole: the next one finds more bytes than `head`
says and cuts them off. Killed between line and head: the next one finds a whole line that fits the chain and
moves the head on. A head that is gone, or that says more than the journal has, is somebody's doing: the chain
goes on from what is left, a line says so, and `verify` reports it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

from agent_reach._util.record import Record
from agent_reach.audit.canonical import dumps, sha256
from agent_reach.audit.place import open_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from agent_reach.audit.canonical import Json

GENESIS = "0" * 64
_LOCK_SECONDS = 10.0
_FILE = os.O_CLOEXEC | os.O_NOFOLLOW
_HEAD_BYTES = 128


class Entry(Record):
    """One link of the chain.

    Args:
        seq: sequence number, from 1 without gaps.
        hash: hex digest of this link.
        body: the record as canonical JSON, one line.
    """

    seq: int
    hash: str
    body: str


class Head(Record):
    """The end of the chain: last sequence number and hash, and the journal's length and generation."""

    seq: int = 0
    hash: str = GENESIS
    size: int = 0
    generation: int = 1


def link(seq: int, previous: str, body: str) -> str:
    """Return the hash of a link."""
    return sha256(f"{seq}\n{previous}\n{body}".encode("utf-8", "surrogatepass"))


class Journal:
    """The journal of one directory; holds a descriptor of the directory and nothing else.

    Args:
        place: absolute path of the directory of the records.

    Raises:
        Unavailable: there is no place for a record.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._directory = open_place(place)

    def __enter__(self) -> Self:
        """Return the journal itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the descriptor."""
        self.close()

    def close(self) -> None:
        """Give up the directory."""
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1

    def append(self, record: dict[str, Json]) -> Entry:
        """Add one record to the chain and return its link.

        Raises:
            OSError: the disk is full or the directory has gone; the journal is then as it was.
            TimeoutError: somebody holds the lock.
        """
        body = dumps(record)
        with self.locked():
            entry, _head = self._add(self.recover(), body)
            return entry

    def locked(self) -> _Lock:
        """Return a context in which no other process changes the log."""
        return _Lock(self.open("lock", os.O_RDWR | os.O_CREAT))

    def open(self, name: str, flags: int) -> int:
        """Open a file of the directory by name; a symbolic link is refused."""
        return os.open(name, flags | _FILE, 0o600, dir_fd=self._directory)

    def head(self) -> Head | None:
        """Return the head as it is written, None when it is missing or unreadable (under the lock)."""
        try:
            fd = self.open("head", os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            words = os.read(fd, _HEAD_BYTES + 1).split()
        finally:
            os.close(fd)
        try:
            seq, digest, size, generation = words
            return Head(int(seq), digest.decode("ascii"), int(size), int(generation))
        except ValueError:
            return None

    def lines(self, head: Head) -> Iterator[Entry]:
        """Yield the lines of the journal, whole ones only (under the lock)."""
        data = self._read(head.generation, 0)
        for line in data.split(b"\n")[:-1]:
            yield _parse(line)

    def start_next(self, head: Head) -> None:
        """Begin an empty journal; its lines are in SQLite now (under the lock).

        The head changes first: from then on the old file is only waste, which the next call removes.
        """
        self._write_head(head.replace(size=0, generation=head.generation + 1))
        for name in self._journals():
            if name != f"journal.{head.generation + 1}":
                os.unlink(name, dir_fd=self._directory)

    def recover(self) -> Head:
        """Bring head and journal together after a death, and return the head (under the lock)."""
        head = self.head()
        if head is None:
            return self._without_head()
        data = self._read(head.generation, head.size)
        # where the journal was changed, nothing is cut off: what is left is evidence
        return self._take_tail(head, data) if data and self._ends_as(head) else head

    def _take_tail(self, head: Head, data: bytes) -> Head:
        """Move the head over whole lines behind it that fit, and cut off the rest."""
        for line in data.split(b"\n")[:-1]:
            entry = _parse(line)
            if entry.seq != head.seq + 1 or entry.hash != link(entry.seq, head.hash, entry.body):
                break
            head = Head(entry.seq, entry.hash, head.size + len(line) + 1, head.generation)
        fd = self.open(f"journal.{head.generation}", os.O_WRONLY)
        try:
            os.ftruncate(fd, head.size)
        finally:
            os.close(fd)
        self._write_head(head)
        return head

    def _ends_as(self, head: Head) -> bool:
        """Say whether the line that ends where the head says is the one that the head names."""
        if not head.size:
            return True
        size = _HEAD_BYTES
        while True:
            start = max(0, head.size - size)
            data = self._read(head.generation, start)[: head.size - start]
            at = data.rfind(b"\n", 0, len(data) - 1)
            if at >= 0 or not start:
                return data.endswith(b"\n") and _parse(data[at + 1 : -1]).hash == head.hash
            size *= 16

    def _without_head(self) -> Head:
        """Start the chain, or go on from what is left and say so in the chain itself."""
        journals = self._journals()
        left = Head(generation=max((int(name.partition(".")[2]) for name in journals), default=1))
        if self._exists("records.db"):
            from agent_reach.audit.store import last_link

            left = left.replace(**last_link(self.place))
        elif not journals:
            return left
        data = self._read(left.generation, 0)
        whole = data[: data.rfind(b"\n") + 1]
        entries = [_parse(line) for line in whole.split(b"\n")[:-1]]
        if entries:
            left = left.replace(seq=entries[-1].seq, hash=entries[-1].hash)
        left = self._take_tail(left.replace(size=len(whole)), data[len(whole) :]) if journals else left
        note = {"event": "head_lost", "time": _now(), "message": "the head of the log was missing or unreadable"}
        _entry, head = self._add(left, dumps(note))
        return head

    def _add(self, head: Head, body: str) -> tuple[Entry, Head]:
        """Write one line, then the head."""
        seq = head.seq + 1
        entry = Entry(seq, link(seq, head.hash, body), body)
        fd = self.open(f"journal.{head.generation}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            before = os.fstat(fd).st_size
            line = f"{seq} {entry.hash} {body}\n".encode("ascii")
            if before and not self._read(head.generation, before - 1).endswith(b"\n"):
                line = b"\n" + line  # somebody changed the journal; a new record is a line of its own all the same
            try:
                _write_all(fd, line)
            except BaseException:
                os.ftruncate(fd, before)
                raise
        finally:
            os.close(fd)
        head = Head(seq, entry.hash, before + len(line), head.generation)
        self._write_head(head)
        return entry, head

    def _write_head(self, head: Head) -> None:
        """Overwrite the head in place: fewer bytes than a sector, so it is never half old and half new."""
        text = f"{head.seq} {head.hash} {head.size} {head.generation}".ljust(_HEAD_BYTES - 1) + "\n"
        fd = self.open("head", os.O_WRONLY | os.O_CREAT)
        try:
            os.pwrite(fd, text.encode("ascii"), 0)
        finally:
            os.close(fd)

    def _read(self, generation: int, start: int) -> bytes:
        """Return the journal from an offset on; a missing one is empty."""
        try:
            fd = self.open(f"journal.{generation}", os.O_RDONLY)
        except FileNotFoundError:
            return b""
        try:
            size = os.fstat(fd).st_size
            parts = []
            while start < size and (part := os.pread(fd, size - start, start)):
                parts.append(part)
                start += len(part)
            return b"".join(parts)
        finally:
            os.close(fd)

    def _journals(self) -> list[str]:
        """Return the names of journal files."""
        names = os.listdir(self._directory)
        return [name for name in names if name.startswith("journal.") and name[8:].isdecimal()]

    def _exists(self, name: str) -> bool:
        """Say whether the directory has a file of that name."""
        try:
            os.stat(name, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True


class _Lock:
    """An exclusive flock(2) of an open file, given up on exit and by the kernel on death.

    Args:
        fd: descriptor of the lock file.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __enter__(self) -> None:
        """Wait for the lock, but not for ever: a stopped process may hold it.

        Raises:
            TimeoutError: it was not to be had.
        """
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(self._fd)
                    raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock of the log") from None
                time.sleep(0.002)
            else:
                return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release it."""
        os.close(self._fd)


def _parse(line: bytes) -> Entry:
    """Read ``seq hash body``; what is none of that becomes a link that fits nowhere."""
    words = line.decode("utf-8", "replace").split(" ", 2)
    if len(words) == 3 and words[0].isascii() and words[0].isdecimal() and len(words[0]) < 19:
        return Entry(int(words[0]), words[1], words[2])
    return Entry(0, "", line.decode("utf-8", "replace"))


def _write_all(fd: int, data: bytes) -> None:
    """Write every byte; a full disk writes some and then fails."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _now() -> str:
    """Return the time for a note."""
    from agent_reach.audit.record import timestamp

    return timestamp(time.time())
