"""Which of the nodes that a placement plans the caps allow, given what is there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reconciler.model.demand import Demand
from reconciler.model.placement import Placement, PlannedNode
from reconciler.plan.bins import Bin
from reconciler.plan.cost import Prices
from reconciler.plan.launching.caps import Capped, Cut, PlanCaps, Standing, within_caps
from reconciler.plan.requests.requests import made_in_attempts


def capped_nodes(
    planned: Sequence[PlannedNode], demands: Sequence[Demand], bins: Sequence[Bin], prices: Prices, caps: PlanCaps
) -> Capped:
    """demands: in the order of placement."""
    nodes: dict[str, int] = {}
    known: list[float] = []
    for item in bins:
        if item.is_going:
            continue
        nodes[item.node_pool] = nodes.get(item.node_pool, 0) + 1
        price = prices.of(item)
        if price is not None:
            known.append(price)
    return within_caps(
        planned,
        caps,
        Standing(sum(known), nodes, made_in_attempts(bins, demands)),
        order={demand.ref: index for index, demand in enumerate(demands)},
        whole={demand.ref for demand in demands if demand.whole},
    )


def refused_cuts(capped: Capped) -> tuple[Cut, ...]:
    """The cut nodes of demands that are then placed again without new nodes."""
    found = []
    for cut in capped.cuts:
        refused = capped.refused.intersection(holding.demand for holding in cut.node.holdings)
        if refused:
            found.append(replace(cut, refused=refused))
    return tuple(found)


def still_refused(cuts: Sequence[Cut], placement: Placement) -> tuple[Cut, ...]:
    """The cuts of which some demand is still unplaced; the others found room on existing nodes."""
    unplaced = {item.demand for item in placement.unplaced}
    return tuple(cut for cut in cuts if cut.refused & unplaced)
