"""The sizes that a new node for some chunks may have."""

from __future__ import annotations

import numpy as np

from reconciler.placement.amounts import PLENTY, Amounts, times
from reconciler.placement.constraints.min_values import can_be_met
from reconciler.placement.constraints.node_ports import ports_clash
from reconciler.placement.engine.host_caps import Task, rule_caps
from reconciler.placement.engine.state import Asked, State
from reconciler.placement.loops.arrays import Numbers
from reconciler.placement.needs import RelaxationStep
from reconciler.placement.offers.cheapest_sizes import SizeOptions
from reconciler.placement.offers.node_templates import Compatibility


def size_options_of(state: State, task: Task, relaxation: RelaxationStep, pools: tuple[int, ...]) -> SizeOptions:
    """The sizes a new node may have within the pools' limits, sorted by pool and type name."""
    cap = new_node_cap(state, task)
    compatibility = state.compatibilities.get(task.batch.needs, relaxation, task.where)
    ports = task.batch.needs.shape.host_ports
    key = (compatibility.number, pools, task.batch.needs.request.tobytes(), cap, bool(ports))
    known = None if ports else state.options.get(key)
    if known is None:
        known = state.options[key] = _options_in(state, task, compatibility, pools, cap=cap)
    return known if state.limited.isdisjoint(pools) else _within_limits(state, known, key, task.batch.needs.request)


def _options_in(
    state: State, task: Task, compatibility: Compatibility, pools: tuple[int, ...], *, cap: int
) -> SizeOptions:
    """The same, whatever the pools' limits, so that the answer can be kept for the whole placement."""
    types, request = state.templates.types_of(pools), task.batch.needs.request
    prices = compatibility.least_prices[types]
    chunks: Numbers = np.empty(len(types), dtype=np.int64)
    state.kernel.held(types, state.templates.room, prices, request, cap, chunks)
    for pool in pools:
        clash = ports_clash(task.batch.needs.shape.host_ports, state.offers[pool].host_ports)
        if clash or state.offers[pool].minimums:
            own = state.templates.pool_of[types] == pool
            most = 0 if clash else _most_by_minimums(state, pool, compatibility, request, chunks[own])
            chunks[own] = np.minimum(chunks[own], most)
    return _options(state, types, chunks, prices, compatibility=compatibility)


def _options(
    state: State, types: Numbers, chunks: Numbers, prices: Numbers, *, compatibility: Compatibility
) -> SizeOptions:
    found = np.empty(len(types), dtype=np.int64)
    useful = found[state.kernel.useful(chunks, prices, found) :]
    return SizeOptions(types, chunks, prices, useful, compatibility=compatibility)


def _within_limits(state: State, options: SizeOptions, key: Asked, request: Amounts) -> SizeOptions:
    """The options within the pools' limits at the moment. The same object is returned while these are the same."""
    allowed = [
        state.running_limits.new_types(pool) if pool in state.limited else state.every_type[pool] for pool in key[1]
    ]
    left = np.concatenate(allowed)
    if left.all():
        return options
    asked = (key, left.tobytes())
    if asked not in state.limited_options:
        chunks = np.where(left, options.chunks, 0)
        for pool in state.limited.intersection(key[1]):
            if state.offers[pool].minimums:
                own = state.templates.pool_of[options.types] == pool
                most = _most_by_minimums(state, pool, options.compatibility, request, chunks[own])
                chunks[own] = np.minimum(chunks[own], most)
        state.limited_options[asked] = _options(
            state, options.types, chunks, options.prices, compatibility=options.compatibility
        )
    return state.limited_options[asked]


def new_node_cap(state: State, task: Task) -> int:
    """The most chunks of the batch that the rules allow on an empty node of any size."""
    cap = PLENTY if state.per_node is None else state.per_node
    if task.batch.needs.shape.host_ports:
        cap = min(cap, 1)
    return min(cap, rule_caps(state, task).on_empty) if task.constraints.on_hosts else cap


def _most_by_minimums(state: State, number: int, compatibility: Compatibility, request: Amounts, fits: Amounts) -> int:
    """The most chunks with which enough types (zones, …) for the pool's minValues can still hold them."""
    offers, rows = state.offers[number], compatibility.rows(number)
    for amount in sorted(set(fits[fits > 0].tolist()), reverse=True):
        open_rows = rows & (fits >= amount)[offers.offerings.types_of]
        if can_be_met(offers, open_rows) and offers.has_choice(
            compatibility.wanted, times(offers.room, request) >= amount
        ):
            return int(amount)
    return 0
