"""Unplaced chunks by demand and group, each with its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from reconciler.model.placement import ALL_OR_NOTHING, Unplaced, UnplacedReason
from reconciler.placement.batches import Batch
from reconciler.placement.engine.pack import Packer
from reconciler.placement.engine.state import State
from reconciler.placement.offers.pool_offers import usable
from reconciler.placement.problem import Problem
from reconciler.placement.reasons.claims import claim_reasons, obstacle_reason
from reconciler.placement.reasons.node_pools import unused
from reconciler.placement.reasons.nodes import Circumstances, reasons_of

_AFTER_ALL_OTHERS = -1
_USED_UP = frozenset({"NodePool limit", "node full"})


def unplaced_chunks(
    state: State, problem: Problem, batches: Sequence[Batch], missing: Mapping[int, int]
) -> list[Unplaced]:
    """missing: how many chunks are unplaced, by number of a batch. Within a batch, the chunks of the last members are unplaced."""
    if not missing:
        return []
    unused_pools = tuple(
        unused(pool) for pool in sorted(problem.node_pools, key=lambda pool: pool.name) if not usable(pool)
    )
    demands = {item.ref: item for item in problem.demands}
    circumstances = Circumstances(unused_pools, problem.options.chunks_per_node, demands)
    of_wholes = _reasons_of_wholes(state, batches, missing, circumstances)
    unplaced = []
    for number in sorted(missing):
        batch = batches[number]
        shared = of_wholes.get(number)
        left = missing[number]
        for member in reversed(batch.members):
            count = min(left, member.size)
            if not count:
                break
            # The chunks of a batch are equal except for the names of their claims.
            shape = demands[member.demand].groups[member.group].shape
            own, enough = ((obstacle_reason(shape),), True) if shape.obstacle else claim_reasons(shape)
            if shared is None and not enough:
                shared = reasons_of(state, batch, circumstances)
            unplaced.append(Unplaced(member.demand, member.group, count, own if enough else (*(shared or ()), *own)))
            left -= count
    return sorted(unplaced, key=lambda item: (item.demand, item.group))


def _reasons_of_wholes(
    state: State, batches: Sequence[Batch], missing: Mapping[int, int], circumstances: Circumstances
) -> dict[int, tuple[UnplacedReason, ...]]:
    """For demands that are placed as a whole and were not: what stopped the first chunk, by number of its batch.

    That shows only while the chunks before it are placed, so they are placed once more and then taken back.
    """
    found: dict[int, tuple[UnplacedReason, ...]] = {}
    for whole, group in groupby(batches, key=lambda batch: batch.whole):
        members = [batch for batch in group if batch.number in missing]
        if whole is None or not members:
            continue
        saved = state.save()
        placed, stopped = Packer(state, batches).place_until_one_is_left(members)
        size = sum(batch.count for batch in members)
        words = f"{members[0].demand} is placed as a whole or not at all"
        # This many were placed in order. In another order, or with other new nodes, there may be more.
        if placed:
            words += f": at least {placed:,} of its {size:,} pods would have a place"
        together = UnplacedReason(ALL_OR_NOTHING, 1, words, _AFTER_ALL_OTHERS, fitting=placed)
        found |= dict.fromkeys((batch.number for batch in members), (together,))
        first = stopped or members[0]
        reasons = reasons_of(state, first, circumstances)
        if placed:
            reasons = tuple(_with_the_placed(reason, placed, size) for reason in reasons)
        found[first.number] = (*reasons, together)
        state.roll_back(saved)
    return found


def _with_the_placed(reason: UnplacedReason, placed: int, size: int) -> UnplacedReason:
    """The reason with a note, where the demand's own pods have used up the room."""
    if reason.cause not in _USED_UP:
        return reason
    verb = "has" if placed == 1 else "have"
    return replace(reason, example=f"{reason.example}, once {placed:,} of its {size:,} pods {verb} a place")
