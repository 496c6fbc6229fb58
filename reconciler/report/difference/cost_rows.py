"""What merging costs, as rows of words that every report shows: by buffer, by NodePool, by what a schedule says."""

from __future__ import annotations

from typing import Any

from reconciler.model.spending import WindowCost
from reconciler.report.difference.costs import CostChange, CostRow, WindowRow
from reconciler.report.words import dollars, signed_dollars


def demand_rows(cost: CostChange) -> list[dict[str, Any]]:
    """Buffers and requests, with the price of one replica that is kept all the time."""
    return [_row(item, _per_replica(item)) for item in cost.demands()]


def pool_rows(cost: CostChange) -> list[dict[str, Any]]:
    """NodePools, with the nodes of pods too."""
    return [_row(item, "") for item in cost.pools()]


def window_rows(cost: CostChange) -> list[dict[str, Any]]:
    """What followers cost while a schedule has one value."""
    return [_window(item) for item in cost.windows()]


def _row(item: CostRow, why: str) -> dict[str, Any]:
    name = item.name or "nodes of no NodePool"
    words = f"{dollars(item.before)} → {dollars(item.after)}"
    change = signed_dollars(item.delta) if round(item.delta, 2) else "no change"
    return {"name": name, "what": words, "why": f"{change}{why}", "fields": []}


def _per_replica(item: CostRow) -> str:
    return "" if item.per_replica is None else f"; {dollars(item.per_replica)} for one replica all the time"


def _window(item: WindowRow) -> dict[str, Any]:
    window = item.either
    value = "above 0" if window.value is None else f"{window.value:,}"
    before, after = _cost(item.before), _cost(item.after)
    hours = f"{_hours(item.before)} → {_hours(item.after)}"
    return {
        "name": f"while {window.schedule} is {value}",
        "what": f"{dollars(before)} → {dollars(after)}",
        "why": f"{signed_dollars(after - before)}; {hours} hours",
        "fields": [],
    }


def _cost(window: WindowCost | None) -> float:
    return 0.0 if window is None else window.cost


def _hours(window: WindowCost | None) -> str:
    return "0" if window is None else f"{window.hours:,.1f}".removesuffix(".0")
