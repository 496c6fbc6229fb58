"""A snapshot is published at every interval by the replica that leads; one that fails stops nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta

import pytest

from reconciler.daemon.beside_passes import SOON, Snapshots
from reconciler.model.errors import Failure, Stalled, Waiting

INTERVAL = timedelta(minutes=10)


def snapshots(publish: Callable[[], str], results: list[str], *, leads: bool = True) -> Snapshots:
    return Snapshots(publish=publish, is_leader=lambda: leads, interval=INTERVAL, on_result=results.append)


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
    assert results == [word]


def test_the_thread_goes_on_until_the_daemon_ends() -> None:
    twice = threading.Event()
    count = 0

    def publish() -> str:
        nonlocal count
        count += 1
        if count == 2:
            twice.set()
        return "unchanged"

    running = Snapshots(publish=publish, is_leader=lambda: True, interval=timedelta(milliseconds=1))
    with ExitStack() as stack:
        running.start(stack)
        assert twice.wait(timeout=30)
