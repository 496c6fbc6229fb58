"""When a pass is due: edges, and what people ask for."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from queue import Queue

import pytest
from apscheduler.schedulers.background import BackgroundScheduler
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.daemon.timers import Edges, Requests
from reconciler.model.errors import Transient
from reconciler.model.schedules import Edge
from reconciler.ports import PassResult
from reconciler.timetable.agenda import Pacing, Trigger
from tests.fakes.clock import START, ManualClock
from tests.unit.daemon.running import PATIENCE as SOON
from tests.unit.daemon.running import Passes, Running, Told

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def hourly(after: datetime) -> Edge:
    """An edge at every full hour."""
    return Edge(after.replace(minute=0, second=0, microsecond=0) + HOUR, "hourly")


class Watched:
    """Edges of a schedule that changes every hour, with a clock that only the test moves."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.told: list[datetime] = []
        self.edges = Edges(hourly, self.clock, lambda edge: self.told.append(edge.at))
        self.edges.look_from(self.clock.now())

    def pass_time(self, step: timedelta) -> list[datetime]:
        """Move the clock, as the daemon sees it at its next heartbeat; the edges told because of it."""
        before = len(self.told)
        self.clock.advance(step)
        if step < timedelta(0):
            self.edges.look_from(self.clock.now())
        self.edges.look()
        return self.told[before:]


def test_an_edge_that_a_commit_brought_while_its_pass_was_under_way_counts() -> None:
    clock = ManualClock()
    told: list[datetime] = []
    declared: list[Edge] = []

    def first_after(after: datetime) -> Edge | None:
        return next((edge for edge in declared if edge.at > after), None)

    edges = Edges(first_after, clock, lambda edge: told.append(edge.at))
    began = clock.now()
    declared.append(Edge(began + timedelta(seconds=3), "new"))
    clock.advance(5)
    edges.look_from(began)
    assert told == [began + timedelta(seconds=3)]
    edges.look_from(began)
    assert len(told) == 1, "a pass that looked at it already is no reason to tell again"


@settings(deadline=None)
@given(st.lists(st.integers(-5 * 3600, 12 * 3600).map(lambda seconds: timedelta(seconds=seconds)), max_size=20))
def test_however_the_clock_jumps_an_edge_is_told_once_for_each_time_it_is_passed(steps: list[timedelta]) -> None:
    watched = Watched()
    for step in steps:
        before = watched.clock.now()
        told = watched.pass_time(step)
        after = watched.clock.now()
        crossed = hourly(before).at <= after
        assert told == ([hourly(before).at] if crossed else [])
        assert watched.edges.next == hourly(after)


def test_the_job_lies_at_the_edge_of_the_machines_clock_and_moves_with_a_clock_that_is_set() -> None:
    watched = Watched()
    scheduler = BackgroundScheduler(timezone=UTC)
    scheduler.start(paused=True)
    try:
        watched.edges.start(scheduler)
        for step in (timedelta(0), timedelta(minutes=20), timedelta(minutes=-10)):
            watched.pass_time(step)
            away = START + HOUR - watched.clock.now()
            (job,) = scheduler.get_jobs()
            assert abs(job.trigger.run_date - datetime.now(UTC) - away) < timedelta(seconds=5)
    finally:
        scheduler.shutdown(wait=False)


def test_a_defect_in_asking_for_edges_ends_nothing() -> None:
    def broken(_after: datetime) -> Edge | None:
        raise ValueError("a defect")

    edges = Edges(broken, ManualClock(), lambda _edge: None)
    edges.look_from(START)
    assert edges.next is None


@pytest.mark.parametrize("is_routine", [False, True])
def test_the_daemon_makes_a_pass_at_an_edge_without_any_tick(is_routine: bool) -> None:  # noqa: FBT001 - the case
    """Edges that follow most changes of the cluster were a line in the log each, one a second."""
    edge = Edge(START + timedelta(seconds=2), "MetricsProducer/shop/office", is_routine)
    log = Told()
    with Running(Passes(), next_edge=lambda after: edge if after < edge.at else None, log=log) as running:
        assert running.passes.next() is Trigger.START
        running.clock.advance(2)
        assert running.passes.next() is Trigger.EDGE
    assert log.told.empty() is is_routine


def test_the_daemon_wakes_at_an_edge_by_its_job_when_the_clock_is_the_machines() -> None:
    class Machine:
        def now(self) -> datetime:
            return datetime.now(UTC)

    began = datetime.now(UTC)
    edge = Edge(began + timedelta(milliseconds=1500), "MetricsProducer/shop/office")
    passes = Passes()
    with Running(passes, clock=Machine(), next_edge=lambda after: edge if after < edge.at else None):
        assert [passes.next(), passes.next()] == [Trigger.START, Trigger.EDGE]
    assert datetime.now(UTC) >= edge.at


def test_edges_come_although_passes_fail() -> None:
    failing = Passes(*(PassResult(failure=Transient("no answer")) for _ in range(3)))
    with Running(failing, next_edge=hourly, pacing=Pacing(retry_first=DAY, retry_at_most=DAY)) as running:
        assert running.passes.next() is Trigger.START
        for _ in range(2):
            running.clock.advance(HOUR)
            assert running.passes.next() is Trigger.EDGE


def test_the_pass_sees_what_was_pushed_before_it_was_asked_for() -> None:
    """The pass was made of the old commit, and told as made for the request; the new one came with the next poll, a minute later."""
    pushed, polls = threading.Event(), Queue[bool]()

    def poll() -> bool:
        polls.put(pushed.is_set())
        return pushed.is_set()

    told = Queue[Trigger]()
    with Running(Passes(), poll_source=poll, on_result=lambda trigger, _result: told.put(trigger)) as running:
        told.get(timeout=SOON)
        pushed.set()
        running.daemon.request("noon")
        assert told.get(timeout=SOON) is Trigger.REQUEST
        assert polls.get(timeout=SOON)
        assert running.daemon.handled_request == "noon"


def test_a_pass_is_made_where_the_repository_cannot_be_polled() -> None:
    def poll() -> bool:
        raise Transient("no answer")

    told = Queue[Trigger]()
    with Running(Passes(), poll_source=poll, on_result=lambda trigger, _result: told.put(trigger)) as running:
        told.get(timeout=SOON)
        running.daemon.request("noon")
        assert told.get(timeout=SOON) is Trigger.REQUEST


def test_a_poll_that_began_before_does_not_count() -> None:
    requests = Requests()
    requests.poll_begins()
    assert requests.ask("noon")
    assert not requests.poll_ended()
    requests.poll_begins()
    assert requests.poll_ended()
    assert requests.pass_begins() == "noon"


def test_a_pass_for_another_reason_does_not_handle_it() -> None:
    requests = Requests()
    requests.ask("noon")
    requests.pass_ended(requests.pass_begins())
    assert requests.handled == ""
