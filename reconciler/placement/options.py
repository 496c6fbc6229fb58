"""The sizes that a new node for some chunks may have. Used by make."""

from __future__ import annotations

import numpy as np

from reconciler.placement.amounts import PLENTY, times
from reconciler.placement.fill import meets_minimums
from reconciler.placement.host_caps import Task, allowed_on, host_bound
from reconciler.placement.label_table import Amounts, Mask
from reconciler.placement.meetings import Meeting
from reconciler.placement.shapes import Wish, ports_clash
from reconciler.placement.sizing import Options
from reconciler.placement.state import Asked, State


def options_of(state: State, task: Task, wish: Wish, pools: tuple[int, ...]) -> Options | None:
    """Sizes a new node may have, sorted by pool order and type name, those over the pool's limits left out; None for none."""
    cap = new_node_cap(state, task)
    if not cap:
        return None
    meeting = state.meetings.get(task.batch.needs, wish, task.where)
    ports = task.batch.needs.shape.host_ports
    key = (meeting.number, pools, task.batch.needs.request.tobytes(), cap, bool(ports))
    known = None if ports else state.options.get(key)
    if known is None:
        known = state.options[key] = _options_in(state, task, meeting, pools, cap=cap)
    return known if state.limited.isdisjoint(pools) else _within_limits(state, known, key)


def _options_in(state: State, task: Task, meeting: Meeting, pools: tuple[int, ...], *, cap: int) -> Options:
    """Without a look at the pools' limits, so that it holds for the whole placement."""
    found = Options(
        [], [], [], [], {pool: rows for pool in pools if (rows := meeting.rows(pool)) is not None}, meeting.wanted
    )
    for number, rows in found.rows.items():
        offers = state.offers[number]
        if ports_clash(task.batch.needs.shape.host_ports, offers.host_ports):
            continue
        prices = meeting.least_prices(number)
        fits = np.minimum(times(offers.room, task.batch.needs.request), cap)
        fits = np.minimum(fits, _most_by_minimums(state, number, rows, fits))
        kinds = np.flatnonzero((fits > 0) & (prices < PLENTY))
        found.pools.extend([number] * len(kinds))
        found.kinds.extend(kinds.tolist())
        found.chunks.extend(fits[kinds].tolist())
        found.prices.extend(prices[kinds].tolist())
    return found


def _within_limits(state: State, options: Options, key: Asked) -> Options:
    """The options that pools' limits leave at the moment; the same object for as long as they leave the same."""
    allowed = {pool: state.running_limits.new_types(pool) for pool in options.rows if pool in state.limited}
    if all(mask.all() for mask in allowed.values()):
        return options
    left = b"".join(mask.tobytes() for mask in allowed.values())
    if (key, left) not in state.limited_options:
        places = [
            place
            for place, (pool, kind) in enumerate(zip(options.pools, options.kinds, strict=True))
            if pool not in allowed or allowed[pool][kind]
        ]
        state.limited_options[key, left] = options.only(places)
    return state.limited_options[key, left]


def new_node_cap(state: State, task: Task) -> int:
    """The most chunks of the batch that rules allow on an empty node, whatever its size."""
    most = task.batch.most_on_new_node(task.per_node)
    cap = PLENTY if most is None else most
    if task.batch.needs.shape.host_ports:
        cap = min(cap, 1)
    for rule in task.course.on_hosts:
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
