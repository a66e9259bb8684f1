"""Resource limits of one process (getrlimit(2))."""

from __future__ import annotations

import resource

CPU = resource.RLIMIT_CPU
FILE_SIZE = resource.RLIMIT_FSIZE
CORE = resource.RLIMIT_CORE
PROCESSES = resource.RLIMIT_NPROC
OPEN_FILES = resource.RLIMIT_NOFILE
ADDRESS_SPACE = resource.RLIMIT_AS
MEMORY_LOCK = resource.RLIMIT_MEMLOCK
INFINITY = resource.RLIM_INFINITY


def set_limits(limits: tuple[tuple[int, int, int], ...]) -> None:
    """Set soft and hard limits, never above the hard limit that is there already.

    Args:
        limits: resource, soft, hard.
    """
    for kind, soft, hard in limits:
        _, ceiling = resource.getrlimit(kind)
        top = hard if ceiling == INFINITY else ceiling if hard == INFINITY else min(hard, ceiling)
        low = top if soft == INFINITY else soft if top == INFINITY else min(soft, top)
        resource.setrlimit(kind, (low, top))
