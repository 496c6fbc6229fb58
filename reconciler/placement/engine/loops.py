"""The loops over planned nodes that most time goes to, written so that they can be compiled. Used by kernel.

fill, enlarge and planned have the same in numpy, and a test holds both to the same answers. They are all in this file, since
numba's cache looks at no other when it asks whether what it compiled is still good. Nothing here allocates. Arguments, by name:

- marks, loads: planned nodes, in columns: what each is, and by part and resource what is on it
- spans, line, room: blueprints: where each begins and ends in the line of their types; room by type
- joined: by number of a blueprint that of the one after the chunks came, -1: they may not come; bought_as: by row, whether a node
  that is one may take them and stay it
- request, part, counted: what a chunk asks for, the part as which it counts, and the part that counts against the room for it
- hosts, base, rules, more: on the hostname: counts, the column of the first planned node, rules; caps by node, empty for none
- capacities, spare: by type and limited resource; what is left of each by pool
- found: to write to, in columns
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

SPREAD_ITSELF, SPREAD_OTHERS, ANTI_AFFINITY_ITSELF, ANTI_AFFINITY_OTHERS, AFFINITY = range(5)
"""Kinds of rules on the hostname, as numbers."""
HOST_ROW, RULE_KIND, BOUND = range(3)
"""Rows of `rules`."""
EMPTY, MINIMUM, RUNNING, USED, LEAN = range(5)
"""Parts of `loads`: what KeepEmpty chunks, KeepMinimum chunks and pending pods take; all of it together; without what runs."""
TEMPLATE, PLACE, KIND, ROW, PRICE = range(5)
"""Rows of `marks`: place: which of the blueprint's types; kind, row: that type and its cheapest row, numbered through all pools."""
START, END, POOL = range(3)
"""Rows of `spans`."""
TYPES, TYPE_ROWS, TYPE_PRICES = range(3)
"""Rows of `line`."""
FITS, NODES, COUNTS, NOW_TEMPLATE, WAS_TEMPLATE, WAS_PLACE = range(6)
"""Rows of `found`: a number for each node; then, for as many nodes as were found, which, how many chunks, and what they are now and
were before (-1: not there)."""
NEXT_NEW, NEXT_NOTE, NEXT_LIMITED = range(3)
"""What to do for chunks that are left over, if any: make new nodes; note what was done, and look again; or see which type a limit
leaves for the node that would have grown."""
ROUNDING = 1e-9
"""Prices a chunk are fractions; those that differ by less count as equal."""

PLENTY = 2**62
Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]


def cap_on(hosts: Numbers, column: int, rules: Numbers) -> int:
    """As `HostCaps.on`, for one bin."""
    cap = PLENTY
    for rule in range(rules.shape[1]):
        counted = hosts[rules[HOST_ROW, rule], column]
        kind, bound = rules[RULE_KIND, rule], rules[BOUND, rule]
        if kind == SPREAD_ITSELF:
            allowed = max(0, bound - counted)
        elif kind == SPREAD_OTHERS:
            allowed = PLENTY if counted <= bound else 0
        elif kind == AFFINITY:
            allowed = PLENTY if counted > 0 else 0
        else:
            allowed = 0 if counted > 0 else 1 if kind == ANTI_AFFINITY_ITSELF else PLENTY
        cap = min(cap, allowed)
    return cap


