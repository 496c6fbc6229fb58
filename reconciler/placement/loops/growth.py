"""The loops over sizes: of new nodes, and of planned ones that are made larger. One call fills, enlarges and adds nodes.

Like those of `planned_nodes.py`, they take tuples of arrays."""

from __future__ import annotations

import numpy as np

from reconciler.placement.loops.arrays import (
    COUNTS,
    END,
    KEPT,
    LEAST,
    MOST_WORTH,
    NEXT_NEW,
    NEXT_NOTE,
    NODES,
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
    ChunkArrays,
    HostArrays,
    LimitArrays,
    NodeArrays,
    Numbers,
    OptionArrays,
)
from reconciler.placement.loops.planned_nodes import add_found, cap_on, choose, fits_in, holds, is_within


def cheapest(  # noqa: C901, PLR0912 - as above
    nodes: NodeArrays,
    chunk: ChunkArrays,
    caps: HostArrays,
    limits: LimitArrays,
    joined: Numbers,
    planned: int,
    count: int,
    limit: float,
) -> tuple[int, int, int]:
    """(node, chunks, type) of the growth that costs least per chunk: its price, less what the room is worth that it adds. The node is
    -1 if none is below the limit. See `grow.py`.

    Nodes whose LEAST is too dear are skipped. With fewer chunks no growth costs less per chunk, so LEAST holds for later calls."""
    _, marks, loads, spans, line, room, _, discounts = nodes
    hosts, base, rules, more = caps
    capacities, spare, charged = limits
    by_type, all_counts = len(charged) == 0, chunk[2] == USED
    charges = capacities if by_type else charged
    template, instance_type, price = marks[TEMPLATE], marks[TYPE], marks[PRICE]
    bounds, used, taken, request = marks[LEAST], loads[USED], loads[chunk[2]], chunk[0]
    most_off = discounts.max() if len(discounts) > 0 else 0.0
    starts, ends, types, prices = spans[START], spans[END], line[TYPES], line[TYPE_PRICES]
    best, best_each, best_chunks, best_type = -1, limit, 0, -1
    for node in range(planned):
        if bounds[node] >= best_each:
            continue
        bounds[node] = PLENTY
        after = joined[template[node]]
        if after < 0:
            continue
        end, before = ends[after], price[node]
        net_before = net(before, discounts[instance_type[node]])
        low = starts[after]
        while low < end and prices[low] < before:
            low += 1
        cap = min(count, cap_on(hosts, base + node, rules))
        if len(more) > 0:
            cap = min(cap, more[node])
        if low == end or cap <= 0:
            continue
        node_each, node_chunks, node_type = np.inf, 0, -1
        for at in range(low, end):
            if after == template[node] and types[at] == instance_type[node]:
                continue
            growth = max(0.0, net(prices[at], most_off) - net_before)
            if growth >= best_each * cap or growth > node_each * cap * (1 + ROUNDING):
                bounds[node] = int(growth / cap)
                break
            growth = max(0.0, net(prices[at], discounts[types[at]]) - net_before)
            amount = fits_in(room, types[at], taken, node, request, cap)
            if amount <= 0 or not (all_counts or holds(room, types[at], used, node)):
                continue
            charge = instance_type[node] if by_type else node
            if not is_within(capacities, spare, spans[POOL, after], types[at], charges, charge):
                continue
            each = growth / amount
            if each < node_each or (each == node_each and amount > node_chunks):
                node_each, node_chunks, node_type = each, amount, types[at]
        if node_chunks > 0:
            bounds[node] = min(bounds[node], int(node_each))
        if node_each < best_each:
            best, best_each, best_chunks, best_type = node, node_each, node_chunks, node_type
    return best, best_chunks, best_type


def net(price: int, discount: float) -> float:
    return max(price - discount, price * (1 - MOST_WORTH))


