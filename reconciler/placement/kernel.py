"""The loops over planned nodes that most time goes to, written so that they can be compiled. Used by fill,
enlarge and planned.

numba compiles them where it is there and the placement is large enough to pay for loading it; fill and enlarge have the same
in numpy, and a test holds both to the same answers. Nothing here allocates, so that the compiled code is tight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

SPREAD_ITSELF, SPREAD_OTHERS, APART_ITSELF, APART_OTHERS, TOGETHER = range(5)
"""Kinds of rules on the hostname, as numbers."""
EMPTY, MINIMUM, RUNNING = range(3)
"""Parts of what is on a node, as numbers: KeepEmpty chunks, KeepMinimum chunks and pending pods."""
WORTH_COMPILING = 400
"""Batches from which on loading the compiled loops takes less time than they save."""

_PLENTY = 2**62
Numbers: TypeAlias = NDArray[np.int64]


def _cap(hosts: Numbers, column: int, rows: Numbers, kinds: Numbers, bounds: Numbers) -> int:
    """As `HostCaps.on`, for one bin."""
    cap = _PLENTY
    for rule in range(len(rows)):
        counted = hosts[rows[rule], column]
        kind, bound = kinds[rule], bounds[rule]
        if kind == SPREAD_ITSELF:
            allowed = max(0, bound - counted)
        elif kind == SPREAD_OTHERS:
            allowed = _PLENTY if counted <= bound else 0
        elif kind == TOGETHER:
            allowed = _PLENTY if counted > 0 else 0
        elif counted > 0:
            allowed = 0
        else:
            allowed = 1 if kind == APART_ITSELF else _PLENTY
        cap = min(cap, allowed)
    return cap


def _fits(room: Numbers, taken: Numbers, request: Numbers, most: int) -> int:
    """As `times`, up to `most`; division only where it is called for."""
    for column in range(len(request)):
        if request[column] > 0:
            free = room[column] - taken[column]
            if free < request[column]:
                return 0
            if most > 1:
                most = min(most, free // request[column])
    return most


def _fullest(  # noqa: PLR0917 - compiled code takes plain arrays
    fits: Numbers,
    blueprint: Numbers,
    joined: Numbers,
    row: Numbers,
    bought_as: NDArray[np.bool_],
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
    only_one: bool,  # noqa: FBT001 - likewise
) -> int:
    """Fills in how many chunks each node takes as it is. With `only_one`, just finds the node that takes fewest but some,
    the first of equals, and returns its index, -1 for none."""
    best, least = -1, _PLENTY
    for node in range(len(fits)):
        fits[node] = 0
        if joined[blueprint[node]] < 0 or not bought_as[row[node]]:
            continue
        amount = _fits(room[kind[node]], taken[node], request, _PLENTY if not only_one else least)
        if amount <= 0 or (only_one and amount >= least and best >= 0 and len(rows) == 0 and len(more) == 0):
            continue
        amount = min(amount, _cap(hosts, base + node, rows, kinds, bounds))
        if len(more) > 0:
            amount = min(amount, more[node])
        if amount <= 0:
            continue
        fits[node] = amount
        if amount < least:
            best, least = node, amount
            if only_one and amount == 1:
                break
    return best


def _cheapest(  # noqa: C901, PLR0912, PLR0917 - one loop over plain arrays, for the compiler
    blueprint: Numbers,
    joined: Numbers,
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
    count: int,
    limit: float,
) -> tuple[float, int, int]:
    """(price of the growth a chunk, node, chunks), the node -1 for none below the limit; see enlarge."""
    best, best_each, best_chunks = -1, limit, 0
    for node in range(len(blueprint)):
        after = joined[blueprint[node]]
        if after < 0:
            continue
        low, high = starts[after], ends[after]
        before = price[node]
        while low < high:  # the first type that is no cheaper than the present one
            middle = (low + high) // 2
            if type_prices[middle] < before:
                low = middle + 1
            else:
                high = middle
        if low == ends[after] or (type_prices[low] - before) / count >= best_each:
            continue
        cap = min(count, _cap(hosts, base + node, rows, kinds, bounds))
        if len(more) > 0:
            cap = min(cap, more[node])
        if cap <= 0:
            continue
        node_each, node_chunks = np.inf, 0
        for place in range(low, ends[after]):
            growth = type_prices[place] - before
            lowest = growth / cap
            if lowest >= best_each or lowest > node_each:
                break
            size = room[types[place]]
            holds = True
            for column in range(len(request)):
                if size[column] < used[node, column]:
                    holds = False
                    break
            if not holds:
                continue
            chunks = _fits(size, taken[node], request, cap)
            if chunks <= 0:
                continue
            each = growth / chunks
            if each < node_each or (each == node_each and chunks > node_chunks):
                node_each, node_chunks = each, chunks
        if node_each < best_each:
            best, best_each, best_chunks = node, node_each, node_chunks
    return best_each, best, best_chunks


def _put(  # noqa: PLR0917 - one loop over plain arrays, for the compiler
    nodes: Numbers,
    counts: Numbers,
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
    was: Numbers,
    number: int,
    start: int,
    types: Numbers,
    rows: Numbers,
    type_prices: Numbers,
    room: Numbers,
) -> None:
    """As `PlannedNodes._put`."""
    for position in range(len(nodes)):
        node, count = nodes[position], counts[position]
        for column in range(len(request)):
            more = request[column] * count
            if part == EMPTY:
                empty[node, column] += more
            elif part == MINIMUM:
                minimum[node, column] += more
            else:
                running[node, column] += more
            lean[node, column] = empty[node, column] + minimum[node, column]
            used[node, column] = empty[node, column] + max(running[node, column], minimum[node, column])
        was[0, position], was[1, position] = blueprint[node], place[node]
        at = start + place[node] if blueprint[node] == number else start
        while True:  # the first that holds it; if it does not fit where it is, from the start
            holds = True
            for column in range(len(request)):
                if room[types[at], column] < used[node, column]:
                    holds = False
                    break
            if holds:
                break
            if blueprint[node] == number:
                blueprint[node] = -1
                at = start
            else:
                at += 1
        blueprint[node], place[node] = number, at - start
        kind[node], row[node], price[node] = types[at], rows[at], type_prices[at]


@dataclass(frozen=True, slots=True)
class Kernel:
    """The compiled loops."""

    fullest: Callable[..., int]
    cheapest: Callable[..., tuple[float, int, int]]
    put: Callable[..., None]


@lru_cache(maxsize=1)
def compiled() -> Kernel | None:
    """None where numba is not there. What was compiled is kept beside the code, or, where nothing can be written, compiled
    anew by each process."""
    try:
        from numba import njit  # noqa: PLC0415 - takes half a second, which only a large placement is worth
    except ImportError:
        return None
    try:
        return _compile(njit, cache=True)
    except RuntimeError:  # there is no folder that the cache can be written to
        return _compile(njit, cache=False)


def _compile(njit: Any, *, cache: bool) -> Kernel:
    jit = njit(cache=cache, nogil=True)
    names = {**globals(), "_cap": jit(_cap), "_fits": jit(_fits)}
    fullest = jit(FunctionType(_fullest.__code__, names, "_fullest"))
    cheapest = jit(FunctionType(_cheapest.__code__, names, "_cheapest"))
    return Kernel(fullest, cheapest, jit(FunctionType(_put.__code__, names, "_put")))


def plain() -> Kernel:
    """The same loops as they are, for tests."""
    return Kernel(_fullest, _cheapest, _put)
