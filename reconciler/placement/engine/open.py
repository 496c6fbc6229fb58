"""Makes new nodes for chunks that found no room, in the sizes that hold these at the lowest price, and larger ones of nodes already planned.

The NodePool with the highest weight that can take a chunk wins. Ties are broken by the cheapest mix of sizes for all remaining
chunks, then by the pool's name, then by the type's. A planned node is made larger when that costs no more than another node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from reconciler.placement.arrays import (
    COUNTS,
    KEPT,
    NODES,
    PLENTY,
    POOL,
    ROUNDING,
    Amounts,
    ChunkArrays,
    Flags,
    HostArrays,
    NodeArrays,
    Numbers,
    WayArrays,
)
from reconciler.placement.batches import Batch, RelaxationStep
from reconciler.placement.constraints.min_values import can_be_met
from reconciler.placement.constraints.node_rules import ports_clash
from reconciler.placement.engine.fill import NO_NUMBERS, Task, host_rules, most_on_empty
from reconciler.placement.engine.state import State
from reconciler.placement.loops.kernel import Kernel
from reconciler.placement.loops.planned_nodes import join_of
from reconciler.placement.offers.node_templates import Compatibility, NodeTemplate
from reconciler.placement.offers.pool_offers import PoolOffers
from reconciler.placement.requirements import Mask

Mix: TypeAlias = list[tuple[int, int]]
"""Nodes to make, each as (choice, chunks on it)."""

_FEW = 8
"""Prices are always computed up to this many chunks, since a table that small costs next to nothing."""


@dataclass(slots=True, eq=False)
class SizeOptions:
    """The instance types that new nodes can have for equal chunks, and their cheapest mixes, computed once for each count.

    types: numbers through all pools. chunks: how many one node of the type holds, 0 where the type cannot be had.
    prices: of its cheapest offering, in billionths of a USD an hour. costs: the same less what its room is worth. These have shape (types,).
    useful: indices into them of the sizes to choose from, the smallest first. compatibility: of the chunks.
    """

    types: Numbers
    chunks: Numbers
    prices: Numbers
    costs: Numbers
    useful: Numbers
    compatibility: Compatibility
    _known: dict[int, Mix] = field(default_factory=dict)
    _mixes: Numbers = field(default_factory=lambda: np.empty((2, 0), dtype=np.int64))
    """By number of chunks, the price of the cheapest mix, and how many nodes it has."""

    def mix(self, count: int, kernel: Kernel) -> Mix:
        """The cheapest nodes for `count` chunks, fullest first; a choice is an index into `types`. Empty when there is no size.

        Exact up to a few times the largest size. Beyond that, most nodes have the size with the lowest price per chunk. Among equal
        prices fewer nodes win, then the first choice."""
        if count not in self._known:
            self._known[count] = self._chosen(count, kernel) if len(self.useful) else []
        return self._known[count]

    def _chosen(self, count: int, kernel: Kernel) -> Mix:
        times = np.empty(len(self.useful), dtype=np.int64)
        costs = self.mix_prices(count, kernel)
        kernel.mix_of(self.chunks, self.costs, self.useful, costs, self._mixes[1], count, times)
        mix, left = [], count
        for place in reversed(np.repeat(self.useful, times).tolist()):
            if left > 0:
                mix.append((place, min(int(self.chunks[place]), left)))
                left -= mix[-1][1]
        return mix

    def mix_prices(self, count: int, kernel: Kernel) -> Numbers:
        """The price of the mixes for 0, 1, … up to at least `count` chunks; PLENTY where there is none."""
        known = self._mixes.shape[1]
        if count >= known:
            self._mixes = np.empty((2, max(count + 1, 2 * known, _FEW)), dtype=np.int64)
            kernel.mix_costs(self.chunks, self.costs, self.useful, self._mixes[0], self._mixes[1])
        prices: Numbers = self._mixes[0]
        return prices


def mix_price(mix: Mix, prices: Numbers) -> int:
    return sum(int(prices[choice]) for choice, _ in mix)


def size_options_of(state: State, task: Task, relaxation: RelaxationStep, pools: tuple[int, ...]) -> SizeOptions:
    """The sizes a new node may have within the pools' limits, sorted by pool and type name."""
    cap = 1 if task.batch.needs.shape.host_ports else PLENTY
    cap = min(cap, most_on_empty(host_rules(state, task)))
    compatibility = state.compatibilities.get(task.batch.needs, relaxation, task.wheres[0])
    left = None
    if not state.limited.isdisjoint(pools):
        left = np.concatenate([state.running_limits.new_types(pool) for pool in pools])
    within = b"" if left is None or left.all() else left.tobytes()
    shape, request = task.batch.needs.shape, task.batch.needs.request
    key = ("sizes", compatibility.number, pools, request.tobytes(), cap, shape.host_ports, within)
    return state.once(key, lambda: _options_in(state, task.batch, compatibility, pools, cap=cap, left=left))


