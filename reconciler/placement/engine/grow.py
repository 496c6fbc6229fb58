"""Places chunks on planned nodes: as they are, made larger where that costs least, and both with new ones in one compiled call."""

from __future__ import annotations

import numpy as np

from reconciler.model.quantity import Resources
from reconciler.placement.arrays import (
    COUNTS,
    KEPT,
    NODES,
    ROUNDING,
    ChunkArrays,
    HostArrays,
    NodeArrays,
    Numbers,
)
from reconciler.placement.batches import Batch, RelaxationStep
from reconciler.placement.engine.fill import Task, host_caps
from reconciler.placement.engine.state import State
from reconciler.placement.offers.node_templates import Joining, NodeTemplate


def grow(
    state: State, batch: Batch, index: int, template: NodeTemplate, amount: int, instance_type: int = KEPT
) -> None:
    """Adds chunks to a planned node, and charges the pool for the larger node in place of the smaller one."""
    before = state.charged(index)
    state.add_planned(batch, template, (index,), (amount,), instance_type)
    charge_growth(state, index, before)


def charge_growth(state: State, index: int, before: Resources) -> None:
    """Charges the pool for what a node is now, in place of the charge `before`."""
    state.charge(state.planned.of(index).offers.pool.name, state.charged(index), before, nodes=0)


def enlarge(
    state: State, task: Task, relaxation: RelaxationStep, pools: tuple[int, ...], *, count: int, price: int
) -> int:
    """Makes one planned node larger if that costs no more per chunk than new nodes: `price` for all remaining chunks.

    It is the growth that costs least per chunk. Ties: the first node, then the type that takes most chunks. Returns how many it took.
    """
    planned, batch = state.planned, task.batch
    if not planned.count:
        return 0
    joined = within_pools(state, joining(state, task, relaxation).joined(), pools)
    limits = state.running_limits
    charged = limits.charges(map(state.charged, range(planned.count)) if state.minimums_within_limits else ())
    planned.least[:] = 0
    # The loop returns numpy integers when it is not compiled. They must not leave the arrays.
    index, chunks, instance_type = map(
        int,
        state.kernel.cheapest(
            *_arrays(state, task),
            limits.now(charged),
            joined,
            planned.count,
            count,
            (price / count) * (1 + ROUNDING) + ROUNDING,
        ),
    )
    if index < 0:
        return 0
    template = state.templates.list[int(joined[planned.template[index]])]
    if template.offers.minimums:  # they have to be met within the limits
        template = growable(state, index, template)
    amount = most_with_minimums(state, template, index, batch, chunks)
    if amount:
        grow(state, batch, index, template, amount, instance_type)
    return amount


def _arrays(state: State, task: Task) -> tuple[NodeArrays, ChunkArrays, HostArrays]:
    """Planned nodes, chunks and what rules on the hostname allow, as the loops take them."""
    caps = host_caps(state, task)
    hosts = state.topology.hosts.table, state.base, caps.rules, caps.more
    return state.planned.arrays, task.batch.arrays, hosts


def joining(state: State, task: Task, relaxation: RelaxationStep) -> Joining:
    """How the chunks may come to planned nodes, in any of the task's domains."""
    return state.compatibilities.joining(task.batch.needs, relaxation, task.wheres)


def within_pools(state: State, joined: Numbers, pools: tuple[int, ...]) -> Numbers:
    """joined: the template of each node once the chunks are added; here only those of these pools."""
    if len(pools) == len(state.offers):
        return joined
    in_pools = np.array([item.pool in pools for item in state.templates.list], dtype=np.bool_)
    return np.where(in_pools, joined, -1)


def settle(state: State) -> None:
    """Makes planned nodes as small as they can be: room that nobody came to is not bought."""
    planned = state.planned
    for number in planned.present:
        template, indices = state.templates.list[number], np.array(planned.with_template(number), dtype=np.int64)
        positions = template.cheapest(planned.used[indices])
        for at in np.flatnonzero(positions != planned.position[indices]).tolist():
            index, position, chosen = int(indices[at]), int(positions[at]), template
            before = state.charged(index)
            if template.pool in state.limited:
                chosen = growable(state, index, template)
                position = int(chosen.cheapest(planned.used[index][None, :])[0])
            state.settle(index, chosen, position)
            charge_growth(state, index, before)


def growable(state: State, index: int, template: NodeTemplate) -> NodeTemplate:
    """The template without the types that would break the pool's limits if they replaced the node's present charge."""
    if template.pool not in state.limited:
        return template
    fits = state.running_limits.larger_types(template.pool, state.charged(index))
    rows = template.rows & fits[template.offers.offerings.types_of]
    return state.templates.get(template.pool, rows, template.own, template.wanted, template.own_taint)


def fill_planned(state: State, task: Task, relaxation: RelaxationStep, count: int) -> int:
    """Places up to `count` chunks in the free room of planned nodes, without making any of them larger or dearer."""
    planned = state.planned
    if not planned.count or not count:
        return 0
    compatibility = joining(state, task, relaxation)
    joined = compatibility.joined()
    found = state.kernel.choose(
        *_arrays(state, task),
        joined,
        compatibility.bought_as,
        planned.count,
        count,
        1 if task.single else planned.count,
    )
    together: dict[int, tuple[list[int], list[int]]] = {}
    placed = 0
    for index, wanted in planned.found[[NODES, COUNTS], :found].T.tolist():
        number = int(joined[planned.template[index]])
        template = state.templates.list[number]
        charged = bool(template.offers.minimums) and template.pool in state.limited
        if charged:  # a node with more on it may have to list larger types, even if its cheapest stays the same
            template = growable(state, index, template)
        amount = most_with_minimums(state, template, index, task.batch, wanted)
        if amount and charged:
            grow(state, task.batch, index, template, amount)
            placed += amount
        elif amount:
            indices, amounts = together.setdefault(number, ([], []))
            indices.append(index)
            amounts.append(amount)
            placed += amount
    for number, (indices, amounts) in together.items():
        state.add_planned(task.batch, state.templates.list[number], indices, amounts)
    return placed


def most_with_minimums(state: State, template: NodeTemplate, index: int, batch: Batch, amount: int) -> int:
    """The most chunks, up to `amount`, with which the pool's minValues still hold."""
    if not template.offers.minimums:
        return amount
    while amount and template.least(state.planned.used_with(batch, index, amount)) is None:
        amount -= 1
    return amount
