"""Reads side by side, for contracts with a source that may have to wait."""

from __future__ import annotations

import time
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import cast

from agent_reach.providers.faults import NotFoundError, SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_reach.providers.content import Content
    from agent_reach.providers.session import BatchReader, Reader
    from agent_reach.providers.uri import Ref

    Answer = Content | Exception
    Job = tuple[list[int], Callable[[], list[Answer]]]

SECONDS = 10.0
_SLACK = 1.0
_THREADS = 16


def read_side_by_side(reads: Sequence[tuple[Reader, Ref]], seconds: float = SECONDS) -> list[Answer]:
    """Do every read, up to sixteen at a time, and return an answer or fault for each, in order.

    Each provider keeps a limit of its own; the deadline here is for one that cannot, such as a name lookup that
    never returns. Its thread is a daemon and is left behind: the run is refused, and the process ends.

    Args:
        reads: the reads; those of one batched reader become a single call.
        seconds: most time for all of them.
    """
    jobs: SimpleQueue[Job] = SimpleQueue()
    count = 0
    for job in _jobs(reads):
        jobs.put(job)
        count += 1
    done: SimpleQueue[tuple[list[int], list[Answer]]] = SimpleQueue()
    for _ in range(min(count, _THREADS)):
        Thread(target=_work, args=(jobs, done), daemon=True).start()
    answers: list[Answer] = [SourceError(f"no answer within {seconds:g} s") for _read in reads]
    deadline = time.monotonic() + seconds + _SLACK
    for _ in range(count):
        try:
            places, results = done.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        for place, result in zip(places, results, strict=True):
            answers[place] = result
    return answers


def _jobs(reads: Sequence[tuple[Reader, Ref]]) -> list[Job]:
    """Group the reads of a batched reader and leave the others single."""
    jobs: list[Job] = []
    batches: dict[int, list[int]] = {}
    for place, (reader, ref) in enumerate(reads):
        if reader.batched:
            batches.setdefault(id(reader), []).append(place)
        else:
            jobs.append(([place], partial(_single, reader, ref)))
    for places in batches.values():
        refs = [reads[place][1] for place in places]
        jobs.append((places, partial(cast("BatchReader", reads[places[0]][0]).read_all, refs)))
    return jobs


def _single(reader: Reader, ref: Ref) -> list[Answer]:
    """Do one read."""
    return [reader.read(ref)]


def _work(jobs: SimpleQueue[Job], done: SimpleQueue[tuple[list[int], list[Answer]]]) -> None:
    """Take jobs until none is left."""
    while True:
        try:
            places, call = jobs.get_nowait()
        except Empty:
            return
        done.put((places, _guarded(call, len(places))))


def _guarded(call: Callable[[], list[Answer]], count: int) -> list[Answer]:
    """Run one job; a fault counts for all its reads."""
    try:
        return call()
    except (NotFoundError, SourceError) as error:
        return [error] * count
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything; its text could hold a value
        return [SourceError(f"the provider failed ({type(error).__name__})")] * count
