"""Disruption budgets written in local time, and what they were compiled into. Made by timetable, applied by manifests, shown by report."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.nodes import DisruptionBudget
from reconciler.model.refs import SourcePosition


@dataclass(frozen=True, slots=True)
class AllowWindow:
    """One line of `headroom.dev/allow-windows`: disruption only from each hit for `duration`. reasons None: every one."""

    schedule: str
    duration: timedelta
    reasons: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LocalBudgets:
    """What a NodePool's document says. budgets: its own, with schedules in `time_zone`; allow_windows: likewise."""

    budgets: tuple[DisruptionBudget, ...]
    allow_windows: tuple[AllowWindow, ...] = ()
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class CompiledBudgets:
    """budgets: with schedules in UTC. They mean what was written from `valid_from` to `valid_until`; from `renew_at` on
    another form is compiled, which agrees with this one as long as both are valid. index: of the written budget that each
    comes from, None for one of the allow-windows."""

    budgets: tuple[DisruptionBudget, ...]
    origins: tuple[int | None, ...]
    valid_from: datetime
    renew_at: datetime
    valid_until: datetime


@dataclass(frozen=True, slots=True)
class PoolBudgets:
    """One NodePool's written and compiled budgets, side by side."""

    node_pool: str
    written: LocalBudgets
    compiled: CompiledBudgets
    position: SourcePosition | None = None
