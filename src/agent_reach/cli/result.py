"""`--result`: what came of a run, as one line of JSON; machines read this and not standard error."""

from __future__ import annotations

import os

from agent_reach.cli.options import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_reach.audit.canonical import Json
    from agent_reach.outcome import Denial, Result


# What a result has when nothing ran: a reader finds every key in every case.
_EMPTY: dict[str, Json] = {
    "run": "",
    "exit_code": 0,
    "signal": 0,
    "cause": "refused",
    "limit": "",
    "message": "",
    "denials": [],
    "connections": [],
    "usage": None,
    "receipt": None,
    "error": None,
}


class ResultFile:
    """The place where the result goes, opened before anything runs.

    Args:
        text: value of the option, ``FILE`` or ``fd:N``; None for none.

    Raises:
        UsageError: the descriptor is not a number or not open.
        OSError: the file cannot be written.
    """

    def __init__(self, text: str | None) -> None:
        self._descriptor = -1 if text is None else _open(text)

    def write(self, result: Result) -> None:
        """Write the result of a run."""
        if self._descriptor >= 0:
            self._put(as_json(result))

    def fail(self, error: BaseException, status: int) -> None:
        """Write that reach itself failed."""
        if self._descriptor < 0:
            return
        from agent_reach.cli.failures import as_json as error_json

        message = str(error).partition("\n")[0]
        self._put(_EMPTY | {"exit_code": status, "message": message, "error": error_json(error)})

    def _put(self, value: dict[str, Json]) -> None:
        """Write one line and be done; a reader that has gone is its own affair."""
        from agent_reach.audit.canonical import dumps

        data = dumps(value).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BrokenPipeError:
            return
        finally:
            os.close(self._descriptor)
            self._descriptor = -1


def descriptor_of(text: str, example: str) -> int:
    """Return the number of an open descriptor.

    Args:
        text: what was given.
        example: how a shell opens one for this option.

    Raises:
        UsageError: it is none.
    """
    try:
        number = int(text)
        os.fstat(number)
    except (ValueError, OSError, OverflowError):
        raise UsageError(f"descriptor {text} is not open", f"in a shell: reach run {example}") from None
    return number


def _open(text: str) -> int:
    """Open the place; the program inside gets none of our descriptors in any case."""
    if text.startswith("fd:"):
        return os.dup(descriptor_of(text[3:], "--result fd:3 SCRIPT 3>FILE"))
    return os.open(text, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)


def as_json(result: Result) -> dict[str, Json]:
    """Return a result as JSON values."""
    return {
        "run": result.run_id,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "cause": result.cause,
        "limit": result.limit,
        "message": result.message,
        "denials": [_denial(denial) for denial in result.denials],
        "connections": [dict(connection.__dict__) for connection in result.connections],
        "usage": dict(result.usage.__dict__),
        "receipt": {
            "tier": result.receipt.tier,
            "lines": [dict(line.__dict__) for line in result.receipt.lines],
            "notes": list(result.receipt.notes),
        },
        "error": None,
    }


def _denial(denial: Denial) -> dict[str, Json]:
    """Return a denial as JSON values."""
    place = None if denial.place is None else dict(denial.place.__dict__)
    return {**denial.__dict__, "place": place}
