"""New nodes for chunks that found no room, and larger sizes for nodes already planned. Used by pack.

The heaviest NodePool that can take a chunk wins; among equals the cheapest mix of sizes for all that is left, then the
pool's name, then the type's. A planned node is made larger when that costs no more than another node would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from reconciler.placement.amounts import PLENTY, times
from reconciler.placement.candidates import NoRows
from reconciler.placement.fill import (
    Meeting,
    Task,
    allowed_on,
    fill_planned,
    host_bound,
    largest_left,
    meets_minimums,
    most_with_minimums,
)
from reconciler.placement.label_table import Amounts, Mask
from reconciler.placement.requirements import Requirements
from reconciler.placement.shapes import Wish, ports_clash, tolerated
from reconciler.placement.sizing import Size, cheapest_mix, mix_price
from reconciler.placement.state import PlannedBin, State
from reconciler.placement.topology import Rule

_ROUNDING = 1e-9
"""Prices a chunk are fractions; those that differ by less count as equal."""


@dataclass(frozen=True, slots=True)
class Option:
    """One type of one pool that new nodes can be made of: the chunks it holds and its cheapest offering; rows: what a node
    that meets `wanted` can be bought as."""

    pool: int
    kind: int
    chunks: int
    price: int
    rows: Mask
    wanted: Requirements


def make_nodes(state: State, task: Task, count: int) -> int:
    """Places up to `count` chunks on planned and new nodes; returns how many."""
    placed = 0
    for wish in task.batch.needs.wishes:
        placed += fill_planned(state, task, wish, count - placed)
        for pools in by_weight(state):
            if placed == count or (task.single and placed):
                return placed
            placed += _from_pools(state, task, wish, pools, count - placed)
    return placed


def by_weight(state: State) -> list[list[int]]:
    """Numbers of pools, those of equal weight together, heaviest first and then by name."""
    order = sorted(range(len(state.offers)), key=lambda number: _weight_order(state, number))
    return [list(group) for _, group in groupby(order, key=lambda number: -state.offers[number].pool.weight)]


def _weight_order(state: State, number: int) -> tuple[int, str]:
    pool = state.offers[number].pool
    return (-pool.weight, pool.name)


def _from_pools(state: State, task: Task, wish: Wish, pools: Sequence[int], count: int) -> int:
    placed = 0
    while placed < count:
        options = options_of(state, task, wish, pools)
        mix = _mix(options, count - placed, single=task.single)
        price = mix_price(mix, [option.price for option in options]) if mix else PLENTY
        step = _enlarge(state, task, wish, frozenset(pools), count=count - placed, price=price)
        step = step or _open(state, task, options, mix)
        placed += step
        if not step or task.single:
            break
    return placed


def _mix(options: Sequence[Option], count: int, *, single: bool) -> list[tuple[int, int]]:
    if not single:
        return cheapest_mix(count, [Size(option.chunks, option.price, number) for number, option in enumerate(options)])
    most = max((min(option.chunks, count) for option in options), default=0)
    best = [
        (option.price, number) for number, option in enumerate(options) if most and min(option.chunks, count) == most
    ]
    return [(min(best)[1], most)] if best else []


def options_of(state: State, task: Task, wish: Wish, pools: Sequence[int]) -> list[Option]:
    """Sizes a new node may have, sorted by pool order and type name; those over the pool's limits left out."""
    wanted = wish.wanted.both(task.where)
    cap = new_node_cap(state, task)
    options: list[Option] = []
    for number in pools if cap else ():
        offers = state.offers[number]
        shape = task.batch.needs.shape
        rows = offers.rows_for(wanted)
        if isinstance(rows, NoRows) or not rows.any():
            continue
        if not tolerated(offers.taints, shape.tolerations, soft_taints=wish.soft_taints):
            continue
        if ports_clash(shape.host_ports, offers.host_ports):
            continue
        fits = np.minimum(times(offers.room, task.batch.needs.request), cap)
        fits = np.minimum(fits, _most_by_minimums(state, number, rows, fits))
        options += _options(state, number, rows, fits, wanted=wanted)
    return options


def _options(state: State, number: int, rows: Mask, fits: Amounts, *, wanted: Requirements) -> list[Option]:
    offers = state.offers[number]
    prices = np.full(len(fits), PLENTY, dtype=np.int64)
    np.minimum.at(prices, offers.offerings.types_of[rows], offers.prices[rows])
    limited = state.limits.is_limited(offers.pool.name)
    return [
        Option(number, kind, int(fits[kind]), int(prices[kind]), rows, wanted)
        for kind in np.flatnonzero((fits > 0) & (prices < PLENTY)).tolist()
        if not limited or state.limits.shortage(offers.pool.name, offers.capacities[kind]) is None
    ]


def new_node_cap(state: State, task: Task) -> int:
    """The most chunks of the batch that rules allow on an empty node, whatever its size."""
    cap = PLENTY if task.per_node is None else task.per_node
    if task.batch.needs.shape.host_ports:
        cap = min(cap, 1)
    for rule in task.host_rules:
        cap = min(cap, allowed_on(rule, 0, host_bound(state, rule, bare=True), task.single))
    return cap


def _most_by_minimums(state: State, number: int, rows: Mask, fits: Amounts) -> int:
    """With minValues, the most chunks on a node that leave enough types (zones, …) open."""
    offers = state.offers[number]
    if not offers.minimums:
        return PLENTY
    for amount in sorted(set(fits[fits > 0].tolist()), reverse=True):
        open_rows = rows & (fits >= amount)[offers.offerings.types_of]
        if meets_minimums(state, number, open_rows):
            return int(amount)
    return 0


