"""What capacity, schedules and budgets were over the last days, and will be over a span of time.

Every span is half-open, [start, end), in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Protocol, TypeVar

from reconciler.model.changes import BudgetOutcome
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Schedule, ScheduleOutcome

T = TypeVar("T")


def aligned(*rows: Sequence[tuple[datetime, datetime, T]]) -> Iterator[tuple[datetime, datetime, tuple[T, ...]]]:
    """Rows of spans cut wherever one of them changes, with the value of each row. All rows fill the same time without gaps."""
    positions = [0] * len(rows)
    for opens, closes in pairwise(sorted({edge for row in rows for start, end, _ in row for edge in (start, end)})):
        positions = [at + (row[at][1] <= opens) for at, row in zip(positions, rows, strict=True)]
        yield opens, closes, tuple(row[at][2] for at, row in zip(positions, rows, strict=True))


class _Span(Protocol):
    @property
    def start(self) -> datetime: ...

    @property
    def end(self) -> datetime: ...


S = TypeVar("S", bound=_Span)


def joined(spans: Iterable[S], worth: Callable[[S], object]) -> list[S]:
    """Neighbours of equal worth as one span, otherwise like the first of them. spans: dataclasses, in order."""
    result: list[S] = []
    for span in spans:
        if result and result[-1].end == span.start and worth(result[-1]) == worth(span):
            result[-1] = replace(result[-1], end=span.end)  # type: ignore[type-var]  # always a dataclass here
        else:
            result.append(span)
    return result


@dataclass(frozen=True, slots=True)
class ScheduleSpan:
    """One value of a schedule. behavior: the index in the spec of the active one; None if none is, and the default holds."""

    start: datetime
    end: datetime
    value: int
    behavior: int | None


@dataclass(frozen=True, slots=True)
class Collision:
    """Two behaviors of one schedule that are active at once: the first such time in the span. winner, loser: their indexes."""

    start: datetime
    end: datetime
    winner: int
    loser: int


@dataclass(frozen=True, slots=True)
class ScheduleTimeline:
    """One schedule over [start, end): spans fill it without gaps, and neighbours differ.

    outcome: at the instant for which the timeline was asked.
    """

    schedule: Schedule
    outcome: ScheduleOutcome
    start: datetime
    end: datetime
    spans: tuple[ScheduleSpan, ...]
    collisions: tuple[Collision, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetSpan:
    """A span in which one pool's budget for one reason does not change."""

    start: datetime
    end: datetime
    outcome: BudgetOutcome


@dataclass(frozen=True, slots=True)
class BudgetPieces:
    """One pool's budget for one reason over time: outcomes[i] from edges[i] to edges[i + 1], in microseconds since 1970 UTC.

    A year of two hundred pools has millions of pieces. As `BudgetSpan` objects they would take most of a report's time.
    """

    edges: list[int]
    outcomes: list[BudgetOutcome]


UNBOUNDED = 2**31 - 1
"""Karpenter's number of nodes where nothing bounds a reason; a budget this large counts as none."""


@dataclass(frozen=True, slots=True)
class BudgetCells:
    """Hour by hour, the fewest disruptions that one pool's budgets allow for one reason.

    allowed: nodes, one number an hour; `UNBOUNDED` where nothing bounds them. most: the most that they allow at any time.
    """

    node_pool: str
    reason: str
    allowed: tuple[int, ...]
    most: int


@dataclass(frozen=True, slots=True)
class DemandSpan:
    """What one buffer or static NodePool asks for. replicas: a buffer's chunks (None if it is not ready), or a pool's nodes. why: in
    words."""

    ref: ObjectRef
    start: datetime
    end: datetime
    replicas: int | None
    why: str


@dataclass(frozen=True, slots=True)
class CapacityTimeline:
    """All capacity over [start, end), as forecast at one instant. Each tuple is ordered by object, then by time."""

    start: datetime
    end: datetime
    demands: tuple[DemandSpan, ...] = ()
    schedules: tuple[ScheduleTimeline, ...] = ()
    budgets: tuple[BudgetSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class FillPoint:
    """What holds from `since` until the next point. wanted, ready: chunks. price: USD an hour of all nodes; 0 of one buffer's points.

    Of several passes that one point stands for: the one with the largest shortage, and the last price.
    """

    since: datetime
    wanted: int
    ready: int
    price: float = 0.0


@dataclass(frozen=True, slots=True)
class Refill:
    """A shortage that has ended. seconds: how long it lasted."""

    ended: datetime
    seconds: float


@dataclass(frozen=True, slots=True)
class BufferPast:
    """points: a point for each change, the oldest first. refills: the newest first."""

    points: tuple[FillPoint, ...] = ()
    refills: tuple[Refill, ...] = ()
