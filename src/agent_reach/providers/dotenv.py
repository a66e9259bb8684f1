"""``dotenv://.env#NAME``: one name of a file of assignments.

The parser is strict: a line that different tools read differently is an error with its number, never a guess,
and ``${…}`` is never expanded.
"""

from __future__ import annotations

from agent_reach._util.visible import visible
from agent_reach.providers.content import MAX_ANSWER
from agent_reach.providers.faults import SourceError
from agent_reach.providers.files import read_regular
from agent_reach.providers.session import absolute, no_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.providers.session import Session
    from agent_reach.providers.uri import Ref

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$", "'": "'"}


class DotenvReader:
    """Reads files of ``NAME=value`` lines."""

    slow = False
    batched = False

    def __init__(self, session: Session) -> None:
        self._home = session.home

    def locate(self, ref: Ref, base: str) -> Ref:
        """Make the path absolute and require a name."""
        no_options(ref)
        if not ref.field:
            raise SourceError("dotenv:// names the variable behind #: dotenv://.env#NAME")
        return ref.replace(path=absolute(ref.path, base, self._home))

    def read(self, ref: Ref) -> dict[str, object]:
        """Return every assignment of the file.

        Raises:
            SourceError: a line is not an assignment.
        """
        data = read_regular(ref.path, MAX_ANSWER)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise SourceError(f"{visible(ref.path)} is not UTF-8") from None
        try:
            return dict(parse(text))
        except DotenvError as error:
            raise SourceError(f"{visible(ref.path)}:{error.line}: {error}") from None

    def describe(self, ref: Ref) -> str:
        """Name the file."""
        return visible(ref.path)


class DotenvError(ValueError):
    """A line cannot be read in one way only.

    Args:
        line: 1-based number of the line.
        message: what is wrong, without the content.
    """

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> dict[str, str]:
    r"""Read assignments: ``[export ]NAME=value``, ``'literal'``, ``"with \n escapes"``, ``# comment``.

    Quoted values may span lines. The last assignment of a name counts.

    Raises:
        DotenvError: a line cannot be read.
    """
    values = {}
    lines = text.replace("\r\n", "\n").split("\n")
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        if not line or line.startswith("#"):
            at += 1
            continue
        name, mark, _rest = line.removeprefix("export ").partition("=")
        name = name.strip()
        if not mark or not name.isascii() or not name.isidentifier():
            raise DotenvError(at + 1, "this line is not NAME=value")
        values[name], at = _value(lines, at, lines[at].partition("=")[2].lstrip())
    return values


def _value(lines: list[str], at: int, rest: str) -> tuple[str, int]:
    """Read the value that starts with `rest` on line `at`; return it and the next line's index."""
    if rest[:1] not in ("'", '"') or not rest:
        bare = rest if not rest.startswith("#") else ""
        for blank in (" #", "\t#"):
            bare = bare.partition(blank)[0]
        if "${" in bare:
            raise DotenvError(at + 1, "${…} is not expanded; put the value in single quotes if it is meant literally")
        return bare.rstrip(), at + 1
    start, quote, body = at, rest[0], rest[1:]
    while (end := _closing(body, quote)) < 0:
        at += 1
        if at >= len(lines):
            raise DotenvError(start + 1, "the quoted value does not end")
        body += "\n" + lines[at]
    tail = body[end + 1 :].strip()
    if tail and not tail.startswith("#"):
        raise DotenvError(at + 1, "there is text behind the closing quote")
    inner = body[:end]
    return (inner if quote == "'" else _unescape(inner, start + 1)), at + 1


def _closing(body: str, quote: str) -> int:
    """Return the index of the closing quote, -1 when there is none; a backslash guards in double quotes."""
    if quote == "'":
        return body.find("'")
    at = 0
    while at < len(body):
        if body[at] == '"':
            return at
        at += 2 if body[at] == "\\" else 1
    return -1


def _unescape(inner: str, line: int) -> str:
    """Replace the escapes of a double-quoted value."""
    if "${" in inner.replace("\\$", ""):
        raise DotenvError(line, "${…} is not expanded; write \\${ or use single quotes")
    if "\\" not in inner:
        return inner
    out, at = [], 0
    while at < len(inner):
        if inner[at] == "\\":
            known = _ESCAPES.get(inner[at + 1])
            out.append(inner[at : at + 2] if known is None else known)
            at += 2
        else:
            out.append(inner[at])
            at += 1
    return "".join(out)