def _open(state: State, task: Task, options: Sequence[Option], mix: Sequence[tuple[int, int]]) -> int:
    """Makes the nodes of the mix until a limit stops it; returns how many chunks they hold."""
    placed = 0
    for number, amount in mix:
        option = options[number]
        offers = state.offers[option.pool]
        capacity = offers.capacities[option.kind]
        if state.limits.shortage(offers.pool.name, capacity) is not None:
            break
        state.put_planned(task.batch, len(state.planned), _empty_node(state, option), amount)
        made = state.planned[-1]
        state.limits.charge(offers.pool.name, offers.capacities[offers.offerings.types_of[made.primary]])
        placed += amount
    return placed


def _empty_node(state: State, option: Option) -> PlannedBin:
    offers = state.offers[option.pool]
    nothing = np.zeros(len(state.columns.names), dtype=np.int64)
    return PlannedBin(
        pool=option.pool,
        rows=option.rows & allowed_types(state, option.pool)[offers.offerings.types_of],
        own=offers.own_labels(option.wanted),
        wanted=option.wanted,
        empty=nothing,
        minimum=nothing,
        running=nothing,
        ports=offers.host_ports,
        primary=-1,
    )


def allowed_types(state: State, pool: int) -> Mask:
    """Types of which one more node would stay inside the pool's limits."""
    offers = state.offers[pool]
    if not state.limits.is_limited(offers.pool.name):
        return np.ones(len(offers.capacities), dtype=np.bool_)
    fits = [state.limits.shortage(offers.pool.name, capacity) is None for capacity in offers.capacities]
    return np.array(fits, dtype=np.bool_)


def _enlarge(state: State, task: Task, wish: Wish, pools: frozenset[int], *, count: int, price: int) -> int:
    """Makes one planned node larger if that is no dearer than `price` for all that is left, chunk for chunk."""
    best: tuple[float, int, int, PlannedBin] | None = None
    meeting = Meeting(state, task, wish)
    bounds = [(rule, host_bound(state, rule, bare=task.bare)) for rule in task.host_rules]
    for index, planned in enumerate(state.planned):
        cap = _cap_on(state, task, index, bounds) if planned.pool in pools and meeting.admits(planned) else 0
        if not cap:
            continue
        larger = _growable(state, meeting.join(planned))
        fits = np.minimum(largest_left(state, larger, task.batch), min(cap, count))
        found = _cheapest_growth(state, larger, fits) if fits.any() else None
        if found is not None and (best is None or (found[0], index) < best[:2]):
            best = (found[0], index, found[1], larger)
    if best is None or best[0] * count > price * (1 + _ROUNDING):
        return 0
    _, index, amount, larger = best
    amount = most_with_minimums(state, larger, task.batch, amount)
    if amount:
        _grow(state, task, index, larger, amount)
    return amount


def _growable(state: State, planned: PlannedBin) -> PlannedBin:
    """Without the types that would break the pool's limits in place of the present one."""
    offers = state.offers[planned.pool]
    if not state.limits.is_limited(offers.pool.name):
        return planned
    held = offers.capacities[offers.offerings.types_of[planned.primary]]
    fits = [state.limits.shortage(offers.pool.name, capacity, held, nodes=0) is None for capacity in offers.capacities]
    return replace(planned, rows=planned.rows & np.array(fits, dtype=np.bool_)[offers.offerings.types_of])


def _cap_on(state: State, task: Task, index: int, bounds: Sequence[tuple[Rule, int]]) -> int:
    number = len(state.bins) + index
    cap = PLENTY
    if task.per_node is not None:
        cap = max(0, task.per_node - state.demand_counts.get((number, task.batch.demand), 0))
    ports = task.batch.needs.shape.host_ports
    if ports:
        cap = min(cap, 0 if ports_clash(ports, state.ports_of(number)) else 1)
    for rule, bound in bounds:
        counted = state.topology.counters[rule.counter].count(number)
        cap = min(cap, allowed_on(rule, counted, bound, task.single))
    return cap


def _cheapest_growth(state: State, narrow: PlannedBin, fits: Amounts) -> tuple[float, int] | None:
    """(price a chunk in billionths of a USD, chunks) of the best type to grow into."""
    offers = state.offers[narrow.pool]
    prices = np.full(len(fits), PLENTY, dtype=np.int64)
    np.minimum.at(prices, offers.offerings.types_of[narrow.rows], offers.prices[narrow.rows])
    before = int(offers.prices[narrow.primary])
    kinds = np.flatnonzero((fits > 0) & (prices < PLENTY)).tolist()
    found = [(max(0, int(prices[kind]) - before) / int(fits[kind]), -int(fits[kind])) for kind in kinds]
    each, chunks = min(found, default=(0.0, 0))
    return (each, -chunks) if chunks else None


def _grow(state: State, task: Task, index: int, narrow: PlannedBin, amount: int) -> None:
    """The pool is charged for the larger type instead of the one before."""
    offers = state.offers[narrow.pool]
    before = offers.offerings.types_of[narrow.primary]
    state.put_planned(task.batch, index, narrow, amount)
    after = offers.offerings.types_of[state.planned[index].primary]
    state.limits.charge(offers.pool.name, offers.capacities[after], offers.capacities[before], nodes=0)
