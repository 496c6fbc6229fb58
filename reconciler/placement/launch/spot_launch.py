"""Planned nodes with lists that keep `placement.spotShare`, and the demands for which it cannot be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.model.placement import Holding
from reconciler.model.refs import ObjectRef
from reconciler.model.spot import Crowding
from reconciler.placement.constraints.spot_share import accounts_of_bins, crowdings, limits_of
from reconciler.placement.engine.state import State
from reconciler.placement.launch.offer import OfferedNode, Offerer
from reconciler.placement.launch.spot_lists import narrowed_lists


def offered_within_share(
    state: State,
    offerer: Offerer,
    holdings: Mapping[int, tuple[Holding, ...]],
    totals: Mapping[ObjectRef, int],
    share: float,
) -> tuple[Sequence[OfferedNode], tuple[Crowding, ...]]:
    """Planned nodes in their order. holdings: by bin, existing bins first. totals: how many chunks each demand has.

    A demand that keeps the share with full lists is left alone, unless it shares new nodes with one that does not. minValues come
    first: a node whose shorter list would have too few values keeps its long one."""
    held = [holdings[state.base + index] for index in range(state.planned.count)]
    untouched = state.limits.accounts()
    wide = [offerer.planned_node(index, holding) for index, holding in enumerate(held)]
    limits = limits_of(totals, share)
    if not limits:
        return wide, ()

    def over(limits: Mapping[ObjectRef, int], offered: Sequence[OfferedNode]) -> tuple[Crowding, ...]:
        accounts = accounts_of_bins(limits, state.bins.origins, holdings)
        return crowdings(accounts, (item.node for item in offered), totals)

    crowded = over(limits, wide)
    if not crowded:
        return wide, ()
    state.limits.restore(untouched)
    touched = _touched({item.demand for item in crowded}, held, limits)
    accounts = accounts_of_bins({demand: limits[demand] for demand in sorted(touched)}, state.bins.origins, holdings)
    lists = narrowed_lists(state, [item.node for item in wide], accounts, most_types=offerer.most_types)
    offered = []
    for index, long in enumerate(wide):
        before = state.limits.accounts() if state.minimums else None
        short = offerer.planned_node(index, held[index], lists.get(index))
        if before is not None and long.meets_minimums and not short.meets_minimums:
            state.limits.restore(before)
            short = offerer.planned_node(index, held[index])
        offered.append(short)
    return offered, over(limits, offered)


def _touched(
    crowded: set[ObjectRef], held: Sequence[Sequence[Holding]], limits: Mapping[ObjectRef, int]
) -> set[ObjectRef]:
    """These demands, and all that share a new node with one of them, directly or through others."""
    together = [{holding.demand for holding in holdings} & limits.keys() for holdings in held]
    touched, size = set(crowded), 0
    while len(touched) > size:
        size = len(touched)
        for demands in together:
            if demands & touched:
                touched |= demands
    return touched
