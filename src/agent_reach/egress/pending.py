"""Calls that are answered later: watched for callers that went away, signals, and time."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_reach.egress.call import Call

TICK_MS = 50
MOST = 512  # calls under way at once; further ones wait in the kernel
_CHECKED_PER_TICK = 64


class Waiting:
    """One call that waits for something.

    Args:
        call: the call.
        deadline: monotonic time, 0 for none.
    """

    def __init__(self, call: Call, deadline: float = 0.0) -> None:
        self.call, self.deadline = call, deadline

    def interrupt(self) -> None:
        """Let a signal through, if this kind of wait can."""

    def expire(self) -> None:
        """Answer at the deadline; only for those that have one."""

    def abandon(self) -> None:
        """Let go of everything; the caller has gone, or we end."""
        self.call.abandon()


class Waitlist:
    """The calls under way.

    The kernel tells nobody when a caller dies or gets a signal during a killable wait, so they are looked at in
    turn, every 50 ms while there are any.

    Args:
        fault: told an exception that escaped from a wait, which is a fault in reach.
        clock: seconds that only grow.
    """

    def __init__(self, fault: Callable[[Exception], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._fault, self._clock = fault, clock
        self._waiting: dict[int, Waiting] = {}
        self._due = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def now(self) -> float:
        """Return the clock's time."""
        return self._clock()

    def add(self, waiting: Waiting) -> None:
        """Begin to watch a call."""
        self._waiting[waiting.call.id] = waiting

    def remove(self, waiting: Waiting) -> bool:
        """Stop watching a call; False when it was not watched any more, so it is answered already."""
        return self._waiting.pop(waiting.call.id, None) is not None

    def timeout(self) -> int:
        """Return after how many milliseconds `tick` is due, -1 for never."""
        return TICK_MS if self._waiting else -1

    def tick(self) -> None:
        """Look at the calls: at most 64 each time, those that were looked at last come last."""
        now = self._clock()
        if now < self._due:
            return
        self._due = now + TICK_MS / 1000
        for identifier in list(self._waiting)[:_CHECKED_PER_TICK]:
            try:
                self._look(self._waiting.pop(identifier), now)
            except Exception as error:  # noqa: BLE001 - one call must not take the others with it
                self._fault(error)

    def _look(self, waiting: Waiting, now: float) -> None:
        """Look at one call; it is kept unless it is over."""
        if not waiting.call.valid():
            waiting.abandon()
        elif waiting.deadline and now >= waiting.deadline:
            waiting.expire()
        else:
            self._waiting[waiting.call.id] = waiting
            if waiting.call.interrupted():
                waiting.interrupt()

    def close(self) -> None:
        """Let go of every call."""
        while self._waiting:
            self._waiting.popitem()[1].abandon()
