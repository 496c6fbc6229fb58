"""The walk over many batches in one call: which domains each may go to, how its chunks come to nodes there, and what they count.

It stops where Python has to see something first: what a new node is, or a batch that is placed by itself. `engine/walk.py` makes the arrays.
What rules on labels allow is said here for batches that are placed by themselves too: in Python, tables are lists of lists.
"""

from __future__ import annotations

import numpy as np

from reconciler.placement.arrays import (
    AFFINITY,
    APART,
    AT,
    BATCH,
    BIN,
    CHUNKS,
    CODE,
    COUNTER,
    COUNTS,
    ITSELF,
    KEY,
    MIN_DOMAINS,
    NODES,
    NOW,
    PLENTY,
    POOL,
    POSITION,
    ROUNDING,
    SKEW,
    TEMPLATE,
    TYPE,
    WAS,
    AccountArrays,
    ChunkArrays,
    Flags,
    HostArrays,
    LimitArrays,
    NodeArrays,
    Numbers,
    OfferArrays,
    RuleArrays,
    Table,
    TopologyArrays,
    WayArrays,
)
from reconciler.placement.loops.planned_nodes import (
    add,
    allowed,
    cheapest,
    choose,
    held,
    join_of,
    least_in,
    mix_costs,
    mix_of,
    useful,
)

MOST_OPTIONS = 8
"""Chunks with more domains to choose from are placed batch by batch."""
KIND, REQUEST, WANTED, PART, COUNTED_PART = range(5)
"""Columns of `jobs`: row of `kinds`, row of `requests`, how many chunks, and the parts of loads, as `Batch` has them."""
MOST, SHARED, BY_PRICE, OPTIONS, OPTIONS_END, LABEL_RULES, HOST_RULES, COUNTED = range(8)
"""Columns of `kinds`. MOST: how many of them an empty node takes at most. SHARED: whether one changes where the next may go. BY_PRICE: whether
new nodes cost less in some domains (NO, …). OPTIONS, OPTIONS_END: where its options begin and end, which other kinds may have too. The others:
where its rows of these tables begin; they end where the next kind's begin, and its rules on labels where those on the hostname begin."""
NO, ONLY_CHEAPEST, CHEAPEST_FIRST = range(3)
"""ONLY_CHEAPEST: chunks keep to the cheapest domain that is open to them."""
COMPATIBILITY, MAKEABLE, DOMAIN = range(3)
"""Columns of `options`: number of its compatibility, whether nodes can be made there, and its domain for each key from there on; -1: none."""
NUMBER, ROW_OF, ON_HOSTS = range(3)
"""Columns of `counted`: number of a counter in which these chunks count, its row of `counts` or of `hosts`, and which it is."""
CHUNKS_OF, USEFUL = range(2)
"""Of each of `sizes`: chunks by type, and the useful types."""
COSTS, MIX_NODES = range(2)
"""Of each of `mixes`: by number of chunks, their price and how many nodes they are."""
PLANNED, LOGGED, SIZES, ASKED, ALSO, KNOWN = range(6)
"""Of `at`: how many planned nodes, rows of the log and sizes there are; and what Python is asked for, in two numbers."""
DONE, BY_ITSELF, NEW_NODE, MORE_ROWS = range(4)
"""Why the walk stopped. BY_ITSELF: Python places the batch. NEW_NODE: of a compatibility and a pool that had none yet."""


def load_of(rules: Table, counts: Table, there: Table, option: Table, joins: int) -> int:
    """How many pods count in the option's domains under the rules; -1 where they let no chunk in. counts, there: rules × domains.

    joins: whether its own domains count as there."""
    load = 0
    for rule in range(len(rules)):
        domain, bound = option[DOMAIN + rules[rule][KEY]], 0
        if domain < 0:
            if rules[rule][APART] == 0:
                return -1
            continue
        if rules[rule][SKEW] > 0:
            also = domain if joins > 0 else -1
            bound = rules[rule][SKEW] + least_in(counts[rule], there[rule], also, rules[rule][MIN_DOMAINS])
        if allowed(rules[rule][CODE], bound, counts[rule][domain]) <= 0:
            return -1
        load += counts[rule][domain]
    return load


