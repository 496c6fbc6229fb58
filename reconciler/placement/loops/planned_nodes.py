"""The loops over planned nodes and over sizes of new ones that take most of the time, written so that they can be compiled. They allocate nothing.

They take arrays, several in one tuple; `arrays.py` describes them. Passing a plain tuple to a compiled loop costs next to nothing.
"""

from __future__ import annotations

import numpy as np

from reconciler.placement.arrays import (
    ABLE,
    AFFINITY,
    ANTI_AFFINITY_ITSELF,
    BOUND,
    CODE,
    COUNTER,
    COUNTS,
    EMPTY,
    END,
    FITS,
    KEPT,
    LEAN,
    LEAST_NET,
    MINIMUM,
    MOST_WORTH,
    NODES,
    PLENTY,
    POOL,
    POSITION,
    PRICE,
    ROUNDING,
    ROW,
    RUNNING,
    SPREAD_ITSELF,
    SPREAD_OTHERS,
    START,
    TEMPLATE,
    TYPE,
    TYPE_PRICES,
    TYPE_ROWS,
    TYPES,
    USED,
    ChunkArrays,
    Flags,
    HostArrays,
    LimitArrays,
    NodeArrays,
    Numbers,
    Table,
    WayArrays,
)


def allowed(code: int, bound: int, counted: int) -> int:
    """How many more chunks a rule between pods allows in a domain where `counted` pods count."""
    if code == SPREAD_ITSELF:
        return max(0, bound - counted)
    if code == SPREAD_OTHERS:
        return PLENTY if counted <= bound else 0
    if code == AFFINITY:
        return PLENTY if counted > 0 else 0
    if counted > 0:
        return 0
    return 1 if code == ANTI_AFFINITY_ITSELF else PLENTY


def least_in(counts: Table, there: Table, also: int, min_domains: int) -> int:
    """The global minimum of a spread constraint: the fewest pods in any domain that is there, or is `also` (-1: none); 0 while
    there are fewer domains than minDomains."""
    domains, least = 0, PLENTY
    for domain in range(len(counts)):
        if there[domain] or domain == also:
            domains += 1
            least = min(least, counts[domain])
    return 0 if domains == 0 or domains < min_domains else least


def cap_on(hosts: Numbers, column: int, rules: Numbers) -> int:
    """The most chunks that all rules on the hostname allow on one bin."""
    cap = PLENTY
    for rule in range(len(rules)):
        counted = hosts[rules[rule, COUNTER], column]
        cap = min(cap, allowed(rules[rule, CODE], rules[rule, BOUND], counted))
    return cap


def fits_in(room: Numbers, instance_type: int, taken: Numbers, node: int, request: Numbers, most: int) -> int:
    """How often the request fits, up to `most`. Division is slow, so it is avoided where possible."""
    for column in range(len(request)):
        if request[column] > 0:
            free = room[instance_type, column] - taken[node, column]
            if free < request[column]:
                return 0
            if most > 1 and free < most * float(request[column]):
                most = int(free / request[column])
    return most


def holds(room: Numbers, instance_type: int, used: Numbers, node: int) -> bool:
    for column in range(room.shape[1]):  # noqa: SIM110 - generators are slow once compiled
        if room[instance_type, column] < used[node, column]:
            return False
    return True


def is_within(capacities: Numbers, spare: Numbers, pool: int, then: int, charges: Numbers, charge: int) -> bool:
    """Whether its pool's limits allow a node to become type `then`. charges, charge: an array and the row with its present charge."""
    for column in range(capacities.shape[1]):
        more = capacities[then, column] - charges[charge, column]
        if more > 0 and more > spare[pool, column]:
            return False
    return True


def join_of(options: Numbers, joins: Numbers, template: int) -> int:
    """The template that a node has once chunks are on it, in the first of their domains where it can be; -1 where it may not take them."""
    for option in range(len(options)):
        joined: int = joins[options[option], template]
        if joined >= 0:
            return joined
    return -1


def is_sold(options: Numbers, bought: Flags, row: int) -> bool:
    """Whether a node that is bought as this row of the catalog may take chunks in any of their domains."""
    for option in range(len(options)):  # noqa: SIM110 - as above
        if bought[options[option], row]:
            return True
    return False


def set_type(nodes: NodeArrays, node: int, number: int, position: int) -> None:
    """Gives a node the template `number`, and of its types the one at this position."""
    _, marks, _, spans, line, _, _, _, least = nodes
    at = spans[START, number] + position
    marks[TEMPLATE, node], marks[POSITION, node], marks[TYPE, node] = number, position, line[TYPES, at]
    marks[ROW, node], marks[PRICE, node], least[node] = line[TYPE_ROWS, at], line[TYPE_PRICES, at], 0.0


def add(nodes: NodeArrays, chunk: ChunkArrays, node: int, count: int, number: int, wanted: int) -> None:
    """Adds chunks to one node, which has the template `number` from now on, and the type `wanted` of it; KEPT: the one that it has.

    Where the template does not have that type, or it is too small, the node gets the cheapest that holds its chunks."""
    _, marks, loads, spans, line, room, _, _, _ = nodes
    request, part, _ = chunk
    for column in range(len(request)):
        loads[part, node, column] += request[column] * count
        empty, minimum, running = loads[EMPTY, node, column], loads[MINIMUM, node, column], loads[RUNNING, node, column]
        loads[LEAN, node, column] = empty + minimum
        loads[USED, node, column] = empty + max(running, minimum)
    used, at, end = loads[USED], spans[START, number], spans[END, number]
    if wanted == KEPT and marks[TEMPLATE, node] >= 0:
        wanted = marks[TYPE, node]
    if marks[TEMPLATE, node] == number and marks[TYPE, node] == wanted:
        at += marks[POSITION, node]
    while at < end and line[TYPES, at] != wanted:
        at += 1
    if at == end or not holds(room, wanted, used, node):
        at = spans[START, number]
        while not holds(room, line[TYPES, at], used, node):
            at += 1
    set_type(nodes, node, number, at - spans[START, number])


