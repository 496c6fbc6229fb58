"""Disruption budgets written in local time, and what they were compiled into."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.nodes import DisruptionBudget, NodePool
from reconciler.model.refs import SourcePosition


@dataclass(frozen=True, slots=True)
class AllowWindow:
    """One line of `headroom.dev/allow-windows`: disruption is allowed only from each match of the cron schedule, for `duration`.

    reasons None: every disruption reason.
    """

    schedule: str
    duration: timedelta
    reasons: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LocalBudgets:
    """A NodePool's budgets as written. Their schedules are in `time_zone`, an IANA name."""

    budgets: tuple[DisruptionBudget, ...]
    allow_windows: tuple[AllowWindow, ...] = ()
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class CompiledBudgets:
    """Budgets with schedules in UTC. They mean what was written for as long as they are valid."""

    budgets: tuple[DisruptionBudget, ...]
    origins: tuple[int | None, ...]
    """By compiled budget: the index of the written budget, or None for one that comes from the allow-windows."""
    valid_from: datetime
    renew_at: datetime
    """From this instant on, a pass compiles newer budgets. Both agree for as long as both are valid."""
    valid_until: datetime


@dataclass(frozen=True, slots=True)
class PoolBudgets:
    """One NodePool's written and compiled budgets, side by side."""

    node_pool: str
    written: LocalBudgets
    compiled: CompiledBudgets
    position: SourcePosition | None = None


@dataclass(frozen=True, slots=True)
class BudgetPeriod:
    """NodePools with the budgets in UTC that hold over [start, end), and for a month beyond."""

    start: datetime
    end: datetime
    pools: tuple[NodePool, ...]