def serve(
    nodes: NodeArrays,
    chunk: ChunkArrays,
    caps: HostArrays,
    limits: LimitArrays,
    options: OptionArrays,
    planned: int,
    count: int,
) -> tuple[int, int, int]:
    """Places up to `count` chunks in three ways, one after the other.

    First on planned nodes as they are. Then planned nodes are made larger one by one, as long as that costs no more than new nodes
    for all remaining chunks. Last on one new node, if its template is known.

    Returns how many nodes were filled, how many took chunks in all (none counted twice), and what comes next (NEXT_NEW, …).
    """
    found, marks = nodes[0], nodes[1]
    joined, growing, bought_as, prices, new = options
    number = 0
    if len(joined) > 0:
        number = choose(nodes, chunk, caps, joined, bought_as, planned, count, planned)
    filled = number
    for index in range(filled):
        node, chunks = found[NODES, index], found[COUNTS, index]
        add_found(nodes, chunk, index, node, chunks, joined[marks[TEMPLATE, node]], KEPT)
        count -= chunks
    marks[LEAST, :planned] = 0
    while count > 0:
        limit = (prices[count] / count) * (1 + ROUNDING) + ROUNDING
        node, chunks, instance_type = cheapest(nodes, chunk, caps, limits, growing, planned, count, limit)
        if node < 0:
            break
        for index in range(number):
            if found[NODES, index] == node:
                return filled, number, NEXT_NOTE
        add_found(nodes, chunk, number, node, chunks, growing[marks[TEMPLATE, node]], instance_type)
        number += 1
        count -= chunks
        if len(caps[3]) > 0 or limits[0].shape[1] > 0:
            return filled, number, NEXT_NOTE
    if count > 0 and new[0, count] >= 0:
        add_found(nodes, chunk, number, planned, count, new[0, count], new[1, count])
        number += 1
    return filled, number, NEXT_NEW


def held(types: Numbers, room: Numbers, prices: Numbers, request: Numbers, cap: int, chunks: Numbers) -> None:
    """Writes how many chunks, up to `cap`, an empty node of each of these types holds; 0 for types that are not available."""
    for place in range(len(types)):
        chunks[place] = 0
        if prices[place] < PLENTY:
            amount = cap
            for column in range(len(request)):
                if request[column] > 0:
                    amount = min(amount, room[types[place], column] // request[column])
            chunks[place] = max(0, amount)


def useful(chunks: Numbers, prices: Numbers, found: Numbers) -> int:
    """Writes to the end of `found` the positions of useful sizes: they hold something, and no other holds as much for less.

    The smallest size comes first. Returns where they begin.
    """
    first, most = len(found), PLENTY
    while True:
        best, largest = -1, 0
        for place in range(len(chunks)):
            if prices[place] >= most or chunks[place] <= 0 or chunks[place] < largest:
                continue
            if chunks[place] > largest or prices[place] < prices[best]:
                best, largest = place, chunks[place]
        if best < 0:
            return first
        first -= 1
        found[first], most = best, prices[best]


def mix_costs(chunks: Numbers, prices: Numbers, useful: Numbers, costs: Numbers, nodes: Numbers) -> None:
    """Writes price and number of nodes of the cheapest mix for 0, 1, … chunks. useful: positions, smallest size first."""
    best, largest = -1, 0
    for place in useful:
        if best < 0 or prices[place] / chunks[place] <= prices[best] / chunks[best]:
            best = place
        largest = chunks[place]
    costs[0], nodes[0] = 0, 0
    for count in range(1, len(costs)):
        costs[count], nodes[count] = PLENTY, 0
        if best >= 0 and count - 2 * largest >= chunks[best]:
            costs[count], nodes[count] = costs[count - chunks[best]] + prices[best], nodes[count - chunks[best]] + 1
            continue
        for place in useful:
            rest = max(0, count - chunks[place])
            cost, number = costs[rest] + prices[place], nodes[rest] + 1
            if cost < costs[count] or (cost == costs[count] and number < nodes[count]):
                costs[count], nodes[count] = cost, number