def choose(  # noqa: C901 - one loop, as above
    nodes: NodeArrays,
    chunk: ChunkArrays,
    caps: HostArrays,
    ways: WayArrays,
    planned: int,
    count: int,
    most_nodes: int,
) -> int:
    """Chooses among the `planned` nodes those that take chunks as they are; returns how many, at most `most_nodes`.

    They are filled one after the other: the one whose free room is worth least comes first, of equals the first. Where one node is to
    take them, it is the one that takes most of them.
    """
    found, marks, loads, _, _, room, worth, _, _ = nodes
    request, _, counted = chunk
    hosts, base, rules, more = caps
    options, joins, bought, _ = ways
    fits, able, template, instance_type, row = found[FITS], found[ABLE], marks[TEMPLATE], marks[TYPE], marks[ROW]
    taken, number_able = loads[counted], 0
    for node in range(planned):
        amount = fits_in(room, instance_type[node], taken, node, request, count)
        if amount == 0 or join_of(options, joins, template[node]) < 0 or not is_sold(options, bought, row[node]):
            continue
        if len(rules) > 0:
            amount = min(amount, cap_on(hosts, base + node, rules))
        if len(more) > 0:
            amount = min(amount, more[node])
        if amount > 0:
            able[number_able], fits[number_able] = node, amount
            number_able += 1
    number, by_amount = 0, most_nodes == 1 or not worth.any()
    while count > 0 and number < most_nodes:
        best, least, most = -1, np.inf, 0
        for index in range(number_able):
            if fits[index] <= 0 or (by_amount and fits[index] < most):
                continue
            node, spare = able[index], 0.0
            for column in range(len(request)):
                spare += worth[column] * (room[instance_type[node], column] - taken[node, column])
            if spare < least or (by_amount and fits[index] > most):
                best, least, most = index, spare, fits[index]
        if best < 0:
            break
        found[NODES, number], found[COUNTS, number] = able[best], min(count, most)
        fits[best] = 0
        number += 1
        count -= most
    return number


def net(price: int, discount: float) -> float:
    return max(price - discount, price * (1 - MOST_WORTH))


def cheapest(  # noqa: C901, PLR0912 - as above
    nodes: NodeArrays,
    chunk: ChunkArrays,
    caps: HostArrays,
    limits: LimitArrays,
    ways: WayArrays,
    planned: int,
    count: int,
    limit: float,
) -> tuple[int, int, int]:
    """(node, chunks, type) of the growth that costs least per chunk: its price, less what the room is worth that it adds. The node is
    -1 if none is below the limit. See `enlarge` in `engine/open.py`.

    Nodes whose least is too dear are skipped. With fewer chunks no growth costs less per chunk, so it holds for later calls."""
    _, marks, loads, spans, line, room, _, discounts, bounds = nodes
    hosts, base, rules, more = caps
    capacities, spare, charged = limits
    options, joins, _, grows = ways
    by_type, all_counts = len(charged) == 0, chunk[2] == USED
    charges = capacities if by_type else charged
    template, instance_type, price = marks[TEMPLATE], marks[TYPE], marks[PRICE]
    used, taken, request = loads[USED], loads[chunk[2]], chunk[0]
    starts, ends, types, prices, least = spans[START], spans[END], line[TYPES], line[TYPE_PRICES], line[LEAST_NET]
    best, best_each, best_chunks, best_type = -1, limit, 0, -1
    for node in range(planned):
        if bounds[node] >= best_each:
            continue
        bounds[node] = np.inf
        after = join_of(options, joins, template[node]) if grows[template[node]] else -1
        if after < 0:
            continue
        end, before = ends[after], price[node]
        net_before = net(before, discounts[instance_type[node]])
        low = min(starts[after] + marks[POSITION, node], end)
        while low > starts[after] and prices[low - 1] >= before:
            low -= 1
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
            growth = max(0.0, least[at] - net_before)
            if growth >= best_each * cap or growth > node_each * cap * (1 + ROUNDING):
                bounds[node] = growth / cap
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
            bounds[node] = min(bounds[node], node_each)
        if node_each < best_each:
            best, best_each, best_chunks, best_type = node, node_each, node_chunks, node_type
    return best, best_chunks, best_type


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


def mix_of(
    chunks: Numbers, prices: Numbers, useful: Numbers, costs: Numbers, nodes: Numbers, count: int, times: Numbers
) -> None:
    """Writes how often each useful size is in the cheapest mix for so many chunks: back through the table that `mix_costs` wrote.

    Beyond a few times the largest size, most nodes have the size with the lowest price per chunk."""
    best = 0
    for place in range(len(useful)):
        times[place] = 0
        size, least = useful[place], useful[best]
        if prices[size] / chunks[size] <= prices[least] / chunks[least]:
            best = place
    largest = chunks[useful[-1]]
    while count > 0:
        chosen = best
        if count - 2 * largest < chunks[useful[best]]:
            chosen = 0
            while True:
                size = useful[chosen]
                rest = max(0, count - chunks[size])
                if costs[rest] + prices[size] == costs[count] and nodes[rest] + 1 == nodes[count]:
                    break
                chosen += 1
        times[chosen] += 1
        count -= chunks[useful[chosen]]
