"""Buys on demand what would cost more as spot within placement.spotShare, or cannot be kept within it. Used by place, once the share
is kept on spot as far as it can be.

Nodes on demand need not be split for the share. So there are two ways beside the one found: the same nodes, of which some list
on-demand only; and the nodes that there would be without a bound. The one that keeps most of the share stands, of equals
the cheapest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from reconciler.model.refs import ObjectRef
from reconciler.model.spot import ON_DEMAND, SPOT
from reconciler.placement.spot.allowances import Allowances, Answer, Attempt, is_priced, missing, price_of

_DECIMALS = 9


def cheaper_on_demand(
    found: Answer, place_again: Callable[[Allowances], Answer], demands: Collection[ObjectRef]
) -> Answer:
    """place_again: with nodes that may come to list on-demand only; demands: those that can be over the share. What has no known
    price is not compared."""
    both = any(
        {ON_DEMAND, SPOT} <= {*node.capacity_types} and any(holding.demand in demands for holding in node.holdings)
        for node in found.placement.planned
    )
    if not both or not is_priced(found):
        return found
    others = [place_again(allowances) for allowances in ([found.allowances, {}] if found.allowances else [{}])]
    return min([found, *(other for other in others if is_priced(other))], key=_worth)


def _worth(answer: Attempt) -> tuple[int, int, float]:
    """Chunks without a place, chunks over the share, and the price."""
    over = sum(item.chunks - item.allowed for item in answer.placement.crowded)
    return (missing(answer), over, round(price_of(answer), _DECIMALS))
