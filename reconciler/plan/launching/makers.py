"""Who makes a node in a forecast: not always headroom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.model.changes import NodeClaimCreation
from reconciler.model.demand import Demand, Keeper, autoscaler_of, keeper_of
from reconciler.model.refs import ObjectRef


def made_by_others(created: Iterable[NodeClaimCreation], demands: Iterable[Demand]) -> tuple[NodeClaimCreation, ...]:
    """Adds the maker to each node that holds only demands for which headroom makes none."""
    makers = {demand.ref: maker for demand in demands if (maker := maker_of(demand))}
    return tuple(_made(item, makers) for item in created)


def maker_of(demand: Demand) -> str:
    """Who makes nodes for the demand, in words; "" for headroom."""
    match keeper_of(demand):
        case Keeper.AUTOSCALER:
            return autoscaler_of(demand) or "the autoscaler that serves it"
        case Keeper.BALLOON_PODS:
            return "the autoscaler, for its balloon pods"
    return ""


def _made(item: NodeClaimCreation, makers: Mapping[ObjectRef, str]) -> NodeClaimCreation:
    own = {makers.get(holding.demand, "") for holding in item.planned.holdings}
    if not makers or len(own) != 1 or "" in own:
        return item
    maker = own.pop()
    return replace(item, made_by=maker, reason=f"{item.reason}, made by {maker}")
