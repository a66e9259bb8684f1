"""One line on a terminal for a fetch that takes long enough to wonder about."""

from __future__ import annotations

import os
import time

_AFTER = 0.5
_EVERY = 0.1
_UNITS = ("B", "KiB", "MiB", "GiB")


class Progress:
    """Writes a line that replaces itself and is gone at the end; without a terminal it writes nothing.

    It uses a carriage return and blanks only: no colour and no cursor sequences, so NO_COLOR and a dumb terminal
    need no special case.

    Args:
        fd: descriptor of standard error.
    """

    def __init__(self, fd: int = 2) -> None:
        self._fd = fd
        self._terminal = os.isatty(fd)
        self._since = time.monotonic()
        self._shown = 0.0
        self._width = 0

    def update(self, name: str, done: int, total: int) -> None:
        """Take the state of a fetch.

        Args:
            name: what is fetched, harmless to show.
            done: bytes so far.
            total: bytes in all, -1 when unknown.
        """
        now = time.monotonic()
        if not self._terminal or now - self._since < _AFTER or now - self._shown < _EVERY:
            return
        self._shown = now
        of = f" of {_size(total)}" if total >= 0 else ""
        self._write(f"reach: fetching {name}  {_size(done)}{of}")

    def finish(self) -> None:
        """Blank the line and start over."""
        if self._width:
            self._write("")
            self._width = 0
        self._since = time.monotonic()

    def _write(self, text: str) -> None:
        """Replace the line; a terminal that has gone is nobody's problem."""
        columns = 80
        try:
            columns = os.get_terminal_size(self._fd).columns or columns
            text = text[: columns - 1]
            os.write(self._fd, f"\r{text.ljust(self._width)}{'' if text else chr(13)}".encode())
        except OSError:
            self._terminal = False
        self._width = len(text)


def _size(count: int) -> str:
    """Write a number of bytes for people."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} B"
