"""Which planned node takes more chunks at the least price when it is made larger. Used by make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconciler.model.quantity import Resources
from reconciler.placement.amounts import times
from reconciler.placement.batches import Batch
from reconciler.placement.blueprints import Blueprint
from reconciler.placement.host_caps import HostCaps, Task, host_caps
from reconciler.placement.label_table import Amounts, Mask
from reconciler.placement.loops import Numbers
from reconciler.placement.shapes import Wish
from reconciler.placement.state import State


@dataclass(frozen=True, slots=True)
class Growth:
    """chunks: how many come to node `index`, which is of `blueprint` then."""

    index: int
    chunks: int
    blueprint: Blueprint


def grow(state: State, batch: Batch, index: int, blueprint: Blueprint, amount: int) -> None:
    """Adds chunks to a planned node; the pool is charged for what it is then instead of what it was before."""
    before = state.charged(index)
    state.put_planned(batch, blueprint, (index,), (amount,))
    charge_growth(state, index, before)


def charge_growth(state: State, index: int, before: Resources) -> None:
    """The pool is charged for what a node is now instead of what it was charged for it before."""
    state.charge(state.planned.of(index).offers.pool.name, state.charged(index), before, nodes=0)


def cheapest_growth(
    state: State, task: Task, wish: Wish, pools: tuple[int, ...], count: int, *, limit: float
) -> Growth | None:
    """The cheapest a chunk, if below the limit; of equal ones the first node, and of its types the one that takes most."""
    planned = state.planned
    if not planned.count:
        return None
    joined = within_pools(state, state.meetings.get(task.batch.needs, wish, task.where).joined(), pools)
    # For limits the kernel goes by the type that a node would be bought as, which with minValues is not all it is charged for.
    scan = _scan if state.kernel is None or state.minimums_within_limits else _scan_by_kernel
    best = scan(state, task, joined, host_caps(state, task), count, limit=limit)
    if best is None:
        return None
    index, chunks = best
    return Growth(index, chunks, state.blueprints.list[int(joined[planned.blueprint[index]])])


def within_pools(state: State, joined: Numbers, pools: tuple[int, ...]) -> Numbers:
    """The blueprints after chunks came, of these pools only."""
    if len(pools) == len(state.offers):
        return joined
    in_pools = np.array([item.pool in pools for item in state.blueprints.list], dtype=np.bool_)
    return np.where(in_pools, joined, -1)


def _scan_by_kernel(
    state: State, task: Task, joined: Amounts, caps: HostCaps, count: int, *, limit: float
) -> tuple[int, int] | None:
    assert state.kernel is not None
    planned = state.planned
    lines = state.blueprints
    index, chunks = state.kernel.cheapest(
        *(planned.marks, planned.loads, lines.spans, lines.line, lines.room, joined),
        *(task.batch.needs.request, task.batch.counted),
        *(state.topology.hosts.table, state.base, caps.rules, caps.more, *state.running_limits.now()),
        *(planned.count, count, limit),
    )
    # Uncompiled, the loop hands back numpy's own integers, which must not get out of arrays.
    return None if index < 0 else (int(index), int(chunks))


def _scan(
    state: State, task: Task, joined: Amounts, caps: HostCaps, count: int, *, limit: float
) -> tuple[int, int] | None:
    """Blueprint by blueprint: nodes × types at once."""
    planned, batch = state.planned, task.batch
    nodes = planned.count
    allowed = np.full(nodes, count, dtype=np.int64)
    on_all = caps.on(state.topology.hosts.table, state.base, nodes)
    if on_all is not None:
        allowed = np.minimum(allowed, on_all)
    if len(caps.more):
        allowed = np.minimum(allowed, caps.more)
    after = joined[planned.blueprint[:nodes]]
    taken = state.taken(batch)
    best: tuple[float, int, int] | None = None
    for number in np.unique(after[(after >= 0) & (allowed > 0)]).tolist():
        blueprint = state.blueprints.list[number]
        members = np.flatnonzero((after == number) & (allowed > 0))
        fits = times(blueprint.room[None, :, :] - taken[members][:, None, :], batch.needs.request)
        fits = np.minimum(fits, allowed[members][:, None])
        fits = np.where((blueprint.room[None, :, :] >= planned.used[members][:, None, :]).all(axis=2), fits, 0)
        # As it is a node takes no more, unless it could not be bought as that any longer.
        at = np.where(planned.blueprint[members] == number, planned.type[members], -1)
        fits = np.where((blueprint.types + state.blueprints.type_base[blueprint.pool])[None, :] == at[:, None], 0, fits)
        more = np.maximum(blueprint.type_prices[None, :] - planned.price[members][:, None], 0)
        if blueprint.pool in state.limited:
            fits = np.where(_within_limits(state, blueprint, members), fits, 0)
        each = np.where(fits > 0, more / np.maximum(fits, 1), np.inf)
        least = each.min(axis=1)
        node = int(least.argmin())
        if least[node] < limit and (best is None or (least[node], members[node]) < best[:2]):
            chunks = int(fits[node][each[node] == least[node]].max())
            best = (float(least[node]), int(members[node]), chunks)
    return None if best is None else best[1:]


def _within_limits(state: State, blueprint: Blueprint, nodes: Amounts) -> Mask:
    """For each of these nodes which types would not break the pool's limits."""
    known: dict[Resources, Mask] = {}
    found = []
    for index in nodes.tolist():
        charged = state.charged(index)
        if charged not in known:
            known[charged] = state.running_limits.larger_types(blueprint.pool, charged)[blueprint.types]
        found.append(known[charged])
    return np.array(found, dtype=np.bool_)


def blueprint_within_limits(state: State, batch: Batch, growth: Growth) -> Blueprint:
    """What a node is to be once it has grown: with no type that would break the pool's limits, if it would be bought as that, or
    if minValues of the pool are to be met within the limits."""
    blueprint, planned = growth.blueprint, state.planned
    if blueprint.pool not in state.limited:
        return blueprint
    used = planned.used_with(batch, growth.index, growth.chunks)
    kept = (
        planned.blueprint[growth.index] == blueprint.number
        and (blueprint.room[planned.place[growth.index]] >= used).all()
    )
    place = int(planned.place[growth.index]) if kept else int(blueprint.cheapest(used[None, :])[0])
    is_within = state.running_limits.larger_types(blueprint.pool, state.charged(growth.index))[blueprint.types[place]]
    return blueprint if is_within and not blueprint.offers.minimums else growable(state, growth.index, blueprint)


def growable(state: State, index: int, blueprint: Blueprint) -> Blueprint:
    """Without the types that would break the pool's limits in place of what the node is charged for now."""
    if blueprint.pool not in state.limited:
        return blueprint
    fits = state.running_limits.larger_types(blueprint.pool, state.charged(index))
    rows = blueprint.rows & fits[blueprint.offers.offerings.types_of]
    return state.blueprints.get(blueprint.pool, rows, blueprint.own, blueprint.wanted)
