"""Pools' disruption budgets by reason over a span of time.

Nodes are taken as they are now: within a span only windows open and close. Their edges cut the span into pieces, and in each piece the first
open term binds (disruption_budgets.terms_of).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import groupby, pairwise
from operator import attrgetter

from reconciler.model.nodes import NodePool
from reconciler.model.schedules import BudgetPeriod
from reconciler.model.timelines import UNBOUNDED, BudgetCells, BudgetSpan, joined
from reconciler.plan.node_pools.disruption_budgets import PoolState, Term, reasons_of, terms_of
from reconciler.timetable.windows import instant_of, open_edges, ticks

_MOST_KEPT = 2000
"""How many schedules' windows are kept for the next pool. A year of one takes a few kilobytes."""


def budget_spans(
    pool: NodePool, reason: str, state: PoolState, start: datetime, end: datetime
) -> tuple[BudgetSpan, ...]:
    """Fills [start, end) without gaps; neighbours differ in what binds. Empty when end is not after start."""
    first, last = ticks(start), ticks(end)
    if first >= last:
        return ()
    terms = terms_of(pool, reason, state)
    opened = [(term, _edges(term, first, last)) for term in terms.terms]
    edges = sorted({first, last}.union(*(windows for _, windows in opened)))
    outcomes = {term: terms.outcome(term) for term in (*terms.terms, None)}
    # An even number of edges up to an instant: its window is closed, or has not opened yet.
    binding = (next((term for term, windows in opened if bisect_right(windows, at) % 2), None) for at in edges[:-1])
    spans = [
        BudgetSpan(instant_of(opens), instant_of(closes), outcomes[term])
        for (opens, closes), term in zip(pairwise(edges), binding, strict=True)
    ]
    return tuple(joined(spans, attrgetter("outcome")))


@lru_cache(maxsize=_MOST_KEPT)
def _edges_of(schedule: str, duration: timedelta, first: int, last: int) -> tuple[int, ...]:
    return tuple(open_edges(schedule, duration, first, last).tolist())


def _edges(term: Term, first: int, last: int) -> tuple[int, ...]:
    """Where the term's windows open and close, in turn."""
    return (first, last) if term.schedule is None else _edges_of(term.schedule, term.duration, first, last)


def budget_timeline(
    pools: Iterable[NodePool], states: Mapping[str, PoolState], start: datetime, end: datetime
) -> tuple[BudgetSpan, ...]:
    """`budget_spans` of every pool and reason, in the order of the pools."""
    return tuple(spans_over((BudgetPeriod(start, end, tuple(pools)),), states))


def spans_over(periods: Sequence[BudgetPeriod], states: Mapping[str, PoolState]) -> Iterator[BudgetSpan]:
    """Every pool and reason over all periods, which follow one another and have the same pools."""
    for same in zip(*(period.pools for period in periods), strict=True):
        by_reason: dict[str, list[BudgetSpan]] = {}
        for pool, period in zip(same, periods, strict=True):
            state = states.get(pool.name, PoolState())
            for reason in reasons_of(pool):
                spans = budget_spans(pool, reason, state, period.start, period.end)
                by_reason.setdefault(reason, []).extend(spans)
        for spans_of_reason in by_reason.values():
            yield from joined(spans_of_reason, attrgetter("outcome"))


def budget_cells(spans: Iterable[BudgetSpan], edges: Sequence[datetime]) -> tuple[BudgetCells, ...]:
    """What is allowed at all times of each cell between two of the edges, which ascend, and at most at any time.

    spans: of each pool and reason one after the other, filling the time between the edges."""
    rows = []
    for (pool, reason), own in groupby(spans, key=lambda span: (span.outcome.node_pool, span.outcome.reason)):
        allowed, most = [UNBOUNDED] * (len(edges) - 1), 0
        for span in own:
            count = UNBOUNDED if span.outcome.allowed is None else span.outcome.allowed
            most = max(most, count)
            for cell in range(bisect_right(edges, span.start) - 1, bisect_left(edges, span.end)):
                allowed[cell] = min(allowed[cell], count)
        rows.append(BudgetCells(pool, reason, tuple(allowed), most))
    return tuple(rows)
