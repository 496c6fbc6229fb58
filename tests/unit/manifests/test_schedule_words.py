"""Windows in plain words: what a person types, and the lists that come of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.cli.init_schedule import Window, read_window, schedule_yaml
from reconciler.manifests.repository.declared import read
from reconciler.model.errors import Invalid
from reconciler.model.schedules import Schedule, TimePattern
from reconciler.timetable.capacity_schedule import state_at

MONDAY_TO_FRIDAY = (1, 2, 3, 4, 5)
EVERY_DAY = None
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
SUNDAY = datetime(2026, 11, 22, tzinfo=UTC)


def schedule(*words: str) -> Schedule:
    windows = [(window, window.replicas or 3) for window in map(read_window, words)]
    text = schedule_yaml(name="hours", namespace="shop", timezone="UTC", default=1, windows=windows)
    declared = read({"hours.yaml": text.encode()})
    assert declared.findings == ()
    (found,) = declared.schedules
    return found


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ("mon-fri 9-17", (MONDAY_TO_FRIDAY, 9, 0), (MONDAY_TO_FRIDAY, 17, 0)),
        ("Mon - Fri 9:30 – 17:45", (MONDAY_TO_FRIDAY, 9, 30), (MONDAY_TO_FRIDAY, 17, 45)),
        ("weekdays 9am-5:30pm", (MONDAY_TO_FRIDAY, 9, 0), (MONDAY_TO_FRIDAY, 17, 30)),
        ("monday to friday 9 to 17", (MONDAY_TO_FRIDAY, 9, 0), (MONDAY_TO_FRIDAY, 17, 0)),
        ("sat,sun 10-14", ((0, 6), 10, 0), ((0, 6), 14, 0)),
        ("saturday and sunday 10 to 14", ((0, 6), 10, 0), ((0, 6), 14, 0)),
        ("weekend midnight-noon", ((0, 6), 0, 0), ((0, 6), 12, 0)),
        ("9-17", (EVERY_DAY, 9, 0), (EVERY_DAY, 17, 0)),
        ("daily 12am-12pm", (EVERY_DAY, 0, 0), (EVERY_DAY, 12, 0)),
        ("fri-mon 8-9", ((0, 1, 5, 6), 8, 0), ((0, 1, 5, 6), 9, 0)),
        ("daily 22-6", (EVERY_DAY, 22, 0), (EVERY_DAY, 6, 0)),
        ("fri 22-6", ((5,), 22, 0), ((6,), 6, 0)),
        ("mon-fri 18-24", (MONDAY_TO_FRIDAY, 18, 0), ((2, 3, 4, 5, 6), 0, 0)),
        ("sat 0-24", ((6,), 0, 0), ((0,), 0, 0)),
        ("fri 17 - mon 9", ((5,), 17, 0), ((1,), 9, 0)),
    ],
)
def test_what_a_person_types(
    words: str, start: tuple[tuple[int, ...] | None, int, int], end: tuple[tuple[int, ...] | None, int, int]
) -> None:
    def pattern(expected: tuple[tuple[int, ...] | None, int, int]) -> TimePattern:
        weekdays, hour, minute = expected
        return TimePattern(minutes=(minute,) if minute else None, hours=(hour,), weekdays=weekdays)

    (behavior,) = schedule(words).behaviors
    assert (behavior.start, behavior.end) == (pattern(start), pattern(end))


def test_a_window_may_say_how_many() -> None:
    assert read_window("mon-fri 9-17 = 12").replicas == 12
    assert read_window("mon-fri 9-17=0").replicas == 0
    assert read_window("mon-fri 9-17:30").replicas is None


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("whenever", "write it like"),
        ("mon-fri", "write it like"),
        ("mun-fri 9-17", "write Sun, Mon"),
        ("mondays 9-17", "write Sun, Mon"),
        ("mon 9-25", "write 9, 9:30"),
        ("mon 9:75-10", "write 9, 9:30"),
        ("mon 13pm-14", "write 9am"),
        ("mon 24-3", "write 0 and the next day"),
        ("mon,tue 9 - fri 17", "write it like"),
        ("daily 0-24", "--default"),
        ("daily 9-9", "--default"),
        ("", "write it like"),
    ],
)
def test_what_cannot_be_meant_has_a_hint(words: str, hint: str) -> None:
    with pytest.raises(Invalid) as error:
        read_window(words)
    assert hint in error.value.hint


def test_words_cannot_break_out_of_their_comment() -> None:
    window = Window("mon 9-17", frozenset({1}), 9 * 60, frozenset({1}), 17 * 60)
    assert read_window("mon\n9-17") == window


@settings(deadline=None, max_examples=40)
@given(
    days=st.sets(st.integers(0, 6), min_size=1),
    times=st.lists(st.integers(0, 24 * 4), min_size=2, max_size=2, unique=True),
)
def test_the_schedule_is_worth_what_the_words_say(days: set[int], times: list[int]) -> None:
    """At every quarter of an hour of a week; windows over midnight too."""
    first, last = times
    if first == 24 * 4 or (first, last) == (0, 24 * 4):
        return
    names = ",".join(DAYS[day] for day in sorted(days))
    found = schedule(f"{names} {first // 4}:{first % 4 * 15:02}-{last // 4}:{last % 4 * 15:02}")
    length = (last - first) % (24 * 4)
    wanted = {(day * 96 + first + step) % (7 * 96) for day in days for step in range(length)}
    for quarter in range(0, 7 * 96, 11):
        value = state_at(found, SUNDAY + timedelta(minutes=15 * quarter)).current_value
        assert value == (3 if quarter in wanted else 1), quarter