def fits_in(  # noqa: PLR0917 - compiled code takes plain arrays, and no keywords
    room: Numbers, kind: int, taken: Numbers, node: int, request: Numbers, most: int
) -> int:
    """As `times`, up to `most`; division only where it is called for."""
    for column in range(len(request)):
        if request[column] > 0:
            free = room[kind, column] - taken[node, column]
            if free < request[column]:
                return 0
            if most > 1:
                most = min(most, free // request[column])
    return most


def holds(room: Numbers, kind: int, used: Numbers, node: int) -> bool:
    for column in range(room.shape[1]):  # noqa: SIM110 - generators are slow once compiled
        if room[kind, column] < used[node, column]:
            return False
    return True


def is_within(  # noqa: PLR0917 - as above
    capacities: Numbers, spare: Numbers, pool: int, then: int, charges: Numbers, charge: int
) -> bool:
    """Whether the limits of its pool let a node become one of type `then`. charges, charge: the row of what it counts for now."""
    for column in range(capacities.shape[1]):
        more = capacities[then, column] - charges[charge, column]
        if more > 0 and more > spare[pool, column]:
            return False
    return True


def set_place(  # noqa: PLR0917 - as above
    marks: Numbers, node: int, number: int, at: int, start: int, line: Numbers
) -> None:
    """From now on a node is of blueprint `number`, of the type at this place in the line."""
    marks[TEMPLATE, node], marks[PLACE, node], marks[KIND, node] = number, at - start, line[TYPES, at]
    marks[ROW, node], marks[PRICE, node] = line[TYPE_ROWS, at], line[TYPE_PRICES, at]


def put_one(  # noqa: PLR0917 - as above
    node: int,
    count: int,
    number: int,
    request: Numbers,
    part: int,
    marks: Numbers,
    loads: Numbers,
    spans: Numbers,
    line: Numbers,
    room: Numbers,
) -> None:
    """As `PlannedNodes._put`, for one node, which is of blueprint `number` from now on."""
    for column in range(len(request)):
        loads[part, node, column] += request[column] * count
        empty, minimum, running = loads[EMPTY, node, column], loads[MINIMUM, node, column], loads[RUNNING, node, column]
        loads[LEAN, node, column] = empty + minimum
        loads[USED, node, column] = empty + max(running, minimum)
    used, start = loads[USED], spans[START, number]
    at = start
    if marks[TEMPLATE, node] == number and holds(room, line[TYPES, start + marks[PLACE, node]], used, node):
        at = start + marks[PLACE, node]
    else:
        while not holds(room, line[TYPES, at], used, node):
            at += 1
    set_place(marks, node, number, at, start, line)


def put(  # noqa: PLR0917 - as above
    nodes: Numbers,
    counts: Numbers,
    was: Numbers,
    number: int,
    request: Numbers,
    part: int,
    marks: Numbers,
    loads: Numbers,
    spans: Numbers,
    line: Numbers,
    room: Numbers,
) -> None:
    """As `PlannedNodes._put`: all of these nodes are of blueprint `number` from now on. was: what they were before."""
    for position in range(len(nodes)):
        node = nodes[position]
        was[0, position], was[1, position] = marks[TEMPLATE, node], marks[PLACE, node]
        put_one(node, counts[position], number, request, part, marks, loads, spans, line, room)


def put_found(  # noqa: PLR0917 - as above
    found: Numbers,
    position: int,
    node: int,
    count: int,
    number: int,
    request: Numbers,
    part: int,
    marks: Numbers,
    loads: Numbers,
    spans: Numbers,
    line: Numbers,
    room: Numbers,
) -> None:
    """As `put_one`, and writes down what was done."""
    found[NODES, position], found[COUNTS, position], found[NOW_TEMPLATE, position] = node, count, number
    found[WAS_TEMPLATE, position], found[WAS_PLACE, position] = marks[TEMPLATE, node], marks[PLACE, node]
    put_one(node, count, number, request, part, marks, loads, spans, line, room)


def take_back(  # noqa: PLR0917 - as above
    node: int,
    count: int,
    number: int,
    place: int,
    request: Numbers,
    part: int,
    marks: Numbers,
    loads: Numbers,
    spans: Numbers,
    line: Numbers,
    room: Numbers,
) -> None:
    """Takes chunks away from a node, which is of the node template and the type again that it was of before."""
    put_one(node, -count, number, request, part, marks, loads, spans, line, room)
    set_place(marks, node, number, spans[START, number] + place, spans[START, number], line)


def choose(  # noqa: C901, PLR0912, PLR0917 - one loop, as above
    found: Numbers,
    marks: Numbers,
    loads: Numbers,
    room: Numbers,
    joined: Numbers,
    bought_as: Flags,
    request: Numbers,
    counted: int,
    hosts: Numbers,
    base: int,
    rules: Numbers,
    more: Numbers,
    planned: int,
    count: int,
    single: bool,  # noqa: FBT001 - compiled code takes no keywords
) -> int:
    """Of the `planned` nodes those that take chunks as they are: the one that takes all that is left and fewest beyond, else the one
    that takes most; the first of equals. Returns how many. single: one node at most."""
    fits, template, kind, row, taken = found[FITS], marks[TEMPLATE], marks[KIND], marks[ROW], loads[counted]
    best, least = -1, PLENTY
    uncapped = count == 1 and rules.shape[1] == 0 and len(more) == 0
    for node in range(planned):
        fits[node] = 0
        if joined[template[node]] < 0 or not bought_as[row[node]]:
            continue
        amount = fits_in(room, kind[node], taken, node, request, least if uncapped else PLENTY)
        if amount <= 0 or (uncapped and amount >= least):
            continue
        amount = min(amount, cap_on(hosts, base + node, rules))
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
        found[NODES, 0], found[COUNTS, 0] = best, 1
        return 1 if best >= 0 else 0
    number = 0
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
        found[NODES, number], found[COUNTS, number] = largest, most
        fits[largest] = 0
        number += 1
        count -= most
        if single:
            break
    return number


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

    charged: what each node counts against its pool's limits, by limited resource; empty where that is its type's capacity."""
    template, place, kind, price = marks[TEMPLATE], marks[PLACE], marks[KIND], marks[PRICE]
    used, taken = loads[USED], loads[counted]
    starts, ends, types, prices = spans[START], spans[END], line[TYPES], line[TYPE_PRICES]
    best, best_each, best_chunks = -1, limit, 0
    for node in range(planned):
        after = joined[template[node]]
        if after < 0:
            continue
        low, high, before = starts[after], ends[after], price[node]
        if after == template[node]:
            low = high = low + place[node]
            while low > starts[after] and prices[low - 1] == before:
                low = high = low - 1
            if types[low] == kind[node]:
                low = high = low + 1  # as it is it takes no more
        while low < high:  # the first type that is no cheaper than the present one
            middle = (low + high) // 2
            if prices[middle] < before:
                low = middle + 1
            else:
                high = middle
        if low == ends[after] or (prices[low] - before) / count >= best_each:
            continue
        cap = min(count, cap_on(hosts, base + node, rules))
        if len(more) > 0:
            cap = min(cap, more[node])
        if cap <= 0:
            continue
        node_each, node_chunks = np.inf, 0
        for at in range(low, ends[after]):
            growth = prices[at] - before
            lowest = growth / cap
            if lowest >= best_each or lowest > node_each:
                break
            if not holds(room, types[at], used, node):
                continue
            amount = fits_in(room, types[at], taken, node, request, cap)
            if amount <= 0:
                continue
            if len(charged) > 0:
                if not is_within(capacities, spare, spans[POOL, after], types[at], charged, node):
                    continue
            elif not is_within(capacities, spare, spans[POOL, after], types[at], capacities, kind[node]):
                continue
            each = growth / amount
            if each < node_each or (each == node_each and amount > node_chunks):
                node_each, node_chunks = each, amount
        if node_each < best_each:
            best, best_each, best_chunks = node, node_each, node_chunks
    return best, best_chunks


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
    """Places up to `count` chunks: on planned nodes as they are; then on one after another that is made larger, as long as that is
    no dearer than the price of new ones for all that is left; then on one new node, where that is known to be what to make.

    joined: empty where no node is to be filled as it is; growing: `joined`, less what must not grow; prices, new: by number of
    chunks, of new nodes and the blueprint of the one that takes them all (-1: not known). Returns how many nodes were filled, how
    many took chunks in all, no node twice, and what is next: NEXT_NEW, NEXT_NOTE or NEXT_LIMITED."""
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
        before, place, kind = marks[TEMPLATE, node], marks[PLACE, node], marks[KIND, node]
        after = growing[before]
        put_found(found, number, node, chunks, after, request, part, marks, loads, spans, line, room)
        if not is_within(capacities, spare, spans[POOL, after], marks[KIND, node], capacities, kind):
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