def distribute(
    rules: Table, options: Table, counts: Table, there: Table, most: Table, count: int, shares: Table
) -> int:
    """Writes the share of each option: chunk by chunk, where the fewest count so far. Returns how many chunks have one.

    most: by option, the most chunks it takes; where that is more than 0, `there` has the domains in which a node can be made. counts: to be
    written to."""
    for placed in range(count):
        best, least = -1, PLENTY
        for option in range(len(options)):
            if shares[option] < most[option]:
                load = load_of(rules, counts, there, options[option], options[option][MAKEABLE])
                if 0 <= load < least:
                    best, least = option, load
        if best < 0:
            return placed
        shares[best] += 1
        for rule in range(len(rules)):
            domain = options[best][DOMAIN + rules[rule][KEY]]
            if domain >= 0 and rules[rule][ITSELF] > 0:
                counts[rule][domain] += 1
    return count


def size_row(
    room: Numbers, asked: Numbers, most: int, compatibility: int, request: int, offered: OfferArrays, at: Numbers
) -> int:
    """The row of `sizes` for such chunks, worked out where they are met for the first time."""
    types, _, prices, costs, _, size_of, sizes, mixes, begins, _ = offered
    row: int = size_of[request, compatibility]
    if row >= 0:
        return row
    row = at[SIZES]
    size_of[request, compatibility], at[SIZES] = row, row + 1
    chunks, found = sizes[row, CHUNKS_OF, : len(types)], sizes[row, USEFUL, : len(types)]
    held(types, room, prices[compatibility], asked, most, chunks)
    begins[row] = useful(chunks, costs[compatibility], found)
    mix_costs(chunks, costs[compatibility], found[begins[row] :], mixes[row, COSTS], mixes[row, MIX_NODES])
    return row


def place_on(
    nodes: NodeArrays,
    chunk: ChunkArrays,
    account: AccountArrays,
    job: int,
    node: int,
    amount: int,
    now: int,
    wanted: int,
) -> None:
    """Adds chunks to a node, which has the template `now` from then on, logs that, and counts it. wanted: see `add`."""
    (counts, there, domain_of, _), counted, hosts, base, (capacities, spare, _), log, at = account
    marks, row = nodes[1], at[LOGGED]
    was, position, before = marks[TEMPLATE, node], marks[POSITION, node], marks[TYPE, node]
    add(nodes, chunk, node, amount, now, wanted)
    log[row, BATCH], log[row, BIN], log[row, CHUNKS] = job, base + node, amount
    log[row, NOW], log[row, WAS], log[row, AT] = now, was, position
    at[LOGGED] = row + 1
    for each in range(len(counted)):
        domain = domain_of[counted[each, NUMBER], now]
        if domain >= 0 and counted[each, ON_HOSTS]:
            hosts[counted[each, ROW_OF], base + node] += amount
        elif domain >= 0:
            counts[counted[each, ROW_OF], domain] += amount
    there[now] += 1
    if was >= 0:
        there[was] -= 1
    for column in range(capacities.shape[1]):
        instead_of = capacities[before, column] if was >= 0 else 0
        spare[nodes[3][POOL, now], column] -= capacities[marks[TYPE, node], column] - instead_of
    at[PLANNED] += was < 0


def join_planned(
    nodes: NodeArrays,
    chunk: ChunkArrays,
    caps: HostArrays,
    limits: LimitArrays,
    ways: WayArrays,
    costs: Numbers,
    account: AccountArrays,
    job: int,
    left: int,
) -> int:
    """Places up to `left` chunks on planned nodes, first as they are; then these are made larger one by one, as long as that costs no more
    than new nodes for all that remain. Returns how many remain. costs: by number of chunks, of new nodes."""
    found, template, at = nodes[0], nodes[1][TEMPLATE], account[6]
    options, joins = ways[0], ways[1]
    planned = at[PLANNED]
    number = choose(nodes, chunk, caps, ways, planned, left, planned)
    for index in range(number):
        node = found[NODES, index]
        now = join_of(options, joins, template[node])
        place_on(nodes, chunk, account, job, node, found[COUNTS, index], now, nodes[1][TYPE, node])
        left -= found[COUNTS, index]
    nodes[8][:planned] = 0.0
    while left > 0:
        limit = (costs[left] / left) * (1 + ROUNDING) + ROUNDING
        node, chunks, instance_type = cheapest(nodes, chunk, caps, limits, ways, planned, left, limit)
        if node < 0:
            break
        now = join_of(options, joins, template[node])
        place_on(nodes, chunk, account, job, node, chunks, now, instance_type)
        left -= chunks
    return left


