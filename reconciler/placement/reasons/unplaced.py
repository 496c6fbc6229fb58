"""Unplaced chunks by demand and group, each with its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.model.placement import Unplaced, UnplacedReason
from reconciler.placement.batches import Batch
from reconciler.placement.engine.state import State
from reconciler.placement.offers.pool_offers import usable
from reconciler.placement.problem import Problem
from reconciler.placement.reasons.claims import claim_reasons, obstacle_reason
from reconciler.placement.reasons.node_pools import unused
from reconciler.placement.reasons.nodes import Circumstances, reasons_of


def unplaced_chunks(
    state: State, problem: Problem, batches: Sequence[Batch], missing: Mapping[int, int]
) -> list[Unplaced]:
    """missing: how many chunks are unplaced, by number of a batch. Within a batch, the chunks of the last members are unplaced."""
    if not missing:
        return []
    unused_pools = tuple(
        (pool.name, unused(pool)) for pool in sorted(problem.node_pools, key=lambda pool: pool.name) if not usable(pool)
    )
    circumstances = Circumstances(unused_pools, problem.options.chunks_per_node)
    # The chunks of a batch are alike but for the names of their claims.
    shapes = {(item.ref, index): group.shape for item in problem.demands for index, group in enumerate(item.groups)}
    unplaced = []
    for number in sorted(missing):
        batch = batches[number]
        shared: tuple[UnplacedReason, ...] | None = None
        left = missing[number]
        for member in reversed(batch.members):
            count = min(left, member.size)
            if not count:
                break
            shape = shapes[member.demand, member.group]
            own, enough = ((obstacle_reason(shape),), True) if shape.obstacle else claim_reasons(shape)
            if shared is None and not enough:
                shared = reasons_of(state, batch, circumstances)
            unplaced.append(Unplaced(member.demand, member.group, count, own if enough else (*(shared or ()), *own)))
            left -= count
    return sorted(unplaced, key=lambda item: (item.demand, item.group))
