"""What merging costs, as rows that every report shows: by buffer, by NodePool, and by the value of a schedule."""

from __future__ import annotations

from typing import Any

from reconciler.model.spending import WindowCost
from reconciler.report.difference.costs import CostChange, CostRow, WindowRow
from reconciler.report.plan.spending import about_demand, hours_words, pool_name, window_name
from reconciler.report.words import change_words, dollars


def demand_rows(cost: CostChange) -> list[dict[str, Any]]:
    """Buffers and requests, with the price of one replica for the whole span."""
    return [_row(item, _of_demand(item)) for item in cost.demands()]


def pool_rows(cost: CostChange) -> list[dict[str, Any]]:
    """NodePools, including nodes for pods."""
    return [_row(item, "") for item in cost.pools()]


def window_rows(cost: CostChange) -> list[dict[str, Any]]:
    """What followers cost while a schedule has one value."""
    return [_window(item) for item in cost.windows()]


def _row(item: CostRow, why: str) -> dict[str, Any]:
    name = str(item.ref) if item.ref is not None else pool_name(item.name)
    words = f"{dollars(item.before)} → {dollars(item.after)}"
    return {"name": name, "what": words, "why": f"{change_words(item.before, item.after)}{why}", "fields": []}


def _of_demand(item: CostRow) -> str:
    about = [] if item.ref is None else about_demand(item.ref, item.per_replica, item.kept_by)
    return "".join(f"; {words}" for words in about)


def _window(item: WindowRow) -> dict[str, Any]:
    before, after = _cost(item.before), _cost(item.after)
    hours = f"{_hours(item.before)} → {_hours(item.after)}"
    return {
        "name": window_name(item.either),
        "what": f"{dollars(before)} → {dollars(after)}",
        "why": f"{change_words(before, after)}; {hours} hours",
        "fields": [],
    }


def _cost(window: WindowCost | None) -> float:
    return 0.0 if window is None else window.cost


def _hours(window: WindowCost | None) -> str:
    return hours_words(0.0 if window is None else window.hours)