def sort_by_price(
    room: Numbers,
    asked: Numbers,
    most: int,
    choices: Numbers,
    request: int,
    count: int,
    offered: OfferArrays,
    at: Numbers,
    order: Numbers,
) -> bool:
    """Sorts options by what new nodes for so many chunks cost there, less what the room is worth that they leave; equals keep their order.
    False where there are none in some option."""
    mixes, price_of = offered[7], np.zeros(len(choices), dtype=np.int64)
    for option in range(len(choices)):
        size = size_row(room, asked, most, choices[option, COMPATIBILITY], request, offered, at)
        price_of[option] = mixes[size, COSTS, count]
        if price_of[option] == PLENTY:
            return False
        place = option
        while place > 0 and price_of[order[place - 1]] > price_of[option]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = option
    return True


def open_new(
    nodes: NodeArrays,
    chunk: ChunkArrays,
    offered: OfferArrays,
    times: Numbers,
    account: AccountArrays,
    job: int,
    size: int,
    compatibility: int,
    left: int,
) -> int:
    """Places chunks on the cheapest mix of new nodes; returns how many remain, since what a new node is is not known yet."""
    types, pool_of, _, costs, empty, _, sizes, mixes, begins, _ = offered
    chunks, fitting, at = sizes[size, CHUNKS_OF], sizes[size, USEFUL, begins[size] : len(types)], account[6]
    if left > 0:
        mix_of(chunks, costs[compatibility], fitting, mixes[size, COSTS], mixes[size, MIX_NODES], left, times)
    for place in range(len(fitting) - 1, -1, -1):
        pool = pool_of[fitting[place]]
        for _ in range(times[place] if left > 0 else 0):
            if empty[compatibility, pool] < 0:
                at[ASKED], at[ALSO] = compatibility, pool
                return left
            if left > 0:
                amount = min(left, chunks[fitting[place]])
                now, wanted = empty[compatibility, pool], types[fitting[place]]
                place_on(nodes, chunk, account, job, at[PLANNED], amount, now, wanted)
                left -= amount
    return left


def bootstraps(rules: Numbers, counts: Numbers) -> bool:
    """Whether these chunks have affinity only to pods like themselves, and there are none yet (see `Topology.bootstrapping`)."""
    found = False
    for rule in range(len(rules)):
        if rules[rule, CODE] == AFFINITY:
            found = True
            if rules[rule, ITSELF] == 0 or counts[rules[rule, COUNTER]].any():
                return False
    return found


def together(rules: Numbers, options: Numbers) -> Numbers:
    """The first option that has all domains by which chunks must be together, and those that share these domains with it."""
    found, number = np.empty(len(options), dtype=np.int64), 0
    for option in range(len(options)):
        joins = True
        for rule in range(len(rules)):
            domain = options[option, DOMAIN + rules[rule, KEY]]
            first = domain if number == 0 else options[found[0], DOMAIN + rules[rule, KEY]]
            if rules[rule, CODE] == AFFINITY and (domain < 0 or domain != first):
                joins = False
        if joins:
            found[number] = option
            number += 1
    return options[found[:number]]


