"""How long to wait between polls."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from reconciler.source.polling import poll_delay

MINUTE = timedelta(minutes=1)


def test_a_seed_always_gives_the_same_delay() -> None:
    assert poll_delay(MINUTE, ("daemon-a", 7)) == poll_delay(MINUTE, ("daemon-a", 7))


@given(st.integers())
def test_the_delay_is_the_interval_give_or_take_5_percent(seed: int) -> None:
    assert timedelta(seconds=57) <= poll_delay(MINUTE, seed) < timedelta(seconds=63)


def test_daemons_do_not_poll_in_step() -> None:
    delays = [poll_delay(MINUTE, f"daemon-{number}") for number in range(100)]
    assert min(delays) < timedelta(seconds=58)
    assert max(delays) > timedelta(seconds=62)
