"""Sockets between our own processes: one frame a message, descriptors beside it."""

from __future__ import annotations

import os
import select

from agent_reach.errors import SetupError
from agent_reach.linux import fdpass
from agent_reach.wire import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

_AF_UNIX = 1
_SOCK_SEQPACKET = 5
_MOST_DESCRIPTORS = 8


class Channel:
    """One end of a pair of connected sockets that keep message boundaries.

    Args:
        socket: the raw socket; closed by `close` or with the object.
    """

    def __init__(self, socket: _socket.socket) -> None:
        self._socket = socket

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._socket.fileno()

    def send(self, fields: dict[str, str], descriptors: tuple[int, ...] = ()) -> bool:
        """Send one message.

        Returns:
            False when the other end is gone.
        """
        try:
            fdpass.send(self._socket, frames.encode(fields), descriptors)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def receive(self) -> tuple[dict[str, str], tuple[int, ...]] | None:
        """Wait for one message; None at the end of file.

        Raises:
            FrameError: the other end broke the format.
            OSError: EPROTO, more descriptors came than any message has.
        """
        try:
            data, descriptors = fdpass.receive(self._socket, frames.MAX_FRAME + 2, _MOST_DESCRIPTORS)
        except ConnectionResetError:
            return None
        return (frames.decode(data[2:]), descriptors) if data else None

    def waiting(self) -> bool:
        """Say whether `receive` would return at once."""
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


def pair() -> tuple[Channel, Channel]:
    """Return two connected ends, both close-on-exec."""
    import _socket

    left, right = _socket.socketpair(_AF_UNIX, _SOCK_SEQPACKET | os.O_CLOEXEC, 0)
    return Channel(left), Channel(right)


class Steps:
    """The flat list of named steps that a process takes before user code runs.

    A failure is sent to the supervisor as the step's name, errno and object, and the process ends.

    Args:
        setup: where failures go.
    """

    def __init__(self, setup: Channel) -> None:
        self._setup = setup
        self._name = "start"
        self._detail = ""

    def at(self, name: str, detail: str = "") -> None:
        """Say which step comes now."""
        self._name, self._detail = name, detail

    def fail(self, error: BaseException) -> None:
        """Report the step that failed and end the process."""
        number = error.errno if isinstance(error, OSError) and error.errno else 0
        own = isinstance(error, OSError) and error.strerror == os.strerror(number)
        text = "" if own else f"{type(error).__name__}: {error}"
        fields = {"kind": "failed", "step": self._name, "errno": str(number)}
        fields["detail"] = frames.clip(f"{self._detail} {text}".strip(), 512)
        self._setup.send(fields)
        os._exit(125)


def failure(fields: dict[str, str]) -> SetupError:
    """Turn a ``failed`` message into the error it stands for."""
    number = int(fields.get("errno", "0") or 0)
    return SetupError(fields.get("step", "unknown"), number, fields.get("detail", ""))
