"""The resolver and its threads: the loop never waits, one question per name, a short memory."""

from __future__ import annotations

import select
import threading

import pytest

from agent_reach.egress.resolve import Resolved, Resolver, look_up
from agent_reach.egress.workers import Workers

LOCAL = bytes((127, 0, 0, 1))


def collect(workers: Workers, until: list[object], count: int) -> None:
    while len(until) < count:
        assert select.select([workers.fd], [], [], 10)[0]
        workers.collect()


class Host:
    """Stands for the host's resolution; can be held up."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, name: str) -> Resolved:
        self.asked.append(name)
        self.gate.wait(10)
        if name == "broken":
            raise RuntimeError(name)
        return Resolved((LOCAL,)) if name == "db" else Resolved((), absent=True)


def test_a_slow_name_holds_up_nobody_and_is_asked_for_once() -> None:
    host, now, answers = Host(), [100.0], []
    resolver = Resolver(host, lambda: now[0])
    host.gate.clear()
    for _ in range(5):
        resolver.resolve("db", answers.append)
    assert answers == []
    host.gate.set()
    collect(resolver.workers, answers, 5)
    assert answers == [Resolved((LOCAL,))] * 5
    assert host.asked == ["db"]
    resolver.resolve("db", answers.append)
    assert len(answers) == 6
    now[0] += 6
    resolver.resolve("db", answers.append)
    collect(resolver.workers, answers, 7)
    assert host.asked == ["db", "db"]
    resolver.close()


def test_an_absent_name_and_a_resolver_that_fails_differ() -> None:
    answers: list[Resolved] = []
    resolver = Resolver(Host())
    resolver.resolve("gone", answers.append)
    collect(resolver.workers, answers, 1)
    resolver.resolve("broken", answers.append)
    collect(resolver.workers, answers, 2)
    assert answers == [Resolved((), absent=True), Resolved(())]
    resolver.close()


def test_a_name_asked_for_without_end_has_a_bounded_queue() -> None:
    host, answers = Host(), []
    host.gate.clear()
    resolver = Resolver(host)
    for _ in range(1000):
        resolver.resolve("db", answers.append)
    assert 0 < len(answers) < 1000
    assert set(answers) == {Resolved(())}
    host.gate.set()
    collect(resolver.workers, answers, 1000)
    resolver.close()


def test_the_host_resolves_localhost() -> None:
    assert LOCAL in look_up("localhost").addresses
    assert look_up("nothing.invalid").addresses == ()


def test_jobs_beyond_the_bound_are_refused() -> None:
    gate, done = threading.Event(), []
    workers = Workers(2, pytest.fail, waiting=4)
    for _ in range(4):
        workers.submit(lambda: gate.wait(10), done.append)
    with pytest.raises(OSError, match="too many"):
        workers.submit(lambda: None, done.append)
    gate.set()
    collect(workers, done, 4)
    workers.submit(lambda: 5, done.append)
    collect(workers, done, 5)
    assert done[-1] == 5
    workers.close()
    workers.close()