def _options_in(
    state: State, batch: Batch, compatibility: Compatibility, pools: tuple[int, ...], *, cap: int, left: Mask | None
) -> SizeOptions:
    """left: which types the limits leave; None for all."""
    types = state.templates.types_of(pools)
    pool_of, prices = state.templates.pool_of[types], compatibility.least_prices[types]
    chunks, found = np.empty((2, len(types)), dtype=np.int64)
    state.kernel.held(types, state.templates.room, prices, batch.needs.request, cap, chunks)
    if left is not None:
        chunks[~left] = 0
    for pool in pools:
        offers, own = state.offers[pool], pool_of == pool
        if ports_clash(batch.needs.shape.host_ports, offers.host_ports):
            chunks[own] = 0
        if offers.minimums:
            chunks[own] = np.minimum(chunks[own], _most_by_minimums(offers, compatibility.rows[pool], chunks[own]))
    costs = compatibility.costs[types]
    useful = found[state.kernel.useful(chunks, costs, found) :]
    return SizeOptions(types, chunks, prices, costs, useful, compatibility=compatibility)


def _most_by_minimums(offers: PoolOffers, rows: Mask, fits: Amounts) -> int:
    """The most chunks with which enough types (zones, …) for the pool's minValues can still hold them. rows: that may be bought."""
    for amount in sorted(set(fits[fits > 0].tolist()), reverse=True):
        if can_be_met(offers, rows & (fits >= amount)[offers.offerings.types_of]):
            return int(amount)
    return 0


def make_nodes(state: State, task: Task, count: int) -> int:
    """Places up to `count` chunks on planned nodes, made larger where needed, and on new ones where the task allows these. Returns how
    many."""
    placed = 0
    state.expect_work(count)
    for relaxation in task.batch.needs.relaxations:
        for number, pools in enumerate(state.weights):
            placed += _in_steps(state, task, relaxation, pools, count - placed, filling=not number)
            if placed == count or (task.single and placed):
                return placed
    return placed


def _in_steps(
    state: State, task: Task, relaxation: RelaxationStep, pools: tuple[int, ...], count: int, *, filling: bool
) -> int:
    """Step by step: each may raise the minimum over hosts, and then a spread constraint allows more on every host.

    filling: planned nodes of any pool may take chunks without being made larger."""
    placed = 0
    while placed < count and not (task.single and placed):
        left = count - placed
        step = fill_planned(state, task, relaxation, left) if filling or not task.bare else 0
        filling = False
        if not step and task.bare:
            options = size_options_of(state, task, relaxation, pools)
            mix = _single(options, left) if task.single else options.mix(left, state.kernel)
            price = mix_price(mix, options.costs) if mix else PLENTY
            step = enlarge(state, task, relaxation, pools, count=left, price=price) or _open(state, task, options, mix)
        elif not step:
            step = enlarge(state, task, relaxation, pools, count=left, price=PLENTY)
        placed += step
        if not step:
            break
    return placed


def _single(options: SizeOptions, count: int) -> Mix:
    """One node: of those that hold most chunks, the cheapest."""
    amounts = np.minimum(options.chunks, count)
    most = int(amounts.max(initial=0))
    if not most:
        return []
    best = np.flatnonzero(amounts == most)
    return [(int(best[options.prices[best].argmin()]), most)]


def _open(state: State, task: Task, options: SizeOptions, mix: Mix) -> int:
    """Makes the nodes of the mix until a limit stops it; returns how many chunks they hold."""
    placed = 0
    for place, amount in mix:
        instance_type = int(options.types[place])
        pool = int(state.templates.pool_of[instance_type])
        offers = state.offers[pool]
        capacity = offers.capacities[instance_type - state.templates.type_base[pool]]
        if state.limits.shortage(offers.pool.name, capacity) is not None:
            break
        template = empty_node(state, pool, options.compatibility)
        held = _add(state, task.batch, template, state.planned.count, amount, instance_type)
        placed += held
        if held < amount:
            break
    return placed


def empty_node(state: State, pool: int, compatibility: Compatibility) -> NodeTemplate:
    """The template of a new node of the pool within its limits, for chunks of this compatibility."""
    offers, rows, wanted = state.offers[pool], compatibility.rows[pool], compatibility.wanted
    is_limited = pool in state.limited
    if is_limited:
        rows = rows & state.running_limits.new_types(pool)[offers.offerings.types_of]

    def made() -> NodeTemplate:
        return state.templates.get(pool, rows, offers.own_labels(wanted), wanted, compatibility.own_taint)

    return made() if is_limited else state.once(("empty", pool, compatibility.number), made)


