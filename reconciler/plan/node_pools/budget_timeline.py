"""Pools' disruption budgets by reason over a span of time.

Nodes are taken as they are now: within a span only windows open and close. The windows of each (schedule, duration) are worked
out once (timetable.windows). Their edges cut the span into pieces, and in each piece the first open term binds
(disruption_budgets.terms_of). Arrays do that for all pieces at once, since a year of fifty budgets has thousands.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from reconciler.model.changes import BudgetOutcome
from reconciler.model.nodes import NodePool
from reconciler.model.schedules import BudgetPeriod
from reconciler.model.timelines import UNBOUNDED, BudgetCells, BudgetPieces, BudgetSpan
from reconciler.plan.node_pools.disruption_budgets import PoolState, Terms, reasons_of, terms_of
from reconciler.timetable.windows import instant_of, open_edges, ticks

Schedule = tuple[str, timedelta]
_MOST_SMALL_RANKS = 250
_MOST_KEPT = 2000
"""How many schedules' windows are kept for the next pool. A year of one takes a few kilobytes."""


def budget_spans(
    pool: NodePool, reason: str, state: PoolState, start: datetime, end: datetime
) -> tuple[BudgetSpan, ...]:
    """Fills [start, end) without gaps; neighbours differ in what binds. Empty when end is not after start."""
    found = _pool_pieces([terms_of(pool, reason, state)], _Windows(ticks(start), ticks(end)))
    return tuple(span for _, pieces in found for span in _spans(pieces))


def budget_timeline(
    pools: Iterable[NodePool], states: Mapping[str, PoolState], start: datetime, end: datetime
) -> tuple[BudgetSpan, ...]:
    """`budget_spans` of every pool and reason, in the order of the pools."""
    found = pieces_over((BudgetPeriod(start, end, tuple(pools)),), states)
    return tuple(span for pieces in found for span in _spans(pieces))


def pieces_over(periods: Sequence[BudgetPeriod], states: Mapping[str, PoolState]) -> Iterator[BudgetPieces]:
    """Every pool and reason over all periods, which follow one another and have the same pools.

    One pool at a time: a year of two hundred pools has millions of pieces.
    """
    opened = [_Windows(ticks(period.start), ticks(period.end)) for period in periods]
    for same in zip(*(period.pools for period in periods), strict=True):
        by_reason: dict[str, BudgetPieces] = {}
        for pool, windows in zip(same, opened, strict=True):
            state = states.get(pool.name, PoolState())
            for reason, later in _pool_pieces([terms_of(pool, reason, state) for reason in reasons_of(pool)], windows):
                if reason in by_reason:
                    _append(by_reason[reason], later)
                else:
                    by_reason[reason] = later
        yield from by_reason.values()


def _append(pieces: BudgetPieces, later: BudgetPieces) -> None:
    """Adds the next period, joined where nothing changes between the two."""
    goes_on = pieces.outcomes[-1] == later.outcomes[0]
    if goes_on:
        pieces.edges.pop()
    pieces.edges.extend(later.edges[1:])
    pieces.outcomes.extend(later.outcomes[goes_on:])


def _spans(pieces: BudgetPieces) -> Iterator[BudgetSpan]:
    instants = [instant_of(edge) for edge in pieces.edges]
    return map(BudgetSpan, instants[:-1], instants[1:], pieces.outcomes)


def cells_over(
    periods: Sequence[BudgetPeriod], states: Mapping[str, PoolState], edges: Sequence[datetime]
) -> tuple[BudgetCells, ...]:
    """`budget_cells` over all periods: a cell is judged by the period in which it begins."""
    found: dict[tuple[str, str], BudgetCells] = {}
    for period in periods:
        first, last = (bisect_left(edges, instant, hi=len(edges) - 1) for instant in (period.start, period.end))
        if first == last:
            continue
        for row in budget_cells(period.pools, states, edges[first : last + 1]):
            key = (row.node_pool, row.reason)
            before = found.get(key, BudgetCells(*key, (), 0))
            found[key] = BudgetCells(*key, before.allowed + row.allowed, max(before.most, row.most))
    return tuple(found.values())


def budget_cells(
    pools: Iterable[NodePool], states: Mapping[str, PoolState], edges: Sequence[datetime]
) -> tuple[BudgetCells, ...]:
    """What is allowed at all times of each cell between two of the edges, which ascend, and at most at any time. Every pool and reason."""
    begins = np.array([ticks(edge) for edge in edges[:-1]], np.int64)
    opened = _Windows(ticks(edges[0]), ticks(edges[-1]))
    rows: list[BudgetCells] = []
    for pool in pools:
        state = states.get(pool.name, PoolState())
        reasons = [terms_of(pool, reason, state) for reason in reasons_of(pool)]
        pieces = _Pieces(reasons, opened, begins)
        cells = np.searchsorted(pieces.edges, begins)
        for terms in reasons:
            left = [terms.left(term) for term in (*terms.terms, None)]
            allowed = np.array([UNBOUNDED if item is None else item for item in left], np.int64)
            bound = allowed[pieces.binding(terms)]
            least = np.minimum.reduceat(bound, cells)
            rows.append(BudgetCells(pool.name, terms.reason, tuple(least.tolist()), int(bound.max())))
    return tuple(rows)


