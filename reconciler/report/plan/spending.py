"""What a plan costs over the coming 30 days: by buffer, by NodePool, and by the values of schedules."""

from __future__ import annotations

from reconciler.model.changes import Plan
from reconciler.model.demand import REQUEST_KIND
from reconciler.model.spending import HOUR, MONTH, SAMPLE_PRICES, Spending
from reconciler.report.words import change_words, dollars, listed

SPAN = f"{MONTH.days} days"
HOURS_OF_SPAN = MONTH / HOUR
"""Every price over a time is over this span, so that two figures of one plan agree."""

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
