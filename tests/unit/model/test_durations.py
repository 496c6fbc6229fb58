from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.durations import format_duration, parse_duration
from reconciler.model.errors import Invalid


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
