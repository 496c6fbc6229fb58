from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.errors import Invalid
from reconciler.model.quantity import format_duration, parse_duration


@pytest.mark.parametrize(
    ("written", "duration"),
    [
        ("720h", timedelta(hours=720)),
        ("1h30m", timedelta(minutes=90)),
        ("90s", timedelta(seconds=90)),
        ("1.5h", timedelta(minutes=90)),
        ("250ms", timedelta(milliseconds=250)),
        ("0", timedelta(0)),
    ],
)
def test_durations_as_go_writes_them(written: str, duration: timedelta) -> None:
    assert parse_duration(written) == duration


@pytest.mark.parametrize("written", ["", "1d", "5", "h", "1h 30m", "-1h", "1h!"])
def test_other_spellings_are_refused(written: str) -> None:
    with pytest.raises(Invalid, match="not a duration"):
        parse_duration(written)


@given(st.integers(min_value=0, max_value=10**9))
def test_formatting_loses_nothing(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration)) == duration


def test_the_longest_duration_is_go_s() -> None:
    """Go's time.ParseDuration counts nanoseconds in 64 bits: 2^63 - 1 of them."""
    assert parse_duration("2562047h47m16.854775807s") == timedelta(microseconds=(2**63 - 1) // 1000)
    with pytest.raises(Invalid, match="too long a duration") as caught:
        parse_duration("2562047h47m16.854775808s")
    assert "at most 2562047h" in caught.value.hint


@pytest.mark.parametrize("written", ["2562048h", "153722867281m", "9" * 22 + "h", "9" * 5000 + "s", "2562047h2562047h"])
def test_a_longer_one_is_refused_and_never_a_number_too_large(written: str) -> None:
    with pytest.raises(Invalid, match="too long a duration"):
        parse_duration(written)


def test_leading_zeros_are_no_length() -> None:
    assert parse_duration("0" * 30 + "1h") == timedelta(hours=1)