def enlarge(
    state: State, task: Task, relaxation: RelaxationStep, pools: tuple[int, ...], *, count: int, price: int
) -> int:
    """Makes one planned node larger if that costs no more per chunk than new nodes: `price` for all remaining chunks.

    It is the growth that costs least per chunk. Ties: the first node, then the type that takes most chunks. Returns how many it took.
    """
    planned, batch = state.planned, task.batch
    if not planned.count:
        return 0
    ways = _ways(state, task, relaxation, pools)
    limits = state.running_limits
    charged = limits.charges(map(state.charged, range(planned.count)) if state.minimums_within_limits else ())
    planned.least[:] = 0
    # The loop returns numpy integers when it is not compiled. They must not leave the arrays.
    index, chunks, instance_type = map(
        int,
        state.kernel.cheapest(
            *_arrays(state, task),
            limits.now(charged),
            ways,
            planned.count,
            count,
            (price / count) * (1 + ROUNDING) + ROUNDING,
        ),
    )
    if index < 0:
        return 0
    return _add(state, batch, _joined(state, ways, index), index, chunks, instance_type)


def _arrays(state: State, task: Task) -> tuple[NodeArrays, ChunkArrays, HostArrays]:
    """Planned nodes, chunks and what rules on the hostname allow, as the loops take them."""
    more, planned = NO_NUMBERS, state.planned
    if task.batch.needs.shape.host_ports:
        more = state.ports.most(task.batch, np.arange(state.base, state.base + planned.count))
    hosts = state.topology.hosts.table, state.base, host_rules(state, task), more
    return planned.arrays, task.batch.arrays, hosts


def _ways(state: State, task: Task, relaxation: RelaxationStep, pools: tuple[int, ...] = ()) -> WayArrays:
    """How the chunks may come to planned nodes in any of the task's domains, as the loops take it. pools: nodes of these may be made larger."""
    domains = [state.compatibilities.get(task.batch.needs, relaxation, where) for where in task.wheres]
    templates = len(state.templates.list)
    joins: Numbers = np.array([item.joined()[:templates] for item in domains], dtype=np.int64)
    in_pools: Flags = np.zeros(len(state.offers), dtype=np.bool_)
    in_pools[list(pools)] = True
    grows = in_pools[state.templates.spans[POOL, :templates]]
    return np.arange(len(domains), dtype=np.int64), joins, np.array([item.bought_as for item in domains]), grows


def _joined(state: State, ways: WayArrays, index: int) -> NodeTemplate:
    """The template of a planned node once the chunks are on it."""
    return state.templates.list[int(join_of(ways[0], ways[1], state.planned.template[index]))]


def settle(state: State) -> None:
    """Makes planned nodes as small as they can be: room that nobody came to is not bought."""
    planned = state.planned
    for number in planned.present:
        template, indices = state.templates.list[number], np.flatnonzero(planned.template[: planned.count] == number)
        positions = template.cheapest(planned.used[indices])
        for at in np.flatnonzero(positions != planned.position[indices]).tolist():
            index, position, chosen = int(indices[at]), int(positions[at]), template
            if template.pool in state.limited:
                chosen = growable(state, index, template)
                position = int(chosen.cheapest(planned.used[index][None, :])[0])
            state.settle(index, chosen, position)


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
    ways = _ways(state, task, relaxation)
    most_nodes = 1 if task.single else planned.count
    found = state.kernel.choose(*_arrays(state, task), ways, planned.count, count, most_nodes)
    placed = 0
    for index, wanted in planned.found[[NODES, COUNTS], :found].T.tolist():
        placed += _add(state, task.batch, _joined(state, ways, index), index, wanted)
    return placed


def _add(state: State, batch: Batch, template: NodeTemplate, index: int, amount: int, instance_type: int = KEPT) -> int:
    """Adds up to `amount` chunks to a planned node, or to the next new one, and returns how many.

    Where its pool has minValues, a node with more on it may have to list larger types, even if its cheapest stays the same."""
    if template.offers.minimums:
        if index < state.planned.count:
            template = growable(state, index, template)
        amount = most_with_minimums(state, template, index, batch, amount)
    if amount:
        state.add_planned(batch, template, index, amount, instance_type)
    return amount


def most_with_minimums(state: State, template: NodeTemplate, index: int, batch: Batch, amount: int) -> int:
    """The most chunks, up to `amount`, that a planned node or the next new one may take with enough types for its pool's minValues."""
    planned, request = state.planned, batch.needs.request
    while amount and template.offers.minimums:
        used = planned.used_with(batch, index, amount) if index < planned.count else request * amount
        if template.least(used) is not None:
            break
        amount -= 1
    return amount