def _pool_pieces(reasons: Sequence[Terms], opened: _Windows) -> Iterator[tuple[str, BudgetPieces]]:
    """The budget of each reason, piece by piece; nothing where the span is empty."""
    if opened.first >= opened.last:
        return
    pieces = _Pieces(reasons, opened)
    for terms in reasons:
        binding = pieces.binding(terms)
        choices = (*terms.terms, None)
        outcomes = {rank: terms.outcome(choices[rank]) for rank in set(binding.tolist())}
        binding = _alike(outcomes, len(choices))[binding]
        begins = np.flatnonzero(np.concatenate(([True], binding[1:] != binding[:-1])))
        found = list(map(outcomes.__getitem__, binding[begins].tolist()))
        yield terms.reason, BudgetPieces([*pieces.edges[begins].tolist(), opened.last], found)


def _alike(outcomes: Mapping[int, BudgetOutcome], count: int) -> npt.NDArray[np.intp]:
    """For each rank the first with the same outcome, since budgets compiled from one written budget say the same."""
    first: dict[BudgetOutcome, int] = {}
    ranks = np.arange(count, dtype=np.intp)
    for rank, outcome in outcomes.items():
        ranks[rank] = first.setdefault(outcome, rank)
    return ranks


class _Pieces:
    """The span of one pool, cut wherever one of its windows opens or closes, and at `cuts`.

    edges: where each piece begins.
    """

    def __init__(self, reasons: Sequence[Terms], opened: _Windows, cuts: npt.NDArray[np.int64] | None = None) -> None:
        schedules = dict.fromkeys(
            (term.schedule, term.duration) for terms in reasons for term in terms.terms if term.schedule is not None
        )
        windows = [opened.edges(schedule, duration) for schedule, duration in schedules]
        ends = np.array([opened.first, opened.last], np.int64)
        edges = np.sort(np.concatenate([ends, *windows, ends[:0] if cuts is None else cuts]))
        edges = edges[np.concatenate(([True], edges[1:] != edges[:-1]))]
        self.edges: npt.NDArray[np.int64] = edges[:-1]
        # One byte for a rank is fastest, and enough: the API server admits 50 budgets.
        most = max(len(terms.terms) for terms in reasons)
        self._kind = np.dtype(np.uint8 if most < _MOST_SMALL_RANKS else np.uint32)
        self._none = 256**self._kind.itemsize - 1
        self._rows = {schedule: self._closed(edges, item) for schedule, item in zip(schedules, windows, strict=True)}

    def _closed(self, edges: npt.NDArray[np.int64], windows: npt.NDArray[np.int64]) -> npt.NDArray[np.unsignedinteger]:
        """For each piece 0 where a window is open and all ones where none is."""
        turns = np.concatenate(([0], np.searchsorted(edges, windows), [len(self.edges)]))
        states = np.zeros(len(turns) - 1, self._kind)
        # Closed until the first window opens, and from each close to the next opening.
        states[::2] = self._none
        return np.repeat(states, np.diff(turns))

    def binding(self, terms: Terms) -> npt.NDArray[np.intp]:
        """For each piece the rank of the first term that is open in it; the number of terms where none is."""
        always = next((rank for rank, term in enumerate(terms.terms) if term.schedule is None), len(terms.terms))
        least = np.full(len(self.edges), always, self._kind)
        for rank, term in enumerate(terms.terms[:always]):
            if term.schedule is not None:
                closed = self._rows[term.schedule, term.duration]
                np.minimum(least, closed | self._kind.type(rank), out=least)
        return least.astype(np.intp)


class _Windows:
    """The windows of each schedule in [first, last), computed once for all NodePools that have it."""

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self._edges: dict[Schedule, npt.NDArray[np.int64]] = {}

    def edges(self, schedule: str, duration: timedelta) -> npt.NDArray[np.int64]:
        """Where the windows open and close, in turn."""
        found = self._edges.get((schedule, duration))
        if found is None:
            if len(self._edges) >= _MOST_KEPT:
                self._edges.clear()
            found = open_edges(schedule, duration, self.first, self.last)
            self._edges[schedule, duration] = found
        return found
