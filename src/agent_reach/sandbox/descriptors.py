"""Close what must not cross a border."""

from __future__ import annotations

from agent_reach.linux import _syscalls

_LAST = 0xFFFF_FFFF


def close_all_but(kept: tuple[int, ...], first: int = 0) -> None:
    """Close every descriptor from `first` on that is not listed.

    Args:
        kept: descriptors to keep; negative ones are passed over.
        first: where to start.
    """
    start = first
    for descriptor in sorted(set(kept)):
        if descriptor < start:
            continue
        if descriptor > start:
            _syscalls.close_range(start, descriptor - 1)
        start = descriptor + 1
    _syscalls.close_range(start, _LAST)
