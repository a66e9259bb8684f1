"""The environment and the staged files on their way from the launcher to the worker."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LENGTH = 8
_CHUNK = 1 << 20
_STAGED = 1
_VARIABLE = 0


class ValuesWriter:
    """Writes variables and staged files; the end mark is what lets the worker go on.

    Args:
        descriptor: write end of the pipe; owned by this object.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def variable(self, name: str, value: str) -> None:
        """Send one variable of the environment."""
        content = os.fsencode(name) + b"=" + os.fsencode(value)
        self._send(_VARIABLE, 0, content)

    def staged(self, number: int, content: bytes) -> None:
        """Send the content of the staged file of that number."""
        self._send(_STAGED, number, content)

    def finish(self) -> None:
        """Send the end mark and close."""
        self._write(b"\xff" + bytes(_LENGTH * 2))
        self.abandon()

    def abandon(self) -> None:
        """Close without the end mark: nothing will run."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _send(self, kind: int, number: int, content: bytes) -> None:
        """Send one item: kind, number, length, content."""
        head = bytes((kind,)) + number.to_bytes(_LENGTH, "little") + len(content).to_bytes(_LENGTH, "little")
        self._write(head)
        self._write(content)

    def _write(self, data: bytes) -> None:
        """Write everything."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]


def receive(descriptor: int, scratch: int) -> dict[bytes, bytes] | None:
    """Read everything in the worker: fill the staged files and return the environment.

    Args:
        descriptor: read end.
        scratch: descriptor of the directory that holds ``staged-N``.

    Returns:
        The environment, or None when the launcher gave up.
    """
    environment: dict[bytes, bytes] = {}
    while True:
        head = _exactly(descriptor, 1 + 2 * _LENGTH)
        if not head:
            return None
        kind = head[0]
        number = int.from_bytes(head[1 : 1 + _LENGTH], "little")
        length = int.from_bytes(head[1 + _LENGTH :], "little")
        if kind == _VARIABLE:
            name, _, value = _exactly(descriptor, length).partition(b"=")
            environment[name] = value
        elif kind == _STAGED:
            _fill(descriptor, length, scratch, f"staged-{number}")
        else:
            return environment


def _fill(descriptor: int, length: int, scratch: int, name: str) -> None:
    """Copy so many bytes into a file of the stage."""
    # In tier reduced nothing is mounted, and the file is made here.
    if name in os.listdir(scratch):
        os.chmod(name, 0o600, dir_fd=scratch)
    target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=scratch)
    try:
        while length:
            chunk = os.read(descriptor, min(length, _CHUNK))
            if not chunk:
                return
            length -= len(chunk)
            while chunk:
                chunk = chunk[os.write(target, chunk) :]
        os.fchmod(target, 0o444)
    finally:
        os.close(target)


def _exactly(descriptor: int, length: int) -> bytes:
    """Read so many bytes, or nothing at the end of file."""
    parts = []
    while length:
        part = os.read(descriptor, min(length, _CHUNK))
        if not part:
            return b""
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def send_all(writer: ValuesWriter, environment: Mapping[str, str], staged: Mapping[int, bytes]) -> None:
    """Send everything and the end mark."""
    for name, value in environment.items():
        writer.variable(name, value)
    for number, content in staged.items():
        writer.staged(number, content)
    writer.finish()
