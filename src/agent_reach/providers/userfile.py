"""``~/.reach/providers.py``: functions ``<scheme>_provider(path)`` of the user, in a process of their own.

The file may need packages that reach does not have, so it runs under the interpreter that the user's
configuration names. It is code with all the caller's secrets: only the caller or root may be able to write it,
and the process gets the very bytes that were checked.
"""

from __future__ import annotations

import os
import sys

from agent_reach._util.visible import visible
from agent_reach.providers.content import MAX_ANSWER
from agent_reach.providers.faults import ForeignError, NotFoundError, SourceError
from agent_reach.providers.files import read_with_owner, require_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_reach.providers.content import Content
    from agent_reach.providers.session import Session
    from agent_reach.providers.uri import Ref

SECONDS = 10.0
_LIMIT = 1024 * 1024
_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_userchild.py")


def userfile_path(home: str) -> str:
    """Return where the user's providers lie."""
    return os.path.join(home, ".reach", "providers.py")


class UserFile:
    """The user's file as text; a missing one defines nothing.

    Args:
        session: the resolution it serves.
    """

    def __init__(self, session: Session) -> None:
        self.path = userfile_path(session.home)
        self.source = b""
        self._session = session
        try:
            self.source, self._about = read_with_owner(self.path, _LIMIT)
        except NotFoundError:
            return

    def defines(self, scheme: str) -> bool:
        """Say whether a line at top level names ``<scheme>_provider``.

        The file is not run to find out: a contract that it has no part in must not pay for it. Whether the name
        is really a function is found when it is called.
        """
        name = _function(scheme).encode()
        return any(_names(line, name) for line in self.source.split(b"\n"))

    def reader(self) -> UserFileReader:
        """Return the reader for the schemes that the file defines.

        Raises:
            SourceError: somebody else could have written the file.
        """
        require_private(self._about, self.path)
        folder = os.path.dirname(self.path)
        require_private(os.stat(folder), folder)
        return UserFileReader(self, self._session)


class UserFileReader:
    """Calls the user's functions, all calls of a run in one process."""

    slow = True
    batched = True

    def __init__(self, file: UserFile, session: Session) -> None:
        self._file = file
        self._session = session

    def locate(self, ref: Ref, base: str) -> Ref:  # noqa: ARG002 - same shape as every reader
        """Leave the URI as it is: the path belongs to the user's function."""
        return ref

    def read(self, ref: Ref) -> Content:
        """Ask for one path."""
        (answer,) = self.read_all([ref])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def read_all(self, refs: Sequence[Ref]) -> list[Content | Exception]:
        """Ask for several paths, in order, and return an answer or a fault for each.

        Raises:
            SourceError: the process failed as a whole.
        """
        from agent_reach.providers import process
        from agent_reach.providers.content import load_json

        status, output = process.run(
            # -E: PYTHONPATH may lead into the project, whose modules must not run with the caller's secrets
            [self._session.config.python or sys.executable, "-E", _CHILD],
            env=self._session.caller_env,
            cwd=os.path.dirname(self._file.path),
            stdin=self._request(refs),
            seconds=SECONDS,
            limit=MAX_ANSWER,
        )
        try:
            answers = load_json(output)
        except ValueError:
            answers = None
        if not isinstance(answers, list) or len(answers) != len(refs):
            raise SourceError(f"{visible(self._file.path)} ended with status {status} and without an answer")
        return [self._answer(ref, answer) for ref, answer in zip(refs, answers, strict=True)]

    def describe(self, ref: Ref) -> str:
        """Name the path."""
        return visible(ref.path)

    def _request(self, refs: Sequence[Ref]) -> bytes:
        """Write the file and the calls as one JSON document."""
        import json

        calls = [[_function(ref.scheme), _argument(ref)] for ref in refs]
        source = self._file.source.decode("utf-8-sig", "surrogateescape")
        return json.dumps({"file": self._file.path, "source": source, "calls": calls}).encode()

    def _answer(self, ref: Ref, answer: object) -> Content | Exception:
        """Read one ``[kind, payload]`` of the child."""
        where = visible(self._file.path)
        kind, payload = answer if isinstance(answer, list) and len(answer) == 2 else ("", "")
        if kind == "value" and isinstance(payload, (str, dict)):
            return payload
        if kind == "none":
            return NotFoundError(f"{_function(ref.scheme)} in {where} returned None")
        if kind == "error" and isinstance(payload, str):
            return ForeignError(f"{_function(ref.scheme)} in {where}: {visible(payload, 300)}")
        return SourceError(f"{_function(ref.scheme)} in {where} answered neither text nor a mapping")


def _function(scheme: str) -> str:
    """Return the name of the function that serves a scheme (``aws-sm`` → ``aws_sm_provider``)."""
    return "".join(char if char.isalnum() else "_" for char in scheme) + "_provider"


def _argument(ref: Ref) -> str:
    """Return what the function is called with: the path, and the options when there are any."""
    options = "&".join(f"{name}={value}" for name, value in ref.options)
    return f"{ref.path}?{options}" if options else ref.path


def _names(line: bytes, name: bytes) -> bool:
    """Say whether a line at column 0 has the name as a word of its own."""
    if name not in line or line[:1] in (b" ", b"\t", b"#"):
        return False
    before, _name, after = line.partition(name)
    return not _in_word(before[-1:]) and not _in_word(after[:1])


def _in_word(char: bytes) -> bool:
    """Say whether a byte can be part of a name."""
    return char.isalnum() or char == b"_"
