"""The loops that make planned nodes larger, and that fill, enlarge and add nodes in one call. Arguments as in `loops.py`."""

from __future__ import annotations

import numpy as np

from reconciler.placement.engine.arrays import (
    COUNTS,
    END,
    LEAST,
    NEXT_LIMITED,
    NEXT_NEW,
    NEXT_NOTE,
    NODES,
    PLACE,
    PLENTY,
    POOL,
    PRICE,
    ROUNDING,
    START,
    TEMPLATE,
    TYPE,
    TYPE_PRICES,
    TYPES,
    USED,
    Flags,
    Numbers,
)
from reconciler.placement.engine.loops import cap_on, choose, fits_in, holds, is_within, put_found, take_back


def cheapest(  # noqa: C901, PLR0912, PLR0917 - as above
    marks: Numbers,
    loads: Numbers,
    spans: Numbers,
    line: Numbers,
    room: Numbers,
    joined: Numbers,
    request: Numbers,
    counted: int,
    hosts: Numbers,
    base: int,
    rules: Numbers,
    more: Numbers,
    capacities: Numbers,
    spare: Numbers,
    charged: Numbers,
    planned: int,
    count: int,
    limit: float,
) -> tuple[int, int]:
    """(node, chunks) of the growth that costs least a chunk, the node -1 for none below the limit; see grow.

    charged: what each node counts against its pool's limits, by limited resource; empty where that is its type's capacity.
    Nodes whose LEAST is too dear are passed over. For fewer chunks no growth costs less a chunk, so that it holds for the next call."""
    template, place, instance_type, price = marks[TEMPLATE], marks[PLACE], marks[TYPE], marks[PRICE]
    bounds, used, taken = marks[LEAST], loads[USED], loads[counted]
    starts, ends, types, prices = spans[START], spans[END], line[TYPES], line[TYPE_PRICES]
    best, best_each, best_chunks = -1, limit, 0
    for node in range(planned):
        if bounds[node] >= best_each:
            continue
        bounds[node] = PLENTY
        after = joined[template[node]]
        if after < 0:
            continue
        end, before = ends[after], price[node]
        if after == template[node]:
            low = starts[after] + place[node]
            while low > starts[after] and prices[low - 1] == before:
                low -= 1
            if types[low] == instance_type[node]:
                low += 1  # as it is it takes no more
        else:
            low = no_cheaper(prices, starts[after], end, before)
        cap = min(count, cap_on(hosts, base + node, rules))
        if len(more) > 0:
            cap = min(cap, more[node])
        if low == end or cap <= 0:
            continue
        node_each, node_chunks = np.inf, 0
        for at in range(low, end):
            growth = prices[at] - before
            if growth >= best_each * cap or growth > node_each * cap * (1 + ROUNDING):
                bounds[node] = int(growth / cap)
                break
            amount = fits_in(room, types[at], taken, node, request, cap)
            if amount <= 0 or not holds(room, types[at], used, node):
                continue
            if len(charged) > 0:
                if not is_within(capacities, spare, spans[POOL, after], types[at], charged, node):
                    continue
            elif not is_within(capacities, spare, spans[POOL, after], types[at], capacities, instance_type[node]):
                continue
            each = growth / amount
            if each < node_each or (each == node_each and amount > node_chunks):
                node_each, node_chunks = each, amount
        if node_chunks > 0:
            bounds[node] = min(bounds[node], int(node_each))
        if node_each < best_each:
            best, best_each, best_chunks = node, node_each, node_chunks
    return best, best_chunks


def no_cheaper(prices: Numbers, low: int, high: int, price: int) -> int:
    """The first place from `low` on that costs as much or more; `high` where there is none. Prices rise."""
    while low < high:
        middle = (low + high) // 2
        if prices[middle] < price:
            low = middle + 1
        else:
            high = middle
    return low


def serve(  # noqa: PLR0917 - as above
    found: Numbers,
    marks: Numbers,
    loads: Numbers,
    spans: Numbers,
    line: Numbers,
    room: Numbers,
    joined: Numbers,
    growing: Numbers,
    bought_as: Flags,
    request: Numbers,
    part: int,
    counted: int,
    hosts: Numbers,
    base: int,
    rules: Numbers,
    more: Numbers,
    capacities: Numbers,
    spare: Numbers,
    planned: int,
    count: int,
    prices: Numbers,
    new: Numbers,
) -> tuple[int, int, int]:
    """Places up to `count` chunks in three ways, one after the other.

    On planned nodes as they are. Then on one after another that is made larger, as long as that is no dearer than new nodes for all
    that is left. Then on one new node, where it is known what to make.

    joined: empty where no node is to be filled as it is. growing: `joined`, less what must not grow.
    prices: of new nodes, by number of chunks. new: the node template of the one that takes them all, likewise (-1: not known).

    Returns how many nodes were filled, how many took chunks in all, no node twice, and what is next (NEXT_NEW and its like).
    """
    number = 0
    if len(joined) > 0:
        number = choose(
            *(found, marks, loads, room, joined, bought_as, request, counted, hosts, base, rules, more, planned, count),
            False,
        )
    filled = number
    for position in range(filled):
        node, chunks = found[NODES, position], found[COUNTS, position]
        put_found(
            found,
            position,
            node,
            chunks,
            joined[marks[TEMPLATE, node]],
            request,
            part,
            marks,
            loads,
            spans,
            line,
            room,
        )
        count -= chunks
    marks[LEAST, :planned] = 0
    while count > 0:
        limit = (prices[count] / count) * (1 + ROUNDING) + ROUNDING
        node, chunks = cheapest(
            *(marks, loads, spans, line, room, growing, request, counted, hosts, base, rules, more),
            *(capacities, spare, capacities[:0], planned, count, limit),
        )
        if node < 0:
            break
        for position in range(number):
            if found[NODES, position] == node:
                return filled, number, NEXT_NOTE
        before, place, instance_type = marks[TEMPLATE, node], marks[PLACE, node], marks[TYPE, node]
        after = growing[before]
        put_found(found, number, node, chunks, after, request, part, marks, loads, spans, line, room)
        if not is_within(capacities, spare, spans[POOL, after], marks[TYPE, node], capacities, instance_type):
            take_back(node, chunks, before, place, request, part, marks, loads, spans, line, room)
            return filled, number, NEXT_LIMITED
        number += 1
        count -= chunks
        if len(more) > 0 or capacities.shape[1] > 0:
            return filled, number, NEXT_NOTE
    if count > 0 and new[count] >= 0:
        put_found(found, number, planned, count, new[count], request, part, marks, loads, spans, line, room)
        number += 1
    return filled, number, NEXT_NEW
