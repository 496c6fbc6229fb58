"""Why a demand is served before others, in words."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.changes import DemandOutcome
from reconciler.model.demand import NO_PRIORITY_CLASS, Demand
from reconciler.model.marks import PRIORITY_ANNOTATION


def order_words(outcomes: Iterable[DemandOutcome]) -> str:
    """The order in which demands are served, with its exception if that applies."""
    buffers = "buffers"
    if any(outcome.demand.kept_from is not None for outcome in outcomes):
        buffers = "the buffers that serve them (the others come first)"
    return (
        "Served in this order: pending pods and bookings first, then by pod priority, headroom.dev/priority, requests before "
        f"{buffers}, age and name."
    )


def precedence_words(demand: Demand) -> str:
    """`pod priority 1,000, headroom.dev/priority 5`; "" for a demand that is ordered by age alone."""
    words = ["booked"] if demand.booked else []
    if demand.priority != NO_PRIORITY_CLASS and not demand.is_pending_pod:
        words.append(f"pod priority {demand.priority:,}")
    if demand.declared_priority:
        words.append(f"{PRIORITY_ANNOTATION} {demand.declared_priority:,}")
    if demand.kept_from is not None:
        words.append("serves no requests")
    return ", ".join(words)
