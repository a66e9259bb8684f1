"""Standard error for people: whole lines, colour only where a terminal wants it, nothing that a pipe can break."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "strong red": "1;31"}
_POLLOUT = 4


class Paint:
    """Puts colour around text, or not.

    Args:
        on: whether to.
    """

    def __init__(self, *, on: bool) -> None:
        self._on = on

    def __call__(self, style: str, text: str) -> str:
        """Return the text in a style, one of `_CODES`."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self._on and text else text


def paint_for(descriptor: int, environ: Mapping[str, str]) -> Paint:
    """Decide about colour for a descriptor.

    NO_COLOR (no-color.org) wins over FORCE_COLOR and CLICOLOR_FORCE, as in CPython; TERM=dumb and anything but a
    terminal have none.

    Args:
        descriptor: where the text goes.
        environ: the caller's environment.
    """
    if environ.get("NO_COLOR"):
        return Paint(on=False)
    if any(environ.get(name, "") not in {"", "0"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return Paint(on=True)
    return Paint(on=environ.get("TERM", "") not in {"", "dumb"} and os.isatty(descriptor))


def say(text: str) -> None:
    """Write lines to standard error; when nobody can read them nothing happens.

    Args:
        text: lines without the last line end.
    """
    end = "\r\n" if _raw() else "\n"
    data = (text + "\n").replace("\n", end).encode("utf-8", "backslashreplace")
    try:
        while data:
            data = data[_write(data) :]
    except OSError:
        return


def _write(data: bytes) -> int:
    """Write once; a caller's non-blocking descriptor is waited for."""
    try:
        return os.write(2, data)
    except BlockingIOError:
        import select

        poll = select.poll()
        poll.register(2, _POLLOUT)
        poll.poll()
        return 0


def _raw() -> bool:
    """Say whether the terminal does not add carriage returns: while a run relays keys, it is in raw mode."""
    if not os.isatty(2):
        return False
    import termios

    try:
        output_flags: int = termios.tcgetattr(2)[1]
    except termios.error:
        return False
    return not output_flags & termios.OPOST
