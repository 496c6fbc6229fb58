"""The loops over planned nodes that most time goes to, written so that they can be compiled. Used by kernel.

fill, enlarge and planned have the same in numpy, and a test holds both to the same answers. They are all in this file, since
numba's cache looks at no other when it asks whether what it compiled is still good. Arguments mean the same in all of them:

- of planned nodes, one entry each: blueprint, place, kind (the type, numbered through all pools), row, price, used, lean;
  empty, minimum, running: the parts of what is on them; taken: what of it counts here
- of blueprints, in one line: starts, ends, types, type_rows, type_prices; room: by type
- of a meeting: joined (the blueprint after chunks came, by the one before; -1: they may not come), bought_as
- of rules on the hostname: hosts (counts), base (the column of the first planned node), rows, kinds, bounds; more: caps of
  other kinds, empty for none
- to write to: nodes, counts: what came where; was: blueprint and place of those before; fits: a number for each node
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

SPREAD_ITSELF, SPREAD_OTHERS, APART_ITSELF, APART_OTHERS, TOGETHER = range(5)
"""Kinds of rules on the hostname, as numbers."""
EMPTY, MINIMUM, RUNNING = range(3)
"""Parts of what is on a node, as numbers: KeepEmpty chunks, KeepMinimum chunks and pending pods."""
ROUNDING = 1e-9
"""Prices a chunk are fractions; those that differ by less count as equal."""

PLENTY = 2**62
Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]


def cap_on(hosts: Numbers, column: int, rows: Numbers, kinds: Numbers, bounds: Numbers) -> int:
    """As `HostCaps.on`, for one bin."""
    cap = PLENTY
    for rule in range(len(rows)):
        counted = hosts[rows[rule], column]
        kind, bound = kinds[rule], bounds[rule]
        if kind == SPREAD_ITSELF:
            allowed = max(0, bound - counted)
        elif kind == SPREAD_OTHERS:
            allowed = PLENTY if counted <= bound else 0
        elif kind == TOGETHER:
            allowed = PLENTY if counted > 0 else 0
        else:
            allowed = 0 if counted > 0 else 1 if kind == APART_ITSELF else PLENTY
        cap = min(cap, allowed)
    return cap


def fits_in(room: Numbers, taken: Numbers, request: Numbers, most: int) -> int:
    """As `times`, up to `most`; division only where it is called for."""
    for column in range(len(request)):
        if request[column] > 0:
            free = room[column] - taken[column]
            if free < request[column]:
                return 0
            if most > 1:
                most = min(most, free // request[column])
    return most


def put_one(  # noqa: PLR0917 - plain arrays, for the compiler
    node: int,
    count: int,
    number: int,
    start: int,
    request: Numbers,
    part: int,
    empty: Numbers,
    minimum: Numbers,
    running: Numbers,
    used: Numbers,
    lean: Numbers,
    blueprint: Numbers,
    place: Numbers,
    kind: Numbers,
    row: Numbers,
    price: Numbers,
    types: Numbers,
    type_rows: Numbers,
    type_prices: Numbers,
    room: Numbers,
) -> None:
    """As `PlannedNodes._put`, for one node, which is of blueprint `number` from now on."""
    for column in range(len(request)):
        amount = request[column] * count
        if part == EMPTY:
            empty[node, column] += amount
        elif part == MINIMUM:
            minimum[node, column] += amount
        else:
            running[node, column] += amount
        lean[node, column] = empty[node, column] + minimum[node, column]
        used[node, column] = empty[node, column] + max(running[node, column], minimum[node, column])
    stays = blueprint[node] == number
    at = start + place[node] if stays else start
    while True:  # the first that holds it; if it does not fit where it is, from the start
        if holds(room[types[at]], used[node]):
            break
        if stays:
            stays = False
            at = start
        else:
            at += 1
    blueprint[node], place[node] = number, at - start
    kind[node], row[node], price[node] = types[at], type_rows[at], type_prices[at]


def put(  # noqa: PLR0917 - as above
    nodes: Numbers,
    counts: Numbers,
    was: Numbers,
    number: int,
    start: int,
    request: Numbers,
    part: int,
    empty: Numbers,
    minimum: Numbers,
    running: Numbers,
    used: Numbers,
    lean: Numbers,
    blueprint: Numbers,
    place: Numbers,
    kind: Numbers,
    row: Numbers,
    price: Numbers,
    types: Numbers,
    type_rows: Numbers,
    type_prices: Numbers,
    room: Numbers,
) -> None:
    """As `PlannedNodes._put`: all of these nodes are of blueprint `number` from now on."""
    for position in range(len(nodes)):
        node = nodes[position]
        was[0, position], was[1, position] = blueprint[node], place[node]
        put_one(
            *(node, counts[position], number, start, request, part, empty, minimum, running, used, lean),
            *(blueprint, place, kind, row, price, types, type_rows, type_prices, room),
        )


def holds(size: Numbers, used: Numbers) -> bool:
    for column in range(len(size)):  # noqa: SIM110 - generators are slow once compiled
        if size[column] < used[column]:
            return False
    return True


def choose(  # noqa: C901, PLR0912, PLR0917 - one loop over plain arrays, for the compiler
    fits: Numbers,
    nodes: Numbers,
    counts: Numbers,
    blueprint: Numbers,
    joined: Numbers,
    row: Numbers,
    bought_as: Flags,
    kind: Numbers,
    room: Numbers,
    taken: Numbers,
    request: Numbers,
    hosts: Numbers,
    base: int,
    rows: Numbers,
    kinds: Numbers,
    bounds: Numbers,
    more: Numbers,
    planned: int,
    count: int,
) -> int:
    """Nodes that take chunks as they are, as `choose_planned` has it: the one that takes all that is left and fewest beyond,
    else the one that takes most; the first of equals. Returns how many."""
    best, least = -1, PLENTY
    for node in range(planned):
        fits[node] = 0
        if joined[blueprint[node]] < 0 or not bought_as[row[node]]:
            continue
        uncapped = count == 1 and len(rows) == 0 and len(more) == 0
        amount = fits_in(room[kind[node]], taken[node], request, least if uncapped else PLENTY)
        if amount <= 0 or (uncapped and amount >= least):
            continue
        amount = min(amount, cap_on(hosts, base + node, rows, kinds, bounds))
        if len(more) > 0:
            amount = min(amount, more[node])
        if amount <= 0:
            continue
        fits[node] = amount
        if amount < least:
            best, least = node, amount
            if count == 1 and amount == 1:
                break
    if count == 1:
        if best < 0:
            return 0
        nodes[0], counts[0] = best, 1
        return 1
    found = 0
    while count > 0:
        best, least, largest, most = -1, PLENTY, -1, 0
        for node in range(planned):
            amount = fits[node]
            if count <= amount < least:
                best, least = node, amount
            if amount > most:
                largest, most = node, amount
        if best >= 0:
            largest, most = best, count
        if largest < 0:
            break
        nodes[found], counts[found] = largest, most
        fits[largest] = 0
        found += 1
        count -= most
    return found


def fill(  # noqa: PLR0917 - as above
    fits: Numbers,
    nodes: Numbers,
    counts: Numbers,
    was: Numbers,
    joined: Numbers,
    bought_as: Flags,
    taken: Numbers,
    hosts: Numbers,
    base: int,
    rows: Numbers,
    kinds: Numbers,
    bounds: Numbers,
    more: Numbers,
    planned: int,
    count: int,
    starts: Numbers,
    request: Numbers,
    part: int,
    empty: Numbers,
    minimum: Numbers,
    running: Numbers,
    used: Numbers,
    lean: Numbers,
    blueprint: Numbers,
    place: Numbers,
    kind: Numbers,
    row: Numbers,
    price: Numbers,
    types: Numbers,
    type_rows: Numbers,
    type_prices: Numbers,
    room: Numbers,
) -> int:
    """Chooses nodes that take chunks as they are and puts them there; returns how many nodes."""
    found = choose(
        *(fits, nodes, counts, blueprint, joined, row, bought_as, kind, room, taken, request),
        *(hosts, base, rows, kinds, bounds, more, planned, count),
    )
    for position in range(found):
        node = nodes[position]
        was[0, position], was[1, position] = blueprint[node], place[node]
        number = joined[blueprint[node]]
        put_one(
            *(node, counts[position], number, starts[number], request, part, empty, minimum, running, used, lean),
            *(blueprint, place, kind, row, price, types, type_rows, type_prices, room),
        )
    return found


def cheapest(  # noqa: C901, PLR0912, PLR0917 - as above
    blueprint: Numbers,
    joined: Numbers,
    place: Numbers,
    kind: Numbers,
    price: Numbers,
    starts: Numbers,
    ends: Numbers,
    types: Numbers,
    type_prices: Numbers,
    room: Numbers,
    taken: Numbers,
    used: Numbers,
    request: Numbers,
    hosts: Numbers,
    base: int,
    rows: Numbers,
    kinds: Numbers,
    bounds: Numbers,
    more: Numbers,
    planned: int,
    count: int,
    limit: float,
) -> tuple[int, int]:
    """(node, chunks) of the growth that costs least a chunk, the node -1 for none below the limit; see enlarge."""
    best, best_each, best_chunks = -1, limit, 0
    for node in range(planned):
        after = joined[blueprint[node]]
        if after < 0:
            continue
        low, high, before = starts[after], ends[after], price[node]
        if after == blueprint[node]:
            low = high = low + place[node]
            while low > starts[after] and type_prices[low - 1] == before:
                low = high = low - 1
            if types[low] == kind[node]:
                low = high = low + 1  # as it is it takes no more
        while low < high:  # the first type that is no cheaper than the present one
            middle = (low + high) // 2
            if type_prices[middle] < before:
                low = middle + 1
            else:
                high = middle
        if low == ends[after] or (type_prices[low] - before) / count >= best_each:
            continue
        cap = min(count, cap_on(hosts, base + node, rows, kinds, bounds))
        if len(more) > 0:
            cap = min(cap, more[node])
        if cap <= 0:
            continue
        node_each, node_chunks = np.inf, 0
        for at in range(low, ends[after]):
            growth = type_prices[at] - before
            lowest = growth / cap
            if lowest >= best_each or lowest > node_each:
                break
            size = room[types[at]]
            if not holds(size, used[node]):
                continue
            chunks = fits_in(size, taken[node], request, cap)
            if chunks <= 0:
                continue
            each = growth / chunks
            if each < node_each or (each == node_each and chunks > node_chunks):
                node_each, node_chunks = each, chunks
        if node_each < best_each:
            best, best_each, best_chunks = node, node_each, node_chunks
    return best, best_chunks


def grow(  # noqa: PLR0917 - as above
    nodes: Numbers,
    counts: Numbers,
    was: Numbers,
    prices: Numbers,
    joined: Numbers,
    taken: Numbers,
    hosts: Numbers,
    base: int,
    rows: Numbers,
    kinds: Numbers,
    bounds: Numbers,
    more: Numbers,
    planned: int,
    count: int,
    starts: Numbers,
    ends: Numbers,
    request: Numbers,
    part: int,
    empty: Numbers,
    minimum: Numbers,
    running: Numbers,
    used: Numbers,
    lean: Numbers,
    blueprint: Numbers,
    place: Numbers,
    kind: Numbers,
    row: Numbers,
    price: Numbers,
    types: Numbers,
    type_rows: Numbers,
    type_prices: Numbers,
    room: Numbers,
) -> tuple[int, bool]:
    """Makes one node after another larger, as long as that is no dearer than the price of new ones for all that is left.

    prices: of new nodes, by number of chunks. Returns how many nodes grew, no node twice, and whether it ended since one
    that grew may grow again: what counts on it must be noted first."""
    found = 0
    while count > 0:
        limit = (prices[count] / count) * (1 + ROUNDING) + ROUNDING
        node, chunks = cheapest(
            *(blueprint, joined, place, kind, price, starts, ends, types, type_prices, room, taken, used, request),
            *(hosts, base, rows, kinds, bounds, more, planned, count, limit),
        )
        if node < 0:
            return found, False
        for position in range(found):
            if nodes[position] == node:
                return found, True
        nodes[found], counts[found] = node, chunks
        was[0, found], was[1, found] = blueprint[node], place[node]
        number = joined[blueprint[node]]
        put_one(
            *(node, chunks, number, starts[number], request, part, empty, minimum, running, used, lean),
            *(blueprint, place, kind, row, price, types, type_rows, type_prices, room),
        )
        found += 1
        count -= chunks
        if len(more) > 0:
            return found, count > 0
    return found, False
