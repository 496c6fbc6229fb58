"""When a thing that failed may be tried again."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from reconciler.source.git import FIRST, LONGEST, Backoff, after_failure, may_try, retry_delay
from tests.fakes.clock import START


def failed(target: str, times: int) -> Backoff:
    backoff = None
    for _ in range(times):
        backoff = after_failure(backoff, target, START)
    assert backoff is not None
    return backoff


def test_it_begins_at_three_quarters_of_a_second_and_doubles() -> None:
    delays = [retry_delay(failures, "main") for failures in (1, 2, 3, 4)]
    for delay, seconds in zip(delays, (0.75, 1.5, 3, 6), strict=True):
        assert timedelta(seconds=seconds * 0.9) < delay <= timedelta(seconds=seconds)


@given(st.integers(min_value=1, max_value=10**9), st.text())
def test_it_never_waits_longer_than_15_minutes(failures: int, seed: str) -> None:
    assert FIRST * 0.9 <= retry_delay(failures, seed) <= LONGEST


def test_after_a_day_of_failures_it_waits_about_15_minutes() -> None:
    assert retry_delay(100, "main") > timedelta(minutes=13)


def test_a_failed_commit_waits_and_another_one_does_not() -> None:
    backoff = failed("bad", times=8)
    assert not may_try(backoff, "bad", START + timedelta(seconds=60))
    assert may_try(backoff, "newer", START)
    assert may_try(backoff, "bad", backoff.not_before)


def test_another_target_begins_anew() -> None:
    assert after_failure(failed("bad", times=8), "newer", START).failures == 1


def test_a_clock_that_was_set_back_a_year_does_not_stop_it_for_a_year() -> None:
    assert may_try(failed("bad", times=8), "bad", START - timedelta(days=365))
