"""When passes are made: quiet times, back-offs, and what ends them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.errors import Failure, Invalid, Stalled, Transient, Waiting
from reconciler.timetable.agenda import Agenda, Pacing, Trigger

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
NO_ANSWER = Transient("no answer")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def agenda() -> Agenda:
    """2 s of quiet, 15 s at most; back-offs 1 s, 2 s, 4 s … 60 s."""
    return Agenda(
        Pacing(
            quiet=timedelta(seconds=2),
            quiet_at_most=timedelta(seconds=15),
            retry_first=timedelta(seconds=1),
            retry_at_most=timedelta(minutes=1),
        )
    )


def failed(failure: Failure, seconds: float = 0) -> Agenda:
    """After a pass that failed."""
    made = agenda()
    made.want(Trigger.CHANGE, at(seconds - 2))
    made.begin(at(0))
    made.ended(at(seconds), failure)
    return made


def test_nothing_is_due_while_nothing_happens() -> None:
    assert agenda().due() is None


@pytest.mark.parametrize("trigger", [Trigger.START, Trigger.REQUEST, Trigger.TICK])
def test_a_start_a_request_and_a_tick_are_due_at_once(trigger: Trigger) -> None:
    made = agenda()
    made.want(trigger, at(0))
    assert made.due() == (at(0), trigger)


@pytest.mark.parametrize("trigger", [Trigger.CHANGE, Trigger.COMMIT])
def test_a_change_or_a_commit_waits_for_quiet(trigger: Trigger) -> None:
    made = agenda()
    made.want(trigger, at(0))
    assert made.due() == (at(2), trigger)
    made.want(Trigger.CHANGE, at(1.5))
    assert made.due() == (at(3.5), trigger)


def test_a_restless_cluster_does_not_put_a_pass_off_for_ever() -> None:
    made = agenda()
    for second in range(20):
        made.want(Trigger.CHANGE, at(second))
    assert made.due() == (at(15), Trigger.CHANGE)


def test_a_tick_does_not_wait_for_the_quiet_of_a_change() -> None:
    made = agenda()
    made.want(Trigger.CHANGE, at(0))
    made.want(Trigger.TICK, at(1))
    assert made.due() == (at(1), Trigger.CHANGE)


def test_a_pass_sees_all_that_happened_before_it_and_nothing_that_comes_after() -> None:
    made = agenda()
    made.want(Trigger.CHANGE, at(0))
    made.want(Trigger.TICK, at(1))
    made.begin(at(0))
    assert made.due() is None
    made.want(Trigger.CHANGE, at(5))
    made.ended(at(6), None)
    assert made.due() == (at(7), Trigger.CHANGE)


def test_a_transient_failure_is_retried_after_a_back_off_that_doubles_up_to_its_limit() -> None:
    made = agenda()
    now, delays = NOON, []
    made.want(Trigger.TICK, now)
    for _ in range(8):
        made.begin(at(0))
        made.ended(now, NO_ANSWER)
        due = made.due()
        assert due is not None
        assert due[1] is Trigger.RETRY
        delays.append((due[0] - now).total_seconds())
        now = due[0]
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_success_starts_the_back_off_anew() -> None:
    made = failed(NO_ANSWER)
    for failure in (NO_ANSWER, None, NO_ANSWER):
        made.begin(at(0))
        made.ended(at(10), failure)
    assert made.due() == (at(11), Trigger.RETRY)


@pytest.mark.parametrize("trigger", [Trigger.CHANGE, Trigger.TICK])
def test_neither_changes_nor_ticks_cut_a_back_off_short(trigger: Trigger) -> None:
    made = agenda()
    for _ in range(6):
        made.begin(at(0))
        made.ended(at(0), NO_ANSWER)
    made.want(trigger, at(1))
    due = made.due()
    assert due is not None
    assert due[0] == at(32)


@pytest.mark.parametrize("failure", [NO_ANSWER, Invalid("broken"), Stalled("gone", reason="Gone")])
def test_a_newer_commit_is_never_held_up_by_the_one_that_failed(failure: Failure) -> None:
    made = agenda()
    for _ in range(6):
        made.begin(at(0))
        made.ended(at(0), failure)
    made.want(Trigger.COMMIT, at(0))
    assert made.due() == (at(2), Trigger.COMMIT)


@pytest.mark.parametrize("failure", [NO_ANSWER, Invalid("broken"), Stalled("gone", reason="Gone")])
def test_nor_is_one_that_came_while_the_failing_pass_was_under_way(failure: Failure) -> None:
    made = agenda()
    made.want(Trigger.START, at(0))
    made.begin(at(0))
    made.want(Trigger.COMMIT, at(1))
    made.ended(at(10), failure)
    assert made.due() == (at(3), Trigger.COMMIT)


@pytest.mark.parametrize("failure", [Invalid("broken"), Stalled("gone", reason="Gone")])
def test_what_only_a_person_can_mend_is_looked_at_again_at_the_next_poll(failure: Failure) -> None:
    made = failed(failure)
    made.want(Trigger.CHANGE, at(1))
    made.want(Trigger.TICK, at(1))
    assert made.due() is None
    made.polled(at(30))
    due = made.due()
    assert due is not None
    assert due[0] <= at(30)


def test_a_poll_without_news_starts_no_pass() -> None:
    made = agenda()
    made.polled(at(0))
    assert made.due() is None


def test_a_pass_that_waits_goes_on_at_the_next_change() -> None:
    made = failed(Waiting("not synced"))
    assert made.due() is None
    made.want(Trigger.CHANGE, at(1))
    assert made.due() == (at(3), Trigger.CHANGE)


def test_a_request_ends_a_back_off() -> None:
    made = failed(NO_ANSWER)
    made.want(Trigger.REQUEST, at(0.1))
    assert made.due() == (at(0.1), Trigger.REQUEST)


def test_a_clock_that_is_set_back_takes_what_is_planned_with_it() -> None:
    made = agenda()
    for _ in range(6):
        made.begin(at(0))
        made.ended(at(0), NO_ANSWER)
    made.set_back(timedelta(hours=1), at(-3600))
    assert made.due() == (at(32 - 3600), Trigger.RETRY)


def test_a_clock_that_is_set_back_is_reason_enough_for_a_pass() -> None:
    made = agenda()
    made.set_back(timedelta(hours=1), at(-3600))
    assert made.due() == (at(-3600), Trigger.CLOCK)


def test_taken_room_waits_only_for_the_burst_that_it_comes_in() -> None:
    made = agenda()
    made.want(Trigger.CHANGE, at(0))
    made.want(Trigger.TAKEN, at(0.1))
    assert made.due() == (at(0.25), Trigger.TAKEN)
    made.want(Trigger.TAKEN, at(0.2))
    assert made.due() == (at(0.35), Trigger.TAKEN)
    for tenths in range(3, 30):
        made.want(Trigger.TAKEN, at(tenths / 10))
    assert made.due() == (at(0.6), Trigger.TAKEN)


def test_room_taken_right_after_a_refill_is_gathered_as_any_change() -> None:
    made = agenda()
    made.want(Trigger.TAKEN, at(0))
    made.begin(at(0.15))
    made.want(Trigger.TAKEN, at(1))
    assert made.due() == (at(3), Trigger.TAKEN)
    made.begin(at(3))
    made.want(Trigger.TAKEN, at(3.5))
    assert made.due() == (at(3.65), Trigger.TAKEN)


def test_room_that_has_come_is_answered_at_once_and_delays_no_refill() -> None:
    made = agenda()
    made.want(Trigger.CAME, at(0))
    assert made.due() == (at(0.15), Trigger.CAME)
    made.begin(at(0.15))
    made.want(Trigger.TAKEN, at(1))
    assert made.due() == (at(1.15), Trigger.TAKEN)


def test_a_pass_for_another_reason_delays_no_refill() -> None:
    made = agenda()
    made.want(Trigger.TICK, at(0))
    made.begin(at(0))
    made.want(Trigger.TAKEN, at(0.5))
    assert made.due() == (at(0.65), Trigger.TAKEN)


def test_a_clock_that_was_set_back_delays_no_refill() -> None:
    made = agenda()
    made.want(Trigger.TAKEN, at(0))
    made.begin(at(0.15))
    made.want(Trigger.TAKEN, at(-3600))
    assert made.due() == (at(-3600) + timedelta(milliseconds=150), Trigger.TAKEN)
