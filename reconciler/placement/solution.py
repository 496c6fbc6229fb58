"""The placement that a state stands for: what existing bins hold, and what each planned node's NodeClaim lists."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

from reconciler.model.placement import Holding, OccupiedBin, Placement, Unplaced
from reconciler.model.refs import ObjectRef
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.reservations import in_its_pool
from reconciler.placement.constraints.spot_share import totals_of
from reconciler.placement.engine.state import State
from reconciler.placement.launch.offer import Offerer
from reconciler.placement.launch.spot_share import offered_within_share
from reconciler.placement.problem import PlacementOptions

_Held: TypeAlias = tuple[ObjectRef, int, int]
"""The parts of a holding: tuples compare faster than holdings do."""


def placement_of(
    state: State, batches: Sequence[Batch], unplaced: Sequence[Unplaced], options: PlacementOptions
) -> Placement:
    """Reads the placement off the state, which is unchanged afterwards."""
    held = _held(state, batches)
    holdings = {number: tuple([Holding(*item) for item in items]) for number, items in held.items()}
    accounts = state.limits.accounts()
    offerer = Offerer(state, options.instance_types)
    offered, crowded = offered_within_share(state, offerer, holdings, totals_of(batches), options.spot_share)
    # Alternatives count against limits only among planned nodes, so their charges are taken back.
    state.limits.restore(accounts)
    planned = [in_its_pool(item.node) for item in offered]
    occupied = []
    for number, origin in enumerate(state.bins.origins):
        if number in holdings:
            node = origin.node.name if origin.node is not None else None
            claim = origin.claim.name if origin.claim is not None else None
            occupied.append(OccupiedBin(node, claim, holdings[number]))
    keys = [
        (node.node_pool, node.instance_types, node.zones, node.capacity_types, held[state.base + index])
        for index, node in enumerate(planned)
    ]
    planned = [planned[index] for index in sorted(range(len(planned)), key=keys.__getitem__)]
    occupied.sort(key=lambda item: (item.node or "", item.node_claim or ""))
    assumptions = tuple(sorted({*state.topology.assumptions, *map(str, crowded)}))
    return Placement(tuple(occupied), tuple(planned), tuple(unplaced), assumptions, crowded)


def _held(state: State, batches: Sequence[Batch]) -> dict[int, list[_Held]]:
    """What each bin holds, sorted: chunks of a batch go to its members in their order, bin by bin."""
    bins = state.base + state.planned.count
    # By batch and bin in one number, which sorts faster than two.
    amounts: defaultdict[int, int] = defaultdict(int)
    for entry in state.entries():
        amounts[entry.batch.number * bins + entry.bin] += entry.count
    found: defaultdict[int, list[_Held]] = defaultdict(list)
    batch = -1
    for key in sorted(amounts):
        (number, bin_number), count = divmod(key, bins), amounts[key]
        if number != batch:
            batch, members, waiting = number, iter(batches[number].members), 0
        held, left = found[bin_number], count
        while left:
            if not waiting:
                demand, group, waiting = next(members)
            taken = min(left, waiting)
            held.append((demand, group, taken))
            waiting -= taken
            left -= taken
    for items in found.values():
        items.sort()
    return found
