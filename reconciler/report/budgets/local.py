"""Disruption budgets as written in local time, with the budgets in UTC that are applied."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta, tzinfo
from typing import Any

from reconciler.model.changes import ObjectChange, Plan
from reconciler.model.nodes import DisruptionBudget
from reconciler.model.quantity import format_duration
from reconciler.model.schedules import AllowWindow, PoolBudgets
from reconciler.report.json_text import timestamp
from reconciler.report.words import moment


def local_budgets_row(pool: PoolBudgets) -> dict[str, Any]:
    """For the plan's JSON: written and compiled budgets in the form of a NodePool's, times in UTC."""
    written, form = pool.written, pool.compiled
    return {
        "nodePool": pool.node_pool,
        "timeZone": written.time_zone,
        "written": {
            "budgets": [_budget(budget) for budget in written.budgets],
            "allowWindows": [_window(window) for window in written.allow_windows],
        },
        "compiled": [_budget(budget) for budget in form.budgets],
        "renewAt": timestamp(form.renew_at),
        "validUntil": timestamp(form.valid_until),
    }


def changing_local_budgets(plan: Plan, objects: Iterable[ObjectChange]) -> list[PoolBudgets]:
    """The budgets of NodePools that change. The JSON has all of them.

    objects: the plan's own, or those that merging would change.
    """
    changing = {change.ref.name for change in objects if change.ref.kind == "NodePool"}
    return [pool for pool in plan.local_budgets if pool.node_pool in changing]


def written_and_compiled(pool: PoolBudgets) -> list[tuple[str, list[str]]]:
    """What was written, and what it was compiled into, in words: `0 (Drifted): 0 9 * * mon-fri for 8h`."""
    pairs = [
        (budget_words(budget), [budget_words(item) for item, origin in _sourced(pool) if origin == index])
        for index, budget in enumerate(pool.written.budgets)
    ]
    if pool.written.allow_windows:
        windows = "; ".join(_window_words(window) for window in pool.written.allow_windows)
        zeros = [budget_words(item) for item, origin in _sourced(pool) if origin is None]
        pairs.append((f"only in {windows}", zeros))
    return pairs


def validity(pool: PoolBudgets, zone: tzinfo | None) -> str:
    form = pool.compiled
    return f"valid until {moment(form.valid_until, zone)}; recompiled from {moment(form.renew_at, zone)}"


def budget_words(budget: DisruptionBudget) -> str:
    when = "always" if budget.schedule is None else f"{budget.schedule} for {_length(budget.duration)}"
    return f"{budget.nodes}{_reasons(budget.reasons)}: {when}"


def _window_words(window: AllowWindow) -> str:
    return f"{window.schedule} for {_length(window.duration)}{_reasons(window.reasons)}"


def _reasons(reasons: tuple[str, ...] | None) -> str:
    return "" if reasons is None else f" ({', '.join(reasons)})"


def _length(duration: timedelta | None) -> str:
    return "" if duration is None else format_duration(duration)


def _sourced(pool: PoolBudgets) -> Iterable[tuple[DisruptionBudget, int | None]]:
    return zip(pool.compiled.budgets, pool.compiled.origins, strict=True)


def _budget(budget: DisruptionBudget) -> dict[str, Any]:
    return {
        "nodes": budget.nodes,
        "reasons": None if budget.reasons is None else list(budget.reasons),
        "schedule": budget.schedule,
        "duration": None if budget.duration is None else format_duration(budget.duration),
    }


def _window(window: AllowWindow) -> dict[str, Any]:
    return {
        "reasons": None if window.reasons is None else list(window.reasons),
        "schedule": window.schedule,
        "duration": format_duration(window.duration),
    }
