"""What capacity costs over the coming 30 days, as rows that every report shows: by buffer, by NodePool, and by the value of a schedule."""

from __future__ import annotations

from typing import Any

from reconciler.model.demand import REQUEST_KIND
from reconciler.model.service import Keeper
from reconciler.model.spending import Spending, WindowCost
from reconciler.report.costs.change import CENTS, CostChange, CostRow, WindowRow
from reconciler.report.service import keeper_words
from reconciler.report.words import change_words, dollars

_BAR = 10
"""Blocks of the longest bar."""
Rows = list[dict[str, Any]]


def cost_parts(cost: CostChange | Spending) -> list[tuple[str, Rows]]:
    """What each part is by, and its rows. A change has two amounts in each row, the plan of one revision has one."""
    is_alone = isinstance(cost, Spending)
    change = CostChange(Spending(cost.start, cost.end, ()), cost) if isinstance(cost, Spending) else cost
    parts = (
        ("by buffer", [_row(item, is_alone=is_alone) for item in change.demands()]),
        ("by NodePool", [_row(item, is_alone=is_alone) for item in change.pools()]),
        ("by what a schedule says", [_window(item, is_alone=is_alone) for item in change.windows()]),
    )
    return [(by, rows if is_alone else _with_bars(rows)) for by, rows in parts]


def _with_bars(rows: Rows) -> Rows:
    """Each with a bar as long as its change is large beside the largest. Whether it is dearer or cheaper is its colour and its sign."""
    most = max((abs(row["delta"]) for row in rows), default=0.0)
    return [{**row, "bar": "▇" * round(_BAR * abs(row["delta"]) / most) if most >= CENTS else ""} for row in rows]


def _row(item: CostRow, *, is_alone: bool) -> dict[str, Any]:
    pool = f"NodePool {item.name}" if item.name else "nodes of no NodePool"
    return _amounts(pool if item.ref is None else str(item.ref), item.before, item.after, _about(item), is_alone)


def _window(item: WindowRow, *, is_alone: bool) -> dict[str, Any]:
    window, sides = item.either, (item.before, item.after)
    says = "above 0" if window.value is None else f"{window.value:,}"
    before, after = (0.0 if side is None else side.cost for side in sides)
    hours = _hours(item.after) if is_alone else " → ".join(map(_hours, sides))
    return _amounts(f"while {window.schedule} is {says}", before, after, [f"{hours} hours"], is_alone)


def _amounts(name: str, before: float, after: float, about: list[str], is_alone: bool) -> dict[str, Any]:  # noqa: FBT001 - private
    what = dollars(after) if is_alone else f"{dollars(before)} → {dollars(after)}"
    why = about if is_alone else [change_words(before, after), *about]
    return {"name": name, "what": what, "why": "; ".join(why), "fields": [], "delta": after - before}


def _about(item: CostRow) -> list[str]:
    """Notes about the cost of one demand: of a chunk all the time, of a request while it runs, and whose nodes these are."""
    if item.ref is None:
        return []
    words = []
    if item.ref.kind == REQUEST_KIND:
        words.append("once, while its capacity is booked")
        words += [f"{dollars(item.per_hour)} an hour for as long as its pods run"] if item.per_hour is not None else []
    elif item.per_replica is not None:
        words.append(f"{dollars(item.per_replica)} for one replica all the time")
    if item.kept_by is not None and item.kept_by.by is not Keeper.HEADROOM:
        words.append(f"kept by {keeper_words(item.kept_by)}, whose nodes are priced as headroom's would be")
    return words


def _hours(window: WindowCost | None) -> str:
    """`220`, `36.5`."""
    return f"{0.0 if window is None else window.hours:,.1f}".removesuffix(".0")