def walk(  # noqa: C901, PLR0911, PLR0912, PLR0915 - one loop, as those that it calls
    nodes: NodeArrays,
    hosts: Numbers,
    base: int,
    limits: LimitArrays,
    ruled: RuleArrays,
    joins: Numbers,
    bought: Flags,
    grows: Flags,
    offered: OfferArrays,
    topology: TopologyArrays,
    jobs: Numbers,
    log: Numbers,
    at: Numbers,
    job: int,
) -> tuple[int, int]:
    """Places batch after batch, from `job` on, each as a whole. log: receives what came where, in rows as the journal
    has them (see `arrays.py`), with the number of the job as the batch.

    Returns the batch at which it stopped, and why (DONE, …). What the log has of that batch is to be taken back."""
    kinds, options, rules, all_counted, requests, times = ruled
    types, _, _, _, _, _, sizes, mixes, begins, largest = offered
    spare = limits[1]
    counts, planned, _, seen = topology
    nowhere, domains = np.empty(0, dtype=np.int64), seen.shape[2]
    opened = np.empty(MOST_OPTIONS, dtype=np.int64)
    while job < len(jobs):
        if jobs[job, KIND] < 0:
            return job, BY_ITSELF
        kind, following, left = kinds[jobs[job, KIND]], kinds[jobs[job, KIND] + 1], jobs[job, WANTED]
        if at[PLANNED] + left > nodes[1].shape[1] or at[LOGGED] + 2 * left > len(log):
            return job, MORE_ROWS
        if at[SIZES] + MOST_OPTIONS > len(sizes):
            return job, MORE_ROWS
        chunk = (requests[jobs[job, REQUEST]], jobs[job, PART], jobs[job, COUNTED_PART])
        own, on_hosts = rules[kind[LABEL_RULES] : kind[HOST_RULES]], rules[kind[HOST_RULES] : following[LABEL_RULES]]
        choices = options[kind[OPTIONS] : kind[OPTIONS_END]]
        account = topology, all_counted[kind[COUNTED] : following[COUNTED]], hosts, base, limits, log, at
        for pool in range(len(spare)):
            for column in range(spare.shape[1]):
                if spare[pool, column] < (left + 1) * largest[pool, column]:
                    return job, BY_ITSELF
        if bootstraps(own, counts):
            if kind[BY_PRICE]:
                return job, BY_ITSELF
            choices = together(own, choices)
            own = own[own[:, CODE] != AFFINITY]
        here, there = np.empty((len(own), domains), dtype=np.int64), np.empty((len(own), domains), dtype=np.bool_)
        for rule in range(len(own)):
            row = own[rule, COUNTER]
            for domain in range(domains):
                here[rule, domain] = counts[row, domain]
                there[rule, domain] = seen[row, 0, domain] or seen[row, 1, domain]
            for template in range(len(planned) if own[rule, SKEW] > 0 else 0):
                for domain in range(domains if planned[template] > 0 else 0):
                    there[rule, domain] |= seen[row, 2 + template, domain]
        shares, steps = np.zeros(len(choices), dtype=np.int64), 1
        order = np.arange(len(choices))
        if kind[BY_PRICE]:
            if not sort_by_price(nodes[5], chunk[0], kind[MOST], choices, jobs[job, REQUEST], left, offered, at, order):
                return job, BY_ITSELF
            choices = choices[order]
        if kind[SHARED]:
            steps = len(choices)
            for rule in range(len(own)):
                for option in range(len(choices)):
                    domain = choices[option, DOMAIN + own[rule, KEY]]
                    if domain >= 0 and choices[option, MAKEABLE]:
                        there[rule, domain] = True
            if distribute(own, choices, here, there, np.full(len(choices), PLENTY), left, shares) < left:
                return job, BY_ITSELF
        for step in range(steps):
            number = 0
            if kind[SHARED]:
                opened[0], number, left = choices[step, COMPATIBILITY], 1, shares[step]
            else:
                for option in range(len(choices)):
                    is_open = kind[BY_PRICE] != ONLY_CHEAPEST or number == 0
                    if is_open and load_of(own, here, there, choices[option], choices[option, MAKEABLE]) >= 0:
                        opened[number] = choices[option, COMPATIBILITY]
                        number += 1
                if number == 0:
                    return job, BY_ITSELF
            if left == 0:
                continue
            compatibility = opened[0]
            size = size_row(nodes[5], chunk[0], kind[MOST], compatibility, jobs[job, REQUEST], offered, at)
            caps = hosts, base, on_hosts, nowhere
            ways = opened[:number], joins, bought, grows
            left = join_planned(nodes, chunk, caps, limits, ways, mixes[size, COSTS], account, job, left)
            if left > 0 and begins[size] == len(types):
                return job, BY_ITSELF
            left = open_new(nodes, chunk, offered, times, account, job, size, compatibility, left)
            if left > 0:
                return job, NEW_NODE
        job += 1
    return job, DONE
