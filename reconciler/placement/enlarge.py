"""Which planned node takes more chunks at the least price when it is made larger. Used by make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconciler.placement.amounts import times
from reconciler.placement.blueprints import Blueprint, Numbers
from reconciler.placement.host_caps import HostCaps, Task, host_caps
from reconciler.placement.label_table import Amounts, Mask
from reconciler.placement.shapes import Wish
from reconciler.placement.state import State


@dataclass(frozen=True, slots=True)
class Growth:
    """chunks: how many come to node `index`, which is of `blueprint` then."""

    index: int
    chunks: int
    blueprint: Blueprint


def grow_at(state: State, task: Task, wish: Wish, pools: tuple[int, ...], *, count: int, prices: Numbers) -> int:
    """Makes planned nodes larger for up to `count` chunks, one after another, as long as that is no dearer than new ones for all
    that is left; returns how many found a place. prices: of new nodes, by number of chunks. Only where no limit of a pool
    and no minValues may come to stand in the way."""
    assert state.kernel is not None
    planned, batch, placed, again = state.planned, task.batch, 0, True
    meeting = state.meetings.get(batch.needs, wish, task.where)
    joined = _in_pools(state, meeting.joined(), pools)
    while again and planned.count and placed < count:
        found, again = state.kernel.grow(
            *planned.found[1:3],
            planned.found[3:],
            *(prices, joined, state.taken(batch), *host_caps(state, task).arguments(state)),
            *(planned.count, count - placed, state.blueprints.starts, state.blueprints.ends, *planned.arguments(batch)),
        )
        placed += state.note_found(batch, found) if found else 0
    return placed


def cheapest_growth(
    state: State, task: Task, wish: Wish, pools: tuple[int, ...], count: int, *, limit: float
) -> Growth | None:
    """The cheapest a chunk, if below the limit; of equal ones the first node, and of its types the one that takes most."""
    planned = state.planned
    if not planned.count:
        return None
    joined = _in_pools(state, state.meetings.get(task.batch.needs, wish, task.where).joined(), pools)
    limited = not state.limited.isdisjoint(pools)
    scan = _scan if state.kernel is None or limited else _scan_by_kernel
    best = scan(state, task, joined, host_caps(state, task), count, limit=limit)
    if best is None:
        return None
    index, chunks = best
    return Growth(index, chunks, state.blueprints.list[int(joined[planned.blueprint[index]])])


def _in_pools(state: State, joined: Numbers, pools: tuple[int, ...]) -> Numbers:
    if len(pools) == len(state.offers):
        return joined
    in_pools = np.array([item.pool in pools for item in state.blueprints.list], dtype=np.bool_)
    return np.where(in_pools, joined, -1)


def _scan_by_kernel(
    state: State, task: Task, joined: Amounts, caps: HostCaps, count: int, *, limit: float
) -> tuple[int, int] | None:
    assert state.kernel is not None
    planned, blueprints = state.planned, state.blueprints
    index, chunks = state.kernel.cheapest(
        *(planned.blueprint, joined, planned.place, planned.type, planned.price, blueprints.starts, blueprints.ends),
        *(
            blueprints.types,
            blueprints.type_prices,
            blueprints.room,
            state.taken(task.batch),
            planned.used,
            task.batch.needs.request,
        ),
        *(*caps.arguments(state), planned.count, count, limit),
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
    on_all = caps.on(state.topology.hosts.table, len(state.bins), nodes)
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
        if state.limits.is_limited(blueprint.offers.pool.name):
            fits = np.where(_within_limits(state, blueprint, planned.type[members]), fits, 0)
        each = np.where(fits > 0, more / np.maximum(fits, 1), np.inf)
        least = each.min(axis=1)
        node = int(least.argmin())
        if least[node] < limit and (best is None or (least[node], members[node]) < best[:2]):
            chunks = int(fits[node][each[node] == least[node]].max())
            best = (float(least[node]), int(members[node]), chunks)
    return None if best is None else best[1:]


def _within_limits(state: State, blueprint: Blueprint, held: Amounts) -> Mask:
    """For nodes that are of these types (numbered through all pools) now, which types would not break the pool's limits."""
    offers = blueprint.offers
    base = state.blueprints.type_base[blueprint.pool]
    name = offers.pool.name
    known = {
        kind: [
            state.limits.shortage(name, offers.capacities[other], offers.capacities[kind - base], nodes=0) is None
            for other in blueprint.types.tolist()
        ]
        for kind in np.unique(held).tolist()
    }
    return np.array([known[kind] for kind in held.tolist()], dtype=np.bool_)


def growable(state: State, index: int, blueprint: Blueprint) -> Blueprint:
    """Without the types that would break the pool's limits in place of what the node would be bought as now."""
    offers = blueprint.offers
    if not state.limits.is_limited(offers.pool.name):
        return blueprint
    held = offers.capacities[offers.offerings.types_of[state.planned.primary(index)]]
    fits = [state.limits.shortage(offers.pool.name, capacity, held, nodes=0) is None for capacity in offers.capacities]
    rows = blueprint.rows & np.array(fits, dtype=np.bool_)[offers.offerings.types_of]
    return state.blueprints.get(blueprint.pool, rows, blueprint.own, blueprint.wanted)
