"""Budgets compiled into UTC mean what was written in local time, minute by minute over two years, in zones of every sort.

The oracle shares no code with the compiler: it walks every minute, asks zoneinfo what the clocks show, and matches crons by
lookup. The forms are those that a daemon would have in force: compiled in the month itself, and, as if it had been down over
the change of month, those of the month before.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.model.errors import Invalid
from reconciler.model.nodes import REASONS, DisruptionBudget
from reconciler.model.schedules import AllowWindow, LocalBudgets
from reconciler.timetable.compiled_budgets import HORIZONS, MOST_BUDGETS, compiled
from reconciler.zone_data import time_zone

ZONES = (
    "Europe/Berlin",
    "America/St_Johns",
    "America/Havana",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
)
FIRST, SPARE_DAYS, DAYS = datetime(2026, 1, 1, tzinfo=UTC), 90, 730
MINUTES = (DAYS + SPARE_DAYS) * 1440
ORIGIN = int((FIRST - timedelta(days=SPARE_DAYS)).timestamp()) // 60
"""Minutes since 1970 of the first minute that the arrays hold."""
Truths = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int32]

UTC_MINUTES: Counts = np.arange(ORIGIN, ORIGIN + MINUTES, dtype=np.int32)
NAMES = {name: str(number) for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}


@lru_cache(maxsize=len(ZONES))
def local_minutes(zone: str) -> Counts:
    """What the clocks of a zone show at each minute: no change of clocks is off the quarter of an hour, and no two are in one hour."""
    place = time_zone(zone)

    def offset_at(minute: int) -> int:
        offset = datetime.fromtimestamp(minute * 60, place).utcoffset()
        return 0 if offset is None else int(offset.total_seconds()) // 60

    offsets: list[int] = []
    for hour in UTC_MINUTES[::60].tolist():
        first, last = offset_at(hour), offset_at(hour + 59)
        offsets += [first] * 4 if first == last else [offset_at(hour + quarter) for quarter in (0, 15, 30, 45)]
    shown: Counts = UTC_MINUTES + np.repeat(np.array(offsets, dtype=np.int32), 15)
    return shown


@cache
def values(field: str) -> set[int]:
    numbers: set[int] = set()
    for part in field.split(","):
        first, _, last = part.partition("-")
        ends = [int(NAMES.get(end, end)) for end in (first, last or first) if end != "*"]
        numbers |= set(range(ends[0], ends[-1] + 1)) if ends else set(range(60))
    return numbers


def hits_of(schedule: str, shown: Counts) -> Counts:
    """The minutes since 1970, of any clocks, at which the schedule hits, from the least to the greatest of those shown."""
    fields = schedule.split()
    minutes, hours, days, months, weekdays = (values(field) for field in fields)
    least, most = int(shown.min()), int(shown.max())
    chosen = []
    for number in range(least // 1440, most // 1440 + 1):
        month, day, weekday = date_of(number)
        found = [day in days, weekday in weekdays]
        if month in months and (all(found) if "*" in (fields[2], fields[4]) else any(found)):
            chosen.append(number * 1440)
    times = [hour * 60 + minute for hour in range(24) if hour in hours for minute in range(60) if minute in minutes]
    every = np.add.outer(np.array(chosen, dtype=np.int32), np.array(times, dtype=np.int32)).ravel()
    hits: Counts = every[(every >= least) & (every <= most)]
    return hits


@cache
def date_of(number: int) -> tuple[int, int, int]:
    """Month, day and weekday of a day since 1970."""
    day = date(1970, 1, 1) + timedelta(days=number)
    return day.month, day.day, day.isoweekday() % 7


def opened(indexes: Counts, duration: timedelta, minutes: int = MINUTES) -> Truths:
    """Open for `duration` from each hit, of which these are the places in an array of so many minutes, in order."""
    length = int(duration.total_seconds()) // 60
    found = np.zeros(minutes, dtype=np.bool_)
    if indexes.size:
        breaks = np.flatnonzero(np.diff(indexes) > length)
        for first, last in zip([0, *(breaks + 1)], [*breaks, indexes.size - 1], strict=True):
            found[indexes[first] : indexes[last] + length] = True
    return found


@lru_cache(maxsize=16)
def declared_open(schedule: str, duration: timedelta, zone: str) -> Truths:
    shown = local_minutes(zone)
    is_hit = np.zeros(int(shown.max() - shown.min()) + 1, dtype=np.bool_)
    is_hit[hits_of(schedule, shown) - shown.min()] = True
    furthest = np.maximum.accumulate(shown)
    is_repeated = np.concatenate([[False], shown[1:] <= furthest[:-1]])
    hits = is_hit[shown - shown.min()] & ~is_repeated
    for index in np.flatnonzero(np.diff(shown) > 1):
        hits[index + 1] |= bool(is_hit[shown[index] + 1 - shown.min() : shown[index + 1] - shown.min()].any())
    return opened(np.flatnonzero(hits).astype(np.int32), duration)


@lru_cache(maxsize=128)
def karpenter_open(schedule: str | None, duration: timedelta | None, begin: int, end: int) -> Truths:
    """From the one place in the arrays to the other."""
    if schedule is None or duration is None:
        return np.ones(end - begin, dtype=np.bool_)
    first = max(0, begin - int(duration.total_seconds()) // 60)
    hits = hits_of(schedule, UTC_MINUTES[first:end]) - (ORIGIN + first)
    return opened(hits, duration, end - first)[begin - first :]


def limits(budgets: Iterable[tuple[DisruptionBudget, Truths]], reason: str) -> Counts:
    """The least number of nodes that an open budget allows, minute by minute; a million where none is open."""
    named = [(int(item.nodes), truths) for item, truths in budgets if item.reasons is None or reason in item.reasons]
    least = np.full(len(named[0][1]) if named else 1, 10**6, dtype=np.int32)
    for nodes, truths in sorted(named, key=lambda pair: -pair[0]):
        least[truths] = nodes
    return least


def meant(written: LocalBudgets, reason: str) -> Counts:
    """What the document says, read plainly: budgets as budgets, and nothing outside the windows that allow the reason."""
    zone = written.time_zone
    found = [
        (
            budget,
            np.ones(MINUTES, dtype=np.bool_)
            if budget.schedule is None or budget.duration is None
            else declared_open(budget.schedule, budget.duration, zone),
        )
        for budget in written.budgets
    ]
    lines = [line for line in written.allow_windows if line.reasons is None or reason in line.reasons]
    if lines:
        inside = np.any([declared_open(line.schedule, line.duration, zone) for line in lines], axis=0)
        found.append((DisruptionBudget("0"), ~inside))
    return np.broadcast_to(limits(found, reason), MINUTES)


def month_starts() -> list[datetime]:
    return [datetime(2026 + number // 12, number % 12 + 1, 1, tzinfo=UTC) for number in range(25)]


def check(written: LocalBudgets) -> int:
    """In how many months the budgets can be compiled; in each of them they mean what is written."""
    starts = month_starts()
    months = list(pairwise(starts))
    wanted = {reason: meant(written, reason) for reason in REASONS}
    before: tuple[DisruptionBudget, ...] | None = None
    compiled_in = 0
    for begin, end in months:
        try:
            form = compiled(written, begin + timedelta(days=17, minutes=3))
        except Invalid:
            before = None
            continue  # needs too many budgets: told as a finding, and nothing is applied
        assert len(form.budgets) <= MOST_BUDGETS
        assert form.renew_at == end
        assert form.valid_until >= starts[min(len(starts) - 1, starts.index(begin) + HORIZONS[-1])]
        places = int(begin.timestamp()) // 60 - ORIGIN, int(end.timestamp()) // 60 - ORIGIN
        span = slice(*places)
        for reason in REASONS:
            for name, budgets in ((f"compiled in {begin:%B %Y}", form.budgets), ("of the month before", before)):
                opened_then = [(item, karpenter_open(item.schedule, item.duration, *places)) for item in budgets or ()]
                differs = np.flatnonzero(limits(opened_then, reason) != wanted[reason][span])
                assert budgets is None or not differs.size, (
                    f"{name}: {reason} at {begin + timedelta(minutes=int(differs[0]))}"
                )
        before = form.budgets
        compiled_in += 1
    return compiled_in


def listed(low: int, high: int, most: int) -> st.SearchStrategy[str]:
    numbers = st.lists(st.integers(low, high), min_size=1, max_size=most, unique=True)
    return numbers.map(lambda items: ",".join(str(item) for item in sorted(items)))


SCHEDULES = st.tuples(
    listed(0, 59, 2),
    st.one_of(listed(0, 23, 2), listed(0, 3, 3), st.just("*")),
    st.one_of(st.just("*"), st.just("*"), listed(1, 31, 2)),
    st.one_of(st.just("*"), st.just("*"), listed(1, 12, 4)),
    st.one_of(st.just("*"), listed(0, 6, 5), st.just("1-5")),
).map(" ".join)
DURATIONS = st.integers(1, 72 * 60).map(lambda minutes: timedelta(minutes=minutes))
CHOSEN = st.one_of(st.none(), st.lists(st.sampled_from(REASONS), min_size=1, unique=True).map(tuple))
BUDGETS = st.builds(DisruptionBudget, st.sampled_from(["0", "3", "8"]), CHOSEN, SCHEDULES, DURATIONS)
LINES = st.builds(AllowWindow, SCHEDULES, DURATIONS, CHOSEN)


@pytest.mark.parametrize("zone", ZONES)
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(budgets=st.lists(BUDGETS, max_size=2).map(tuple), lines=st.lists(LINES, max_size=2).map(tuple))
def test_compiled_and_written_mean_the_same_every_minute(
    zone: str, budgets: tuple[DisruptionBudget, ...], lines: tuple[AllowWindow, ...]
) -> None:
    check(LocalBudgets((*budgets, DisruptionBudget("20")), lines, zone))


WORKING_HOURS = DisruptionBudget("0", None, "0 9 * * 1-5", timedelta(hours=8))
NIGHTS = AllowWindow("0 22 * * 1-5", timedelta(hours=8))
CHANGES = AllowWindow("30 1,2,3 * * *", timedelta(minutes=45), ("Drifted",))
"""Hits in the hours that changes of the clock take away or give twice."""


@pytest.mark.parametrize("zone", ZONES)
def test_what_people_write_is_compiled_in_full(zone: str) -> None:
    for written in (
        LocalBudgets((WORKING_HOURS, DisruptionBudget("10")), (NIGHTS, CHANGES), zone),
        LocalBudgets((), (AllowWindow("0 2 1,15 * *", timedelta(hours=4)),), zone),
    ):
        assert check(written) == len(month_starts()) - 1
