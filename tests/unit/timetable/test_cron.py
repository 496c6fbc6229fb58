"""Cron as Karpenter's parser takes it: what is refused and what to write instead, and the hits that surprise people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.errors import Invalid
from reconciler.timetable.cron import parse_cron
from reconciler.timetable.windows import is_open
from tests.timelines import open_spans


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("0 0 * * 7", "7 is above 6, in the field for day of week", "write 0-6, or sun-sat; Sunday is 0"),
        ("0 0 1 13 *", "13 is above 12, in the field for month", "write 1-12, or jan-dec"),
        ("0 0 0 * *", "0 is below 1, in the field for day of month", "write 1-31"),
        ("60 * * * *", "60 is above 59, in the field for minute", "write 0-59"),
        ("0 18-9 * * *", "'18-9' begins after its end, in the field for hour", "write 18-23,0-9"),
        ("0 */0 * * *", "'*/0' has step 0", "write 0-23"),
        ("0 1-2-3 * * *", "'1-2-3' has too many hyphens", "write 0-23"),
        ("0 1/2/3 * * *", "'1/2/3' has too many slashes", "write 0-23"),
        ("0 0 L * *", "'L' is not a number", "write 1-31"),
        ("0 0 * * fri#2", "'fri#2' is not a number", "Sunday is 0"),
        ("0 99999999999999999999 * * *", "is not a number", "write 0-23"),
        ("0 0 9 * * *", "has 6 fields, not 5", "there is no field for seconds"),
        ("0 9 * *", "has 4 fields, not 5", "write minute, hour, day of month, month and day of week"),
        ("", "has 0 fields, not 5", "write minute, hour"),
        ("@dailyish", "is not a descriptor", "@daily, @hourly"),
        ("@reboot", "is not a descriptor", "or five fields"),
        ("@every 1h", "is not a descriptor", "@daily, @hourly"),
        ("0 0 * * fri-mon", "'fri-mon' begins after its end", "write fri-sat,sun-mon"),
        ("TZ=Europe/Berlin 0 9 * * *", "names a time zone", "headroom.dev/timezone"),
        ("CRON_TZ=UTC @daily", "names a time zone", "write '@daily' in UTC"),
    ],
)
def test_what_karpenter_cannot_evaluate_is_refused_with_what_to_write(text: str, message: str, hint: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_cron(text)
    assert message in refused.value.message
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    ("text", "after", "hit"),
    [
        ("0 9 * * mon-fri", "2026-11-20T09:00:00", "2026-11-23T09:00:00"),
        ("0 9 * * MON-Fri", "2026-11-20T08:59:59.999", "2026-11-20T09:00:00"),
        # Day of month and weekday: either is enough, also where one of them begins with a star.
        ("0 0 13 * fri", "2026-11-13T00:00:00", "2026-11-20T00:00:00"),
        ("0 0 */2 * mon", "2026-11-22T12:00:00", "2026-11-23T00:00:00"),
        ("0 0 */2 * mon", "2026-11-23T12:00:00", "2026-11-25T00:00:00"),
        # But */1 is every day, which restricts nothing.
        ("0 0 */1 * mon", "2026-11-23T12:00:00", "2026-11-30T00:00:00"),
        ("5/20 * * * *", "2026-11-20T09:05:00", "2026-11-20T09:25:00"),
        ("0 0 31 * *", "2026-11-20T00:00:00", "2026-12-31T00:00:00"),
        ("0 0 29 2 *", "2026-11-20T00:00:00", "2028-02-29T00:00:00"),
        ("@weekly", "2026-11-20T00:00:00", "2026-11-22T00:00:00"),
        (" @hourly ", "2026-11-20T00:00:00", "2026-11-20T01:00:00"),
    ],
)
def test_the_next_hit(text: str, after: str, hit: str) -> None:
    later = (at(after) + timedelta(seconds=1)).replace(microsecond=0)
    first, _ = open_spans(text, timedelta(seconds=1), later, later + timedelta(days=3 * 366))[0]
    assert first == at(hit)


def test_windows_that_touch_are_one() -> None:
    hourly = open_spans("0 * * * *", timedelta(hours=1), at("2026-11-20T00:30:00"), at("2026-11-21T00:00:00"))
    assert hourly == ((at("2026-11-20T00:30:00"), at("2026-11-21T00:00:00")),)


def test_a_window_that_opened_before_the_span_reaches_into_it() -> None:
    weekend = open_spans("0 18 * * fri", timedelta(hours=62), at("2026-11-22T00:00:00"), at("2026-11-30T00:00:00"))
    assert weekend == (
        (at("2026-11-22T00:00:00"), at("2026-11-23T08:00:00")),
        (at("2026-11-27T18:00:00"), at("2026-11-30T00:00:00")),
    )


def test_a_window_without_length_is_never_open() -> None:
    now = at("2026-11-20T09:00:00")
    assert not is_open("0 9 * * *", timedelta(0), now)
    assert open_spans("0 9 * * *", timedelta(0), now, now + timedelta(days=7)) == ()
