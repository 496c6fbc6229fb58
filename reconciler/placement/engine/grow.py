"""Which planned node takes more chunks at the least price when it is made larger. Used by make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconciler.model.quantity import Resources
from reconciler.placement.amounts import times
from reconciler.placement.engine.batches import Batch
from reconciler.placement.engine.host_caps import HostCaps, Task, host_caps
from reconciler.placement.engine.loops import Numbers
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Amounts, Mask
from reconciler.placement.needs import RelaxationStep
from reconciler.placement.offers.node_templates import NodeTemplate


@dataclass(frozen=True, slots=True)
class Growth:
    """chunks: how many come to node `index`, which is of `template` then."""

    index: int
    chunks: int
    template: NodeTemplate


def grow(state: State, batch: Batch, index: int, template: NodeTemplate, amount: int) -> None:
    """Adds chunks to a planned node; the pool is charged for what it is then instead of what it was before."""
    before = state.charged(index)
    state.put_planned(batch, template, (index,), (amount,))
    charge_growth(state, index, before)


def charge_growth(state: State, index: int, before: Resources) -> None:
    """The pool is charged for what a node is now instead of what it was charged for it before."""
    state.charge(state.planned.of(index).offers.pool.name, state.charged(index), before, nodes=0)


def cheapest_growth(
    state: State, task: Task, relaxation: RelaxationStep, pools: tuple[int, ...], count: int, *, limit: float
) -> Growth | None:
    """The cheapest a chunk, if below the limit; of equal ones the first node, and of its types the one that takes most."""
    planned = state.planned
    if not planned.count:
        return None
    joined = within_pools(state, state.compatibilities.get(task.batch.needs, relaxation, task.where).joined(), pools)
    # For limits the kernel goes by the type that a node would be bought as, which with minValues is not all it is charged for.
    scan = _scan if state.kernel is None or state.minimums_within_limits else _scan_by_kernel
    best = scan(state, task, joined, host_caps(state, task), count, limit=limit)
    if best is None:
        return None
    index, chunks = best
    return Growth(index, chunks, state.templates.list[int(joined[planned.template[index]])])


def within_pools(state: State, joined: Numbers, pools: tuple[int, ...]) -> Numbers:
    """The blueprints after chunks came, of these pools only."""
    if len(pools) == len(state.offers):
        return joined
    in_pools = np.array([item.pool in pools for item in state.templates.list], dtype=np.bool_)
    return np.where(in_pools, joined, -1)


def _scan_by_kernel(
    state: State, task: Task, joined: Amounts, caps: HostCaps, count: int, *, limit: float
) -> tuple[int, int] | None:
    assert state.kernel is not None
    planned = state.planned
    lines = state.templates
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
    after = joined[planned.template[:nodes]]
    taken = state.taken(batch)
    best: tuple[float, int, int] | None = None
    for number in np.unique(after[(after >= 0) & (allowed > 0)]).tolist():
        template = state.templates.list[number]
        members = np.flatnonzero((after == number) & (allowed > 0))
        fits = times(template.room[None, :, :] - taken[members][:, None, :], batch.needs.request)
        fits = np.minimum(fits, allowed[members][:, None])
        fits = np.where((template.room[None, :, :] >= planned.used[members][:, None, :]).all(axis=2), fits, 0)
        # As it is a node takes no more, unless it could not be bought as that any longer.
        at = np.where(planned.template[members] == number, planned.type[members], -1)
        fits = np.where((template.types + state.templates.type_base[template.pool])[None, :] == at[:, None], 0, fits)
        more = np.maximum(template.type_prices[None, :] - planned.price[members][:, None], 0)
        if template.pool in state.limited:
            fits = np.where(_within_limits(state, template, members), fits, 0)
        each = np.where(fits > 0, more / np.maximum(fits, 1), np.inf)
        least = each.min(axis=1)
        node = int(least.argmin())
        if least[node] < limit and (best is None or (least[node], members[node]) < best[:2]):
            chunks = int(fits[node][each[node] == least[node]].max())
            best = (float(least[node]), int(members[node]), chunks)
    return None if best is None else best[1:]


def _within_limits(state: State, template: NodeTemplate, nodes: Amounts) -> Mask:
    """For each of these nodes which types would not break the pool's limits."""
    known: dict[Resources, Mask] = {}
    found = []
    for index in nodes.tolist():
        charged = state.charged(index)
        if charged not in known:
            known[charged] = state.running_limits.larger_types(template.pool, charged)[template.types]
        found.append(known[charged])
    return np.array(found, dtype=np.bool_)


def template_within_limits(state: State, batch: Batch, growth: Growth) -> NodeTemplate:
    """What a node is to be once it has grown: with no type that would break the pool's limits, if it would be bought as that, or
    if minValues of the pool are to be met within the limits."""
    template, planned = growth.template, state.planned
    if template.pool not in state.limited:
        return template
    used = planned.used_with(batch, growth.index, growth.chunks)
    kept = (
        planned.template[growth.index] == template.number and (template.room[planned.place[growth.index]] >= used).all()
    )
    place = int(planned.place[growth.index]) if kept else int(template.cheapest(used[None, :])[0])
    is_within = state.running_limits.larger_types(template.pool, state.charged(growth.index))[template.types[place]]
    return template if is_within and not template.offers.minimums else growable(state, growth.index, template)


def growable(state: State, index: int, template: NodeTemplate) -> NodeTemplate:
    """Without the types that would break the pool's limits in place of what the node is charged for now."""
    if template.pool not in state.limited:
        return template
    fits = state.running_limits.larger_types(template.pool, state.charged(index))
    rows = template.rows & fits[template.offers.offerings.types_of]
    return state.templates.get(template.pool, rows, template.own, template.wanted)
