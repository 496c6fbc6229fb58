"""Where instants are on a chart, in a given time zone.

Days begin at local midnight, even if daylight saving makes one 23 or 25 hours long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from reconciler.report.drawing.svg import Drawing, width_of

_HOUR = timedelta(hours=1)
_SECOND = timedelta(seconds=1)
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BETWEEN = 6
"""The least distance of two names of days, in pixels."""
MOST_DAYS = 400
"""The longest span with a mark for each day, in days. A longer one has no marks."""


def local_zone(now: datetime) -> tzinfo:
    """The machine's own time zone at `now`, the default."""
    zone = now.astimezone().tzinfo
    assert zone is not None
    return zone


def day_words(day: date) -> str:
    """`Mon 23 Nov`."""
    return f"{_WEEKDAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]}"


def instant_words(time: datetime, zone: tzinfo) -> str:
    """`Mon 23 Nov 09:00`, in the zone; with seconds only if they are not 0."""
    local = time.astimezone(zone)
    return f"{day_words(local.date())} {local:%H:%M:%S}" if local.second else f"{day_words(local.date())} {local:%H:%M}"


def span_words(start: datetime, end: datetime, zone: tzinfo) -> str:
    """`Mon 23 Nov 09:00 to 17:00`; with the day of the end only if it is another."""
    first, last = start.astimezone(zone), end.astimezone(zone)
    clock = f"{last:%H:%M:%S}" if last.second else f"{last:%H:%M}"
    until = clock if first.date() == last.date() else instant_words(end, zone)
    return f"{instant_words(start, zone)} to {until}"


def midnight(day: date, zone: tzinfo) -> datetime:
    """The instant at which a local day begins, in UTC; where its midnight does not exist, the first instant that does."""
    # A midnight that daylight saving skips is read with the offset before the change, which is the instant of the change.
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def midnights(start: datetime, end: datetime, zone: tzinfo) -> Iterator[tuple[date, datetime]]:
    """Each local day that overlaps [start, end), with the instant at which it begins."""
    day = start.astimezone(zone).date()
    for _ in range(MOST_DAYS):
        begins = midnight(day, zone)
        if begins >= end:
            return
        yield day, begins
        day += timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The axis. start and end are at `left` and `left + width`, in pixels."""

    start: datetime
    end: datetime
    zone: tzinfo
    left: float
    width: float

    def x(self, time: datetime) -> float:
        share = (time - self.start) / (self.end - self.start)
        return self.left + self.width * min(1.0, max(0.0, share))

    def draw(self, drawing: Drawing, top: float, bottom: float, *, margin: float = 0) -> None:
        """Draws the names of days that fit above `top`, and a line down to `bottom` where each begins. margin: how much room is free
        left of the axis, where the first day's name goes if it does not fit above its day."""
        free_from = self.left
        for day, begins in midnights(self.start, self.end, self.zone):
            x = self.x(begins)
            if begins > self.start:
                drawing.line(x, top - 4, x, bottom)
            words = day_words(day)
            # If the first day is nearly over, its name is left out in favour of the next one's.
            next_day = self.x(midnight(day + timedelta(days=1), self.zone))
            fits = begins > self.start or next_day - x >= width_of(words) + _BETWEEN
            if fits and x >= free_from and x + width_of(words) <= self.left + self.width:
                drawing.text(x + 3, top - 8, words, "soft small")
                free_from = x + width_of(words) + _BETWEEN
            elif begins <= self.start and width_of(words) + _BETWEEN <= margin:
                drawing.text(self.left - _BETWEEN, top - 8, words, "soft small", anchor="end")


def clock_change(start: datetime, end: datetime, zone: tzinfo) -> datetime:
    """The first change of the zone's offset in (start, end], to the minute; `end` if there is none. The span is a day at most."""
    before = start.astimezone(zone).utcoffset()
    if end.astimezone(zone).utcoffset() == before:
        return end
    low, high = start, end
    while high - low > timedelta(minutes=1):
        middle = low + (high - low) / 2
        middle = middle.replace(second=0, microsecond=0)
        if middle <= low:
            break
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high
