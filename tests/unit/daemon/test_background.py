"""What the daemon does beside its passes: reports on pull requests, and snapshots."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta

import pytest

from reconciler.daemon.background import SOON, LoopRules, Reviews, Snapshots
from reconciler.model.errors import Failure, Stalled, Transient, Waiting
from reconciler.ports import PullRequest
from tests.fakes.forge import MemoryForge


class Desk:
    """A forge, what was reported, and the switches of a `Reviews`."""

    def __init__(self) -> None:
        self.forge = MemoryForge()
        self.base: str | None = "main@sha1:b1"
        self.leads = True
        self.broken: set[int] = set()
        self.reported: list[tuple[int, str]] = []
        self.results: list[str] = []
        self.reviews = Reviews(
            LoopRules(lambda: self.leads, timedelta(hours=1), self.results.append),
            pull_requests=self.forge.open_pull_requests,
            report=self.report,
            base=lambda: self.base,
        )

    def report(self, pull: PullRequest) -> str:
        if pull.number in self.broken:
            raise Transient("the forge is away")
        self.reported.append((pull.number, pull.head_commit))
        return "created"

    def look(self) -> list[tuple[int, str]]:
        self.reported = []
        self.reviews.look()
        return self.reported


def test_what_was_said_is_said_again_only_when_something_moved() -> None:
    desk = Desk()
    desk.forge.add_pull(1, commit="c1")
    desk.forge.add_pull(2, commit="d1")
    assert desk.look() == [(1, "c1"), (2, "d1")]
    assert desk.look() == []
    desk.forge.add_pull(2, commit="d2")
    assert desk.look() == [(2, "d2")]
    desk.base = "main@sha1:b2"
    assert desk.look() == [(1, "c1"), (2, "d2")]
    desk.forge.close_pull_request(1, title="More")
    assert desk.look() == []
    desk.forge.add_pull(1, commit="c1")  # opened again
    assert desk.look() == [(1, "c1")]


def test_one_that_cannot_be_reported_on_is_tried_again_and_stops_no_other() -> None:
    desk = Desk()
    desk.broken = {1}
    desk.forge.add_pull(1)
    desk.forge.add_pull(2)
    assert desk.look() == [(2, "c1")]
    assert desk.results == ["transient", "created"]
    desk.broken = set()
    assert desk.look() == [(1, "c1")]


def test_nothing_is_said_by_a_replica_that_does_not_lead_or_before_the_base_is_known() -> None:
    desk = Desk()
    desk.forge.add_pull(1)
    desk.leads = False
    assert desk.look() == []
    desk.leads, desk.base = True, None
    assert desk.look() == []
    desk.base = "main@sha1:b1"
    assert desk.look() == [(1, "c1")]


INTERVAL = timedelta(minutes=10)


def snapshots(publish: Callable[[], str], results: list[str], *, leads: bool = True) -> Snapshots:
    return Snapshots(LoopRules(lambda: leads, INTERVAL, results.append), publish)


def test_one_is_published_and_then_the_interval_is_waited_for() -> None:
    results: list[str] = []
    assert snapshots(lambda: "published", results).look() == INTERVAL.total_seconds()
    assert results == ["published"]


def test_whoever_does_not_lead_publishes_nothing_and_soon_looks_again() -> None:
    results: list[str] = []
    assert snapshots(lambda: "published", results, leads=False).look() == SOON
    assert results == []


@pytest.mark.parametrize(
    ("failure", "word", "wait"),
    [
        (Waiting("pods not read yet"), "waiting", SOON),
        (Stalled("the push is refused", reason="AuthenticationFailed"), "stalled", INTERVAL.total_seconds()),
        (ZeroDivisionError(), "transient", INTERVAL.total_seconds()),
    ],
    ids=["waiting", "stalled", "defect"],
)
def test_a_failure_is_counted_and_tried_again(failure: Failure | Exception, word: str, wait: float) -> None:
    def publish() -> str:
        raise failure

    results: list[str] = []
    assert snapshots(publish, results).look() == wait
    rules = LoopRules(lambda: True, INTERVAL, results.append)
    assert Reviews(rules, pull_requests=tuple, report=lambda _pull: "", base=publish).look() == wait
    assert results == [word, word]


def test_the_thread_goes_on_until_the_daemon_ends() -> None:
    twice = threading.Event()
    count = 0

    def publish() -> str:
        nonlocal count
        count += 1
        if count == 2:
            twice.set()
        return "unchanged"

    running = Snapshots(LoopRules(lambda: True, timedelta(milliseconds=1)), publish)
    with ExitStack() as stack:
        running.start(stack)
        assert twice.wait(timeout=30)
