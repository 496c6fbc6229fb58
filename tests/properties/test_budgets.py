"""Cron, windows and budgets against the slowest way to say the same: minute by minute, budget by budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.nodes import REASONS, DisruptionBudget, NodePool
from reconciler.model.timelines import UNBOUNDED
from reconciler.plan.node_pools.budget_timeline import budget_cells, budget_spans, budget_timeline
from reconciler.plan.node_pools.disruption_budgets import PoolState, outcome
from reconciler.timetable.cron import parse_cron
from reconciler.timetable.windows import is_open
from tests.builders import node_pool
from tests.timelines import open_spans

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Field:
    """A cron field together with what it means; star: it counts as unrestricted."""

    text: str
    numbers: frozenset[int]
    star: bool = False


@dataclass(frozen=True)
class Written:
    """A cron expression together with what it means."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def text(self) -> str:
        return " ".join(field.text for field in (self.minute, self.hour, self.day, self.month, self.weekday))

    def hits(self, minute: datetime) -> bool:
        if minute.minute not in self.minute.numbers or minute.hour not in self.hour.numbers:
            return False
        if minute.month not in self.month.numbers:
            return False
        day, weekday = minute.day in self.day.numbers, minute.isoweekday() % 7 in self.weekday.numbers
        return day and weekday if self.day.star or self.weekday.star else day or weekday


