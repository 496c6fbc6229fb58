"""What capacity, schedules and budgets will be over a span of time. Made by timetable, demand and plan; drawn by report.

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
    """behavior: index into the schedule's behaviors; None: none is active and the default holds."""

    start: datetime
    end: datetime
    value: int
    behavior: int | None


@dataclass(frozen=True, slots=True)
class Collision:
    """Two behaviors of one schedule active at once: the first time it happens in the span. winner, loser: indexes."""

    start: datetime
    end: datetime
    winner: int
    loser: int


@dataclass(frozen=True, slots=True)
class ScheduleTimeline:
    """outcome: at the instant for which the timeline was asked; spans fill [start, end) without gaps, neighbours differ."""

    schedule: Schedule
    outcome: ScheduleOutcome
    start: datetime
    end: datetime
    spans: tuple[ScheduleSpan, ...]
    collisions: tuple[Collision, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetSpan:
    """As long as nothing about one pool's budget for one reason changes."""

    start: datetime
    end: datetime
    outcome: BudgetOutcome


UNBOUNDED = 2**31 - 1
"""What Karpenter counts with where nothing bounds a reason; a budget this large is none."""


@dataclass(frozen=True, slots=True)
class BudgetCells:
    """What one pool's budgets allow for one reason at all times of each of a row of cells (hours): the least.

    allowed: nodes, one number a cell; `UNBOUNDED` where nothing bounds them.
    """

    node_pool: str
    reason: str
    allowed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DemandSpan:
    """What one buffer or static NodePool asks for. replicas: chunks (of a NodePool: nodes); why: in words."""

    ref: ObjectRef
    start: datetime
    end: datetime
    replicas: int
    why: str


@dataclass(frozen=True, slots=True)
class Edge:
    """An instant at which what is declared comes to ask for something else. why: in words, for status and logs."""

    at: datetime
    why: str


@dataclass(frozen=True, slots=True)
class CapacityTimeline:
    """All capacity together over [start, end), as it is foreseen at one instant: what buffers and static NodePools ask for,
    what schedules are worth, what budgets allow. Each is ordered by object, then by time."""

    start: datetime
    end: datetime
    demands: tuple[DemandSpan, ...] = ()
    schedules: tuple[ScheduleTimeline, ...] = ()
    budgets: tuple[BudgetSpan, ...] = ()
