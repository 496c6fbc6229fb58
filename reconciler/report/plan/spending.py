"""What a plan costs over the coming 30 days: by buffer, by NodePool, and by the values of schedules."""

from __future__ import annotations

from typing import Any

from reconciler.model.changes import Plan
from reconciler.model.demand import REQUEST_KIND
from reconciler.model.refs import ObjectRef
from reconciler.model.service import Keeper, Service
from reconciler.model.spending import HOUR, MONTH, SAMPLE_PRICES, Spending, WindowCost
from reconciler.report.service import keeper_words
from reconciler.report.words import change_words, dollars, listed

SPAN = f"{MONTH.days} days"
HOURS_OF_SPAN = MONTH / HOUR
"""Every price over a time is over this span, so that two figures of one plan agree."""
_CENTS = 0.005
"""In USD. Rows that cost less are left out."""

AT_THIS_INSTANT = f"at the price of this instant: --cost computes what schedules ask for over the coming {SPAN}"


_MOST_NAMED = 3


def sample_words(*plans: Plan) -> str:
    """Says that the prices are invented, where they are; "" elsewhere. It stands before every price."""
    notes = (note for plan in plans for note in plan.cost.assumptions)
    return (
        "Sample prices, invented: no cloud charges them"
        if any(note.startswith(SAMPLE_PRICES) for note in notes)
        else ""
    )


def price_notes(plan: Plan) -> list[str]:
    """What to know of the price of an instant, times a month."""
    return [*([AT_THIS_INSTANT] if plan.schedules else []), *_paid_for_a_while(plan)]


def _paid_for_a_while(plan: Plan) -> list[str]:
    """Nodes that are made for requests or one-shot buffers alone."""
    once = {outcome.demand.ref for outcome in plan.demands if outcome.demand.one_shot}
    groups = (
        (lambda ref: ref.kind == REQUEST_KIND, "only while the capacity is booked"),
        (lambda ref: ref in once, "only until the capacity is used"),
    )
    notes = []
    for temporary, until in groups:
        nodes = [
            item.planned
            for item in plan.node_claims.create
            if item.planned.holdings and all(temporary(holding.demand) for holding in item.planned.holdings)
        ]
        if nodes:
            names = sorted({str(holding.demand) for node in nodes for holding in node.holdings})
            about = listed(names, most=_MOST_NAMED)
            price = dollars(sum(node.price for node in nodes if node.price_known))
            notes.append(f"{price}/h of the new nodes is for {about}: paid {until}, not for a whole month")
    return notes


def before(plan: Plan, spending: Spending) -> float:
    """The cost of the present nodes over the same span, in USD."""
    return plan.cost.per_hour_before * ((spending.end - spending.start) / HOUR)


def spending_words(plan: Plan, spending: Spending) -> str:
    """`over the coming 30 days $12.00 (+$12.00 against the nodes as they are now)`."""
    change = change_words(before(plan, spending), spending.total)
    return f"over the coming {SPAN} {dollars(spending.total)} ({change} against the nodes as they are now)"


def demand_rows(spending: Spending) -> list[dict[str, Any]]:
    """Buffers and requests, the dearest first."""
    kept_by = {ref: cost.service for span in spending.spans for ref, cost in span.state.demands.items()}
    costs = sorted(spending.of_demands().items(), key=lambda item: (-round(item[1][0], 2), item[0]))
    lasts = (spending.end - spending.start) / HOUR
    return [
        _row(
            str(ref),
            cost,
            "; ".join(
                about_demand(
                    ref,
                    cost / chunk_hours * lasts if chunk_hours else None,
                    kept_by.get(ref),
                    spending.per_hour_of(ref),
                )
            ),
        )
        for ref, (cost, chunk_hours) in costs
        if cost >= _CENTS
    ]


def pool_rows(spending: Spending) -> list[dict[str, Any]]:
    """NodePools with all of their nodes, the dearest first."""
    costs = sorted(spending.of_pools().items(), key=lambda item: (-round(item[1], 2), item[0]))
    return [_row(pool_name(name), cost, "") for name, cost in costs if cost >= _CENTS]


def window_rows(spending: Spending) -> list[dict[str, Any]]:
    """What the followers of a schedule cost while it has each of its values."""
    return [_row(window_name(item), item.cost, f"{hours_words(item.hours)} hours") for item in spending.windows]


def pool_name(name: str) -> str:
    """`NodePool general`; name "" stands for nodes without a NodePool."""
    return f"NodePool {name}" if name else "nodes of no NodePool"


def window_name(window: WindowCost) -> str:
    """`while MetricsProducer/shop/office is 12`."""
    return f"while {window.schedule} is {'above 0' if window.value is None else f'{window.value:,}'}"


def hours_words(hours: float) -> str:
    """`220`, `36.5`."""
    return f"{hours:,.1f}".removesuffix(".0")


def about_demand(
    ref: ObjectRef, per_replica: float | None, kept_by: Service | None, per_hour: float | None
) -> list[str]:
    """Notes about the cost of one demand. per_replica: over the whole span. per_hour: of a request, while its pods run."""
    words = []
    if ref.kind == REQUEST_KIND:
        words.append("once, while its capacity is booked")
        words += [f"{dollars(per_hour)} an hour for as long as its pods run"] if per_hour is not None else []
    elif per_replica is not None:
        words.append(f"{dollars(per_replica)} for one replica all the time")
    if kept_by is not None and kept_by.by is not Keeper.HEADROOM:
        words.append(f"kept by {keeper_words(kept_by)}, whose nodes are priced as headroom's would be")
    return words


def _row(name: str, cost: float, why: str) -> dict[str, Any]:
    return {"name": name, "what": dollars(cost), "why": why, "fields": []}