def parts(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[Field]:
    def spelled(number: int) -> str:
        return names[number - low] if names else f"{number}"

    number, step = st.integers(low, high), st.integers(1, 40)
    pair = st.tuples(number, number).map(sorted)
    return st.one_of(
        st.sampled_from("*?").map(lambda sign: Field(sign, frozenset(range(low, high + 1)), star=True)),
        step.map(lambda n: Field(f"*/{n}", frozenset(range(low, high + 1, n)), star=n == 1)),
        number.map(lambda a: Field(f"{a}", frozenset({a}))),
        number.map(lambda a: Field(spelled(a).upper(), frozenset({a}))),
        pair.map(lambda ab: Field(f"{spelled(ab[0])}-{ab[1]}", frozenset(range(ab[0], ab[1] + 1)))),
        st.tuples(pair, step).map(
            lambda t: Field(f"{t[0][0]}-{t[0][1]}/{t[1]}", frozenset(range(t[0][0], t[0][1] + 1, t[1])))
        ),
        st.tuples(number, step).map(lambda t: Field(f"{t[0]}/{t[1]}", frozenset(range(t[0], high + 1, t[1])))),
    )


def fields(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[Field]:
    return st.lists(parts(low, high, names), min_size=1, max_size=3).map(
        lambda found: Field(
            ",".join(part.text for part in found),
            frozenset().union(*(part.numbers for part in found)),
            any(part.star for part in found),
        )
    )


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
crons = st.builds(Written, fields(0, 59), fields(0, 23), fields(1, 31), fields(1, 12, MONTHS), fields(0, 6, WEEKDAYS))
durations = st.sampled_from([1, 2, 30, 60, 61, 480, 1440, 4321]).map(lambda minutes: minutes * MINUTE)
BEGIN = datetime(2019, 1, 1, tzinfo=UTC)
starts = st.timedeltas(timedelta(0), timedelta(days=12 * 365)).map(lambda age: BEGIN + age)


def minutes_open(
    written: Written, duration: timedelta, start: datetime, end: datetime
) -> Iterator[tuple[datetime, bool]]:
    """Each whole minute of [start, end), and whether a window is open from then on; by looking at every minute."""
    last_hit = None
    minute = start.replace(second=0, microsecond=0) - duration
    while minute < end:
        if written.hits(minute):
            last_hit = minute
        if minute >= start:
            yield minute, last_hit is not None and minute < last_hit + duration
        minute += MINUTE


@settings(max_examples=25, deadline=None)
@given(written=crons, duration=durations, start=starts, days=st.integers(1, 20))
def test_windows_are_those_of_the_minute_stepper(
    written: Written, duration: timedelta, start: datetime, days: int
) -> None:
    end = start + timedelta(days=days)
    spans = open_spans(written.text, duration, start, end)
    assert all(start <= first < last <= end for first, last in spans)
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    if parse_cron(written.text).never_fires:
        return  # open for want of a hit: a rule of its own, below
    remaining = list(spans)
    for minute, is_open_here in minutes_open(written, duration, start, end):
        while remaining and remaining[0][1] <= minute:
            remaining.pop(0)
        assert is_open_here == bool(remaining and remaining[0][0] <= minute), (written.text, minute)
        if not minute.minute % 20:
            assert is_open(written.text, duration, minute) == is_open_here


def field(text: str, *numbers: int, star: bool = False) -> Field:
    return Field(text, frozenset(numbers), star)


EVERY_HOUR, EVERY_DAY = field("*", *range(24), star=True), field("*", *range(1, 32), star=True)
EVERY_MONTH, EVERY_WEEKDAY = field("*", *range(1, 13), star=True), field("*", *range(7), star=True)
ODD = (
    Written(field("0", 0), field("0", 0), field("*/2", *range(1, 32, 2)), EVERY_MONTH, field("mon", 1)),
    Written(field("0", 0), field("12", 12), field("29", 29), field("2", 2), EVERY_WEEKDAY),
    Written(field("59", 59), field("23", 23), field("31", 31), field("*/2", *range(1, 13, 2)), EVERY_WEEKDAY),
    Written(field("7/13", *range(7, 60, 13)), EVERY_HOUR, EVERY_DAY, field("FEB-mar", 2, 3), field("SAT,0", 0, 6)),
    Written(
        field("30", 30),
        field("8-18/3", 8, 11, 14, 17),
        field("?", *range(1, 32), star=True),
        EVERY_MONTH,
        field("5", 5),
    ),
)


@pytest.mark.parametrize("written", ODD, ids=lambda written: written.text)
def test_odd_schedules_over_years(written: Written) -> None:
    start = datetime(2023, 12, 31, 23, 59, tzinfo=UTC)
    end = start + timedelta(days=2 * 366)
    duration = timedelta(hours=25)
    spans = open_spans(written.text, duration, start, end)
    open_minutes = sum(is_open_here for _, is_open_here in minutes_open(written, duration, start, end))
    assert sum(((last - first) // MINUTE for first, last in spans), 0) == open_minutes > 0
    assert all(written.hits(first) or first == start for first, _ in spans)


@given(start=starts, days=st.integers(1, 400), duration=durations)
def test_what_never_comes_counts_as_always_open(start: datetime, days: int, duration: timedelta) -> None:
    end = start + timedelta(days=days)
    for schedule in ("0 0 30 2 *", "0 0 31 4,6,9,11 ?", ", * * * *"):
        assert open_spans(schedule, duration, start, end) == ((start, end),)
        assert is_open(schedule, duration, start)


windows = st.sampled_from([
    (None, None),
    ("0 9 * * mon-fri", timedelta(hours=8)),
    ("@daily", timedelta(hours=1)),
    ("*/20 * * * *", timedelta(minutes=7)),
    ("0 22 * * fri", timedelta(hours=60)),
    ("0 0 30 2 *", timedelta(hours=1)),
    ("0 0 1 * *", timedelta(days=3)),
])  # fmt: skip
reasons = st.sampled_from([None, (), ("Empty",), ("Drifted", "Underutilized"), ("Unhealthy",)])
counts = st.sampled_from(["0", "1", "3", "7", "10%", "33%", "100%", "2147483647", "many"])
budgets = st.builds(lambda nodes, named, window: DisruptionBudget(nodes, named, *window), counts, reasons, windows)
pools = st.lists(budgets, max_size=6).map(lambda found: node_pool(budgets=tuple(found)))
states = st.integers(0, 40).flatmap(
    lambda total: st.integers(0, total).flatmap(
        lambda used: st.integers(0, used).map(lambda going: PoolState(total, going, used - going))
    )
)
spans_of_days = st.tuples(starts, st.integers(1, 12 * 24 * 60)).map(lambda pair: (pair[0], pair[0] + pair[1] * MINUTE))


@settings(max_examples=40, deadline=None)
@given(pool=pools, state=states, span=spans_of_days, reason=st.sampled_from((*REASONS, "Unhealthy")))
def test_a_span_says_at_every_instant_what_the_instant_says(
    pool: NodePool, state: PoolState, span: tuple[datetime, datetime], reason: str
) -> None:
    start, end = span
    spans = budget_spans(pool, reason, state, start, end)
    assert spans[0].start == start
    assert spans[-1].end == end
    for before, after in pairwise(spans):
        assert before.end == after.start
        assert before.outcome != after.outcome
    for item in spans[:50]:
        for instant in (item.start, item.start + (item.end - item.start) / 2, item.end - timedelta(microseconds=1)):
            assert outcome(pool, reason, state, instant) == item.outcome


@given(pool=pools, state=states, now=starts, reason=st.sampled_from(REASONS))
def test_never_more_than_any_open_budget_that_names_the_reason(
    pool: NodePool, state: PoolState, now: datetime, reason: str
) -> None:
    found = outcome(pool, reason, state, now)
    opened = [
        item
        for item in pool.budgets or ()
        if item.schedule is None or is_open(item.schedule, item.duration or MINUTE, now)
    ]
    limits = [_naive_limit(item, state.total) for item in opened if item.reasons is None or reason in item.reasons]
    if any(_naive_limit(item, state.total) is None for item in opened):
        assert (found.budget, found.allowed) == (0, 0)
        return
    least = min((limit for limit in limits if limit is not None), default=UNBOUNDED)
    assert found.budget == (None if least == UNBOUNDED else least)
    if found.budget is not None:
        assert found.allowed == max(0, least - state.disrupting - state.not_ready)


def _naive_limit(budget: DisruptionBudget, total: int) -> int | None:
    if budget.nodes == "many":
        return None
    if budget.nodes.endswith("%"):
        share = int(budget.nodes[:-1]) * total
        return share // 100 + (1 if share % 100 else 0)
    return int(budget.nodes)


@settings(max_examples=25, deadline=None)
@given(pool=pools, state=states, start=starts, hours=st.integers(1, 100))
def test_a_cell_is_the_least_of_its_spans(pool: NodePool, state: PoolState, start: datetime, hours: int) -> None:
    edges = [start + index * timedelta(hours=1) for index in range(hours + 1)]
    own = {pool.name: state}
    spans = budget_timeline([pool], own, edges[0], edges[-1])
    for row in budget_cells([pool], own, edges):
        for begins, ends, value in zip(edges, edges[1:], row.allowed, strict=False):
            within = [
                UNBOUNDED if span.outcome.allowed is None else span.outcome.allowed
                for span in spans
                if span.outcome.reason == row.reason and span.start < ends and span.end > begins
            ]
            assert value == min(within)
