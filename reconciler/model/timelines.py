"""What capacity, schedules and budgets will be over a span of time.

Every span is half-open, [start, end), in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.model.changes import BudgetOutcome, ScheduleOutcome
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Schedule


@dataclass(frozen=True, slots=True)
class ScheduleSpan:
    """One value of a schedule. behavior: its index in the spec; None: none is active and the default holds."""

    start: datetime
    end: datetime
    value: int
    behavior: int | None


@dataclass(frozen=True, slots=True)
class Collision:
    """Two behaviors of one schedule that are active at once, the first time in the span. winner, loser: their indexes."""

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
    """A span in which nothing about one pool's budget for one reason changes."""

    start: datetime
    end: datetime
    outcome: BudgetOutcome


@dataclass(frozen=True, slots=True)
class BudgetPieces:
    """What binds of one pool's budget for one reason: outcomes[i] from edges[i] to edges[i + 1], in microseconds since 1970 UTC.

    A year of two hundred pools has millions of pieces, which as spans would take most of the time of a report.
    """

    edges: list[int]
    outcomes: list[BudgetOutcome]


UNBOUNDED = 2**31 - 1
"""Karpenter's number of nodes where nothing bounds a reason; a budget this large counts as none."""


@dataclass(frozen=True, slots=True)
class BudgetCells:
    """The least that one pool's budgets allow for one reason within each of a row of hours.

    allowed: nodes, one number an hour; `UNBOUNDED` where nothing bounds them. most: the most that they allow at any time of all hours.
    """

    node_pool: str
    reason: str
    allowed: tuple[int, ...]
    most: int


@dataclass(frozen=True, slots=True)
class DemandSpan:
    """What one buffer or static NodePool asks for. replicas: chunks of a buffer (None: it is not ready), nodes of a pool; why: in words."""

    ref: ObjectRef
    start: datetime
    end: datetime
    replicas: int | None
    why: str


@dataclass(frozen=True, slots=True)
class CapacityTimeline:
    """All capacity over [start, end), as foreseen at one instant; each tuple is ordered by object, then by time."""

    start: datetime
    end: datetime
    demands: tuple[DemandSpan, ...] = ()
    schedules: tuple[ScheduleTimeline, ...] = ()
    budgets: tuple[BudgetSpan, ...] = ()
