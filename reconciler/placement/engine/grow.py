"""Which planned node takes more chunks at the least price when it is made larger."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconciler.model.quantity import Resources
from reconciler.placement.batches import Batch
from reconciler.placement.engine.host_caps import Task, host_caps
from reconciler.placement.engine.state import State
from reconciler.placement.loops.arrays import LEAST, Numbers
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
    state.add_planned(batch, template, (index,), (amount,))
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
    caps = host_caps(state, task)
    limits = state.running_limits
    charged = limits.charges(map(state.charged, range(planned.count)) if state.minimums_within_limits else ())
    planned.marks[LEAST] = 0
    index, chunks = state.kernel.cheapest(
        *(planned.arrays, task.batch.arrays, (state.topology.hosts.table, state.base, caps.rules, caps.more)),
        *(limits.now(charged), joined, planned.count, count, limit),
    )
    if index < 0:
        return None
    # Uncompiled, the loop hands back numpy's own integers, which must not get out of arrays.
    return Growth(int(index), int(chunks), state.templates.list[int(joined[planned.template[index]])])


def within_pools(state: State, joined: Numbers, pools: tuple[int, ...]) -> Numbers:
    """The node templates after chunks came, of these pools only."""
    if len(pools) == len(state.offers):
        return joined
    in_pools = np.array([item.pool in pools for item in state.templates.list], dtype=np.bool_)
    return np.where(in_pools, joined, -1)


def template_within_limits(state: State, batch: Batch, growth: Growth) -> NodeTemplate:
    """The template of a node once it has grown.

    Types that would break the pool's limits are taken out if the node would be bought as one. They are too if the pool has
    minValues, which are to be met within the limits.
    """
    template, planned = growth.template, state.planned
    if template.pool not in state.limited:
        return template
    used = planned.used_with(batch, growth.index, growth.chunks)
    kept = (
        planned.template[growth.index] == template.number
        and (template.room[planned.position[growth.index]] >= used).all()
    )
    position = int(planned.position[growth.index]) if kept else int(template.cheapest(used[None, :])[0])
    is_within = state.running_limits.larger_types(template.pool, state.charged(growth.index))[template.types[position]]
    return template if is_within and not template.offers.minimums else growable(state, growth.index, template)


def growable(state: State, index: int, template: NodeTemplate) -> NodeTemplate:
    """Without the types that would break the pool's limits in place of what the node is charged for now."""
    if template.pool not in state.limited:
        return template
    fits = state.running_limits.larger_types(template.pool, state.charged(index))
    rows = template.rows & fits[template.offers.offerings.types_of]
    return state.templates.get(template.pool, rows, template.own, template.wanted, template.own_taint)
