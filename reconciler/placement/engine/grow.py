"""Which planned node can be made larger, and take more chunks, for the least added price."""

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
    """chunks: how many are added to planned node `index`. template: what the node may be bought as from then on."""

    index: int
    chunks: int
    template: NodeTemplate


def grow(state: State, batch: Batch, index: int, template: NodeTemplate, amount: int) -> None:
    """Adds chunks to a planned node, and charges the pool for the larger node in place of the smaller one."""
    before = state.charged(index)
    state.add_planned(batch, template, (index,), (amount,))
    charge_growth(state, index, before)


def charge_growth(state: State, index: int, before: Resources) -> None:
    """Charges the pool for what a node is now, in place of the charge `before`."""
    state.charge(state.planned.of(index).offers.pool.name, state.charged(index), before, nodes=0)


def cheapest_growth(
    state: State, task: Task, relaxation: RelaxationStep, pools: tuple[int, ...], count: int, *, limit: float
) -> Growth | None:
    """The growth with the least price per chunk, if that is below the limit. Ties: the first node, then the type that takes
    most chunks."""
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
    # The loop returns numpy integers when it is not compiled. They must not leave the arrays.
    return Growth(int(index), int(chunks), state.templates.list[int(joined[planned.template[index]])])


def within_pools(state: State, joined: Numbers, pools: tuple[int, ...]) -> Numbers:
    """joined: the template of each node once the chunks are added; here only those of these pools."""
    if len(pools) == len(state.offers):
        return joined
    in_pools = np.array([item.pool in pools for item in state.templates.list], dtype=np.bool_)
    return np.where(in_pools, joined, -1)


def template_within_limits(state: State, batch: Batch, growth: Growth) -> NodeTemplate:
    """The template of a node once it has grown.

    Types over the pool's limits are taken out if the node's cheapest type is among them. With minValues they always are, since
    minValues have to be met within the limits.
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
    """The template without the types that would break the pool's limits if they replaced the node's present charge."""
    if template.pool not in state.limited:
        return template
    fits = state.running_limits.larger_types(template.pool, state.charged(index))
    rows = template.rows & fits[template.offers.offerings.types_of]
    return state.templates.get(template.pool, rows, template.own, template.wanted, template.own_taint)
