"""The daemon with real threads and a clock that the test moves: passes one at a time, and retries."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from queue import Queue
from typing import Any

import pytest

from reconciler.daemon.ending import SLOW, Watchdog
from reconciler.model.changes import Outcome, Plan
from reconciler.model.errors import Failure, Invalid, Stalled, Transient
from reconciler.ports import PassResult
from reconciler.timetable.agenda import Pacing, Trigger
from tests.controlplane.waiting import eventually
from tests.fakes.passes import wrote
from tests.plans import full_plan
from tests.unit.daemon.running import PATIENCE, Passes, Running, Told

PLAN = replace(full_plan(), blocked=())


def test_it_makes_a_pass_at_the_start_and_one_after_each_change() -> None:
    with Running(Passes()) as running:
        assert running.passes.next() is Trigger.START
        running.daemon.changed()
        assert running.passes.next() is Trigger.CHANGE


def test_it_ends_with_0_when_it_is_stopped() -> None:
    running = Running(Passes())
    with running:
        running.passes.next()
    assert running.ended() == 0


def test_passes_never_overlap_and_changes_during_one_make_one_more() -> None:
    passes = Passes()
    passes.gate.clear()
    with Running(passes) as running:
        passes.next()
        for _ in range(5):
            running.daemon.changed()
        assert passes.begun.empty()
        passes.gate.set()
        assert passes.next() is Trigger.CHANGE
        running.daemon.request("2026-11-23T09:00:00Z")
        assert passes.next() is Trigger.REQUEST


def test_ticks_come_without_any_change() -> None:
    with Running(Passes(), tick=timedelta(milliseconds=50)) as running:
        assert [running.passes.next() for _ in range(3)] == [Trigger.START, Trigger.TICK, Trigger.TICK]


def test_polls_come_by_themselves_and_a_commit_makes_a_pass() -> None:
    news = Queue[bool]()
    for item in (False, False, True):
        news.put(item)
    polled = Queue[str]()
    with Running(
        Passes(),
        poll_source=lambda: news.get(timeout=PATIENCE) if not news.empty() else False,
        poll=timedelta(milliseconds=50),
        on_poll=lambda result, _seconds: polled.put(result),
    ) as running:
        assert running.passes.next() is Trigger.START
        assert running.passes.next() is Trigger.COMMIT
        assert [polled.get(timeout=PATIENCE) for _ in range(3)] == ["unchanged", "unchanged", "changed"]


@pytest.mark.parametrize("error", [Transient("no answer"), ValueError("a defect")])
def test_a_failing_poll_does_not_end_the_polling(error: Exception) -> None:
    answers: list[Callable[[], bool]] = [lambda: _raise(error), lambda: True]
    polled = Queue[str]()
    with Running(
        Passes(),
        poll_source=lambda: answers.pop(0)() if answers else False,
        poll=timedelta(milliseconds=50),
        on_poll=lambda result, _seconds: polled.put(result),
    ) as running:
        assert running.passes.next() is Trigger.START
        assert running.passes.next() is Trigger.COMMIT
        assert polled.get(timeout=PATIENCE) == "transient"


def _raise(error: Exception) -> bool:
    raise error


@pytest.mark.parametrize(
    "first",
    [PassResult(failure=Transient("no answer")), PassResult(change_set=wrote(Outcome.FAILED)), ValueError("a defect")],
)
def test_what_may_succeed_later_is_tried_again_by_itself(first: PassResult | Exception) -> None:
    with Running(Passes(first), pacing=Pacing(retry_first=timedelta(0))) as running:
        assert [running.passes.next(), running.passes.next()] == [Trigger.START, Trigger.RETRY]


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.FAILED])
def test_writes_that_were_not_made_delay_no_change(outcome: Outcome) -> None:
    pacing = Pacing(quiet=timedelta(0), retry_first=timedelta(hours=1))
    with Running(Passes(PassResult(change_set=wrote(outcome))), pacing=pacing) as running:
        running.passes.next()
        running.daemon.changed()
        assert running.passes.next() is Trigger.CHANGE


@pytest.mark.parametrize("failure", [Invalid("broken"), Stalled("gone", reason="Gone")])
def test_what_a_person_must_mend_is_looked_at_again_after_a_poll(failure: Failure) -> None:
    told = Queue[Trigger]()
    with Running(Passes(PassResult(failure=failure)), on_result=lambda trigger, _result: told.put(trigger)) as running:
        assert running.passes.next() is told.get(timeout=PATIENCE)
        running.daemon.changed()
        running.daemon.poll_now()
        assert running.passes.next() is Trigger.RETRY


def test_the_same_request_is_handled_once() -> None:
    results = Queue[Trigger]()
    with Running(Passes(), on_result=lambda trigger, _result: results.put(trigger)) as running:
        results.get(timeout=PATIENCE)
        running.daemon.request("one")
        assert results.get(timeout=PATIENCE) is Trigger.REQUEST
        assert running.daemon.handled_request == "one"
        running.daemon.request("one")
        running.daemon.changed()
        assert results.get(timeout=PATIENCE) is Trigger.CHANGE


def test_no_pass_is_made_while_another_replica_leads() -> None:
    answers = Queue[bool]()
    leads = threading.Event()

    def is_leader() -> bool:
        answers.put(leads.is_set())
        return leads.is_set()

    log = Told()
    with Running(Passes(PassResult(plan=full_plan())), is_leader=is_leader, log=log) as running:
        running.daemon.changed()
        for _ in range(3):
            answers.get(timeout=PATIENCE)
        assert running.passes.begun.empty()
        assert running.daemon.readiness() == (True, "another replica leads")
        leads.set()
        assert running.passes.next() is Trigger.START
        leads.clear()
        assert [log.told.get(timeout=PATIENCE) for _ in range(2)] == [
            "this replica leads now",
            "this replica leads no longer",
        ]
        is_standby = (True, "another replica leads")
        eventually(
            lambda: running.daemon.readiness() == is_standby, within=PATIENCE, what="its last pass counts no more"
        )


def test_a_clock_that_is_set_back_makes_a_pass_and_holds_nothing_up() -> None:
    with Running(Passes()) as running:
        running.passes.next()
        running.clock.advance(-7200)
        assert running.passes.next() is Trigger.CLOCK
        running.daemon.changed()
        assert running.passes.next() is Trigger.CHANGE


def test_after_that_ticks_are_reckoned_from_the_new_time() -> None:
    with Running(Passes()) as running:
        running.passes.next()
        before = tick_of(running).next_run_time
        running.clock.advance(-7200)
        running.passes.next()
        eventually(lambda: tick_of(running).next_run_time > before, within=PATIENCE, what="the tick is set anew")


def test_a_clock_that_jumps_ahead_is_noticed_within_a_second_by_what_is_overdue() -> None:
    with Running(Passes()) as running:
        running.passes.next()
        tick = tick_of(running)
        # The scheduler itself is not told, as nobody tells it when the machine's clock is set.
        tick._modify(next_run_time=datetime.now(UTC))
        scheduler_of(running)._jobstores["default"].update_job(tick)
        assert running.passes.next() is Trigger.TICK


def scheduler_of(running: Running) -> Any:
    assert running.daemon._jobs._scheduler is not None
    return running.daemon._jobs._scheduler


def tick_of(running: Running) -> Any:
    return scheduler_of(running).get_job("tick")


def test_it_is_ready_once_a_pass_has_succeeded() -> None:
    told = Queue[Trigger]()
    with Running(
        Passes(PassResult(failure=Transient("no answer")), PassResult(plan=PLAN)),
        on_result=lambda trigger, _result: told.put(trigger),
        pacing=Pacing(retry_first=timedelta(0)),
        is_leader=lambda: True,
    ) as running:
        for _ in range(2):
            told.get(timeout=PATIENCE)
        assert running.daemon.readiness() == (True, "ok")
        assert running.daemon.health() == (True, "ok")


@pytest.mark.parametrize(
    ("plan", "failure", "readiness"),
    [
        (None, Transient("no answer"), (False, "no pass has succeeded yet: no answer")),
        (PLAN, Transient("no answer"), (False, "no pass has succeeded yet: no answer")),
        (
            replace(PLAN, blocked=("pods cannot be watched", "nodes cannot be watched")),
            None,
            (True, "ok, but nothing is deleted or released: pods cannot be watched and 1 more"),
        ),
    ],
    ids=["no plan", "nothing could be written", "nothing may be deleted"],
)
def test_it_says_what_is_missing(plan: Plan | None, failure: Failure | None, readiness: tuple[bool, str]) -> None:
    """It was ready as soon as there was a plan, though the API server answered to no write."""
    told = Queue[Trigger]()
    with Running(
        Passes(PassResult(plan=plan, failure=failure)), on_result=lambda trigger, _result: told.put(trigger)
    ) as running:
        told.get(timeout=PATIENCE)
        assert running.daemon.readiness() == readiness


def test_while_nobody_is_known_to_lead_it_is_not_ready_and_says_why() -> None:
    """It had led, and its Lease could not be renewed any more: it was told as ready, and made no pass."""
    trouble = ""
    told = Queue[Trigger]()
    with Running(
        Passes(PassResult(plan=PLAN)),
        on_result=lambda trigger, _result: told.put(trigger),
        is_leader=lambda: not trouble,
        trouble=lambda: trouble,
    ) as running:
        told.get(timeout=PATIENCE)
        assert running.daemon.readiness() == (True, "ok")
        trouble = "no leader is known: the Lease cannot be read"
        assert running.daemon.readiness() == (False, trouble)
        assert running.daemon.held_up == trouble
        trouble = ""
        eventually(lambda: running.daemon.readiness() == (True, "ok"), within=PATIENCE, what="it leads again")


def test_while_a_pass_is_held_up_it_is_not_ready_but_healthy() -> None:
    """An API server that accepts connections and never answers was told as ready."""
    passed = 0.0
    told = Queue[Trigger]()
    passes = Passes(PassResult(plan=PLAN))
    with Running(
        passes, on_result=lambda trigger, _result: told.put(trigger), watchdog=Watchdog(seconds=lambda: passed)
    ) as running:
        passes.next()
        told.get(timeout=PATIENCE)
        passes.gate.clear()
        running.daemon.changed()
        passes.next()
        assert running.daemon.readiness() == (True, "ok")
        passed += SLOW + 1
        why = "a pass has made no progress for 21 s (phase: start)"
        assert running.daemon.readiness() == (False, why)
        assert running.daemon.held_up == why
        assert running.daemon.health() == (True, "ok")
        passes.gate.set()
        told.get(timeout=PATIENCE)
        assert running.daemon.readiness() == (True, "ok")


def test_what_goes_wrong_in_telling_about_a_pass_does_not_end_the_daemon() -> None:
    with Running(Passes(), on_result=lambda _trigger, _result: _raise(ValueError("a defect"))) as running:
        running.passes.next()
        running.daemon.changed()
        assert running.passes.next() is Trigger.CHANGE
