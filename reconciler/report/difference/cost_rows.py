"""What merging costs, as rows that every report shows: by buffer, by NodePool, and by the value of a schedule."""

from __future__ import annotations

from typing import Any

from reconciler.model.spending import WindowCost
from reconciler.report.difference.costs import CENTS, CostChange, CostRow, WindowRow
from reconciler.report.plan.spending import about_demand, hours_words, pool_name, window_name
from reconciler.report.words import change_words, dollars

_BAR = 10
"""Blocks of the longest bar."""


def demand_rows(cost: CostChange) -> list[dict[str, Any]]:
    """Buffers and requests, with the price of one replica for the whole span."""
    return _with_bars([_row(item, _of_demand(item)) for item in cost.demands()])


def pool_rows(cost: CostChange) -> list[dict[str, Any]]:
    """NodePools, including nodes for pods."""
    return _with_bars([_row(item, "") for item in cost.pools()])


def window_rows(cost: CostChange) -> list[dict[str, Any]]:
    """What followers cost while a schedule has one value."""
    return _with_bars([_window(item) for item in cost.windows()])


def _row(item: CostRow, why: str) -> dict[str, Any]:
    name = str(item.ref) if item.ref is not None else pool_name(item.name)
    words = f"{dollars(item.before)} → {dollars(item.after)}"
    return {
        "name": name,
        "what": words,
        "why": f"{change_words(item.before, item.after)}{why}",
        "fields": [],
        "delta": item.delta,
    }


def _with_bars(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each with a bar as long as its change is large beside the largest. Whether it is dearer or cheaper is its colour and its sign."""
    most = max((abs(row["delta"]) for row in rows), default=0.0)
    return [{**row, "bar": "▇" * round(_BAR * abs(row["delta"]) / most) if most >= CENTS else ""} for row in rows]


def _of_demand(item: CostRow) -> str:
    about = [] if item.ref is None else about_demand(item.ref, item.per_replica, item.kept_by, item.per_hour)
    return "".join(f"; {words}" for words in about)


def _window(item: WindowRow) -> dict[str, Any]:
    before, after = _cost(item.before), _cost(item.after)
    hours = f"{_hours(item.before)} → {_hours(item.after)}"
    return {
        "name": window_name(item.either),
        "what": f"{dollars(before)} → {dollars(after)}",
        "why": f"{change_words(before, after)}; {hours} hours",
        "fields": [],
        "delta": after - before,
    }


def _cost(window: WindowCost | None) -> float:
    return 0.0 if window is None else window.cost


def _hours(window: WindowCost | None) -> str:
    return hours_words(0.0 if window is None else window.hours)
