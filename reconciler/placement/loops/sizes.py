"""The loops over sizes of new nodes, written so that they can be compiled.

None of them calls a loop of another file.
"""

from __future__ import annotations

from reconciler.placement.loops.arrays import PLENTY, Numbers


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
