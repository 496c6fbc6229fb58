"""kube-scheduler's walk over arrays: filter, score, bind, for one pod after the other. `model.py` makes the arrays.

The rules and scores themselves are in the plugins' files in `constraints/`. `bind` is the only function that changes what is on nodes;
with sign -1 it takes a pod back. All of it is plain Python that numba can compile. Inner loops take plain arrays, since tuples of
arrays that are passed on in a loop cost more than what the loop does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from reconciler.placement.arrays import (
    AFFINITY,
    APART,
    BOUND,
    CODE,
    COUNTER,
    ITSELF,
    KEY,
    MIN_DOMAINS,
    SKEW,
    CounterArrays,
    Flags,
    Fractions,
    Numbers,
)
from reconciler.placement.constraints import node_rules, pod_rules, resources_fit
from reconciler.placement.constraints.node_rules import score_node_affinity, score_taints
from reconciler.placement.constraints.pod_rules import score_affinity, score_spread
from reconciler.placement.constraints.resources_fit import fits, score_resources
from reconciler.placement.loops import planned_nodes
from reconciler.placement.loops.kernel import linked
from reconciler.placement.loops.planned_nodes import allowed, least_in

RULES, SOFT, ATTRACTIONS, COUNTED = range(4)
"""Rows of `spans`: where a kind's rows of each of these tables begin. They end where the next kind's begin."""

BinArrays: TypeAlias = tuple[Numbers, Numbers, Numbers, Numbers]
"""domains, room, used, load. domains: keys × nodes; room, used: nodes × resources; load: nodes × CPU and memory, see `weighed`."""
KindArrays: TypeAlias = tuple[Numbers, Numbers, Flags, Numbers, Numbers, Flags]
"""requests, weights, masks, avoided, liked, strict. requests: kinds × resources; weights: kinds × CPU and memory; masks, avoided, liked:
kinds × nodes. masks: whether the rules allow a pod that depend on the node alone. strict: by kind, whether its soft spread is its own."""
RowArrays: TypeAlias = tuple[Numbers, Numbers, Numbers, Numbers, Numbers]
"""spans, rules, soft, attractions, counted: rows of all kinds. rules: as `arrays.py` has them, with BOUND written for each pod. soft: counter, key, maxSkew. attractions: counter, weight. counted: counter."""
ScratchArrays: TypeAlias = tuple[Numbers, Numbers, Fractions, Numbers]
"""able, totals, raw, seen: written anew for each pod. totals: the score of each node."""
Groups: TypeAlias = tuple[BinArrays, CounterArrays, KindArrays, RowArrays, ScratchArrays]


def bind(groups: Groups, kind: int, node: int, sign: int) -> None:
    """Puts a pod of the kind on the node. sign: -1 takes it back."""
    bins, counters, kinds, rows, _ = groups
    _, _, used, load = bins
    _, _, columns, _, counts, totals = counters
    spans, counted = rows[0], rows[4]
    for column in range(used.shape[1]):
        used[node, column] += sign * kinds[0][kind, column]
    for column in range(2):
        load[node, column] += sign * kinds[1][kind, column]
    for place in range(spans[COUNTED, kind], spans[COUNTED, kind + 1]):
        counter = counted[place]
        domain = columns[counter, node]
        if domain >= 0:
            counts[counter, domain] += sign
            totals[counter] += sign


def set_bounds(rules: Numbers, counters: CounterArrays) -> bool:
    """Writes how many pods may count in a domain under each spread rule. Returns whether the pod is the first of those with affinity
    to each other, to which affinity does not apply."""
    _, width, _, present, counts, totals = counters
    alone = True
    for row in range(len(rules)):
        counter = rules[row, COUNTER]
        if rules[row, SKEW] > 0:
            least = least_in(counts[counter, : width[counter]], present[counter], -1, rules[row, MIN_DOMAINS])
            rules[row, BOUND] = rules[row, SKEW] + least
        elif rules[row, CODE] == AFFINITY and (totals[counter] > 0 or rules[row, ITSELF] == 0):
            alone = False
    return alone


def rules_allow(
    rules: Numbers,
    domains: Numbers,
    counts: Numbers,
    alone: bool,  # noqa: FBT001 - numba has no named arguments
    node: int,
) -> bool:
    """Whether the rules between pods allow the pod on the node. A node without the label has no domain."""
    for row in range(len(rules)):
        code, counter, domain = rules[row, CODE], rules[row, COUNTER], domains[rules[row, KEY], node]
        if domain < 0:
            if rules[row, APART] == 0:
                return False
        elif not (code == AFFINITY and alone) and allowed(code, rules[row, BOUND], counts[counter, domain]) <= 0:
            return False
    return True


def filter_nodes(groups: Groups, kind: int, begin: int, most: int) -> tuple[int, int]:
    """Writes the nodes that are able, at most `most`, looking from node `begin` on.

    Returns how many are able, and how many were looked at."""
    bins, counters, kinds, rows, scratch = groups
    domains, room, used, _ = bins
    counts = counters[4]
    spans, able = rows[0], scratch[0]
    request, mask = kinds[0][kind], kinds[2][kind]
    rules = rows[1][spans[RULES, kind] : spans[RULES, kind + 1]]
    alone = set_bounds(rules, counters)
    found, nodes = 0, len(mask)
    for step in range(nodes):
        node = (begin + step) % nodes
        if (
            mask[node]
            and fits(room, used, node, request)
            and (len(rules) == 0 or rules_allow(rules, domains, counts, alone, node))
        ):
            able[found] = node
            found += 1
            if found == most:
                return found, step + 1
    return found, nodes


def score_nodes(groups: Groups, kind: int, found: int) -> None:
    """Writes the totals of the nodes that are able, by the plugins of the default profile and their weights."""
    bins, counters, kinds, rows, scratch = groups
    domains, room, used, load = bins
    requests, weights, _, avoided, liked, strict = kinds
    spans, _, soft, attractions, _ = rows
    every, totals, raw, seen = scratch
    able = every[:found]
    for index in range(found):
        totals[able[index]] = 0
    score_taints(totals, able, avoided[kind])
    score_node_affinity(totals, able, liked[kind])
    score_resources(totals, able, room, used, load, requests[kind], weights[kind])
    of_kind = soft[spans[SOFT, kind] : spans[SOFT, kind + 1]]
    if len(of_kind) > 0:
        score_spread(totals, raw, able, of_kind, strict[kind], domains, counters, seen)
    drawn = attractions[spans[ATTRACTIONS, kind] : spans[ATTRACTIONS, kind + 1]]
    if len(drawn) > 0:
        score_affinity(totals, raw, able, drawn, domains, counters)


def schedule(groups: Groups, order: Numbers, lots: Numbers, most: int) -> None:
    """Binds a pod for each kind of the order's first row, one after the other. Writes its node to the second row, -1 for none.

    lots: by node; of equal scores the lowest lot wins. most: how many able nodes are looked for."""
    able, totals = groups[4][0], groups[4][1]
    begin = 0
    for place in range(order.shape[1]):
        kind = order[0, place]
        found, seen = filter_nodes(groups, kind, begin, most)
        begin = (begin + seen) % len(lots)
        best = -1
        if found > 1:
            score_nodes(groups, kind, found)
        for index in range(found):
            node = able[index]
            if best < 0 or totals[node] > totals[best] or (totals[node] == totals[best] and lots[node] < lots[best]):
                best = node
        order[1, place] = best
        if best >= 0:
            bind(groups, kind, best, 1)


def take_back(groups: Groups, order: Numbers) -> None:
    """Takes back what `schedule` bound, the last pod first."""
    for place in range(order.shape[1] - 1, -1, -1):
        if order[1, place] >= 0:
            bind(groups, order[0, place], order[1, place], -1)


def settle(groups: Groups, order: Numbers, lots: Numbers, most: int) -> None:
    """As `schedule`, and pods that wait are tried again once others were bound: some that they want beside them may have come only then."""
    schedule(groups, order, lots, most)
    again, before = np.flatnonzero(order[1] < 0), order.shape[1]
    while 0 < len(again) < before:
        before = len(again)
        tried = np.full((2, before), -1)
        tried[0] = order[0][again]
        schedule(groups, tried, lots, most)
        order[1][again] = tried[1]
        again = again[tried[1] < 0]


def strain_of(groups: Groups, pods: Numbers, lots: Numbers, most: int, targets: Flags, further: Numbers) -> int:
    """How hard an order is on one demand: a thousand for each of its pods that waits; if none does, less one for each further pod of
    its kind that would find room.

    pods: the kind of each pod. targets: by kind, whether its pods are of the demand. further: as `schedule` takes them. What is bound is
    taken back."""
    order = np.full((2, len(pods)), -1)
    order[0] = pods
    settle(groups, order, lots, most)
    strain = 1000 * np.count_nonzero((order[1] < 0) & targets[pods])
    if strain == 0:
        schedule(groups, further, lots, most)
        strain = -np.count_nonzero(further[1] >= 0)
        take_back(groups, further)
    take_back(groups, order)
    return int(strain)


def move(values: Numbers, place: int, to: int) -> None:
    """Takes a pod of the order, or a node's lot, elsewhere; all between move up by one."""
    step, taken = 1 if to > place else -1, values[place]
    for at in range(place, to, step):
        values[at] = values[at + step]
    values[to] = taken


def next_seed(seed: int) -> int:
    """The next of a fixed row of numbers below 2³¹. The lowest bits repeat soon: whoever draws from a seed drops eight."""
    return (seed * 1103515245 + 12345) % 2147483648


def worsen(
    groups: Groups, pods: Numbers, lots: Numbers, most: int, targets: Flags, further: Numbers, tries: int, seed: int
) -> int:
    """Looks for an order in which pods of one demand wait: moves a pod, or the lot of a node, and keeps what is not less hard on it.

    Writes pods and lots; see `strain_of` for the others and for what it returns. seed: below 2³¹."""
    strain = strain_of(groups, pods, lots, most, targets, further)
    draws = np.zeros(3, dtype=np.int64)
    for _ in range(tries):
        if strain > 0:
            break
        for index in range(3):
            seed = next_seed(seed)
            draws[index] = seed >> 8
        of_pods = draws[0] % 4 > 0
        values = pods if of_pods else lots
        place, to = draws[1] % len(values), draws[2] % len(values)
        if of_pods and pods[place] == pods[to]:
            continue
        move(values, place, to)
        found = strain_of(groups, pods, lots, most, targets, further)
        if found >= strain:
            strain = found
        else:
            move(values, to, place)
    return strain


@dataclass(frozen=True, slots=True)
class Walk:
    """The functions that `model.py` calls, compiled or not."""

    filter_nodes: Callable[..., tuple[int, int]]
    schedule: Callable[..., None]
    settle: Callable[..., None]
    take_back: Callable[..., None]
    worsen: Callable[..., int]


PLAIN = Walk(filter_nodes, schedule, settle, take_back, worsen)
_PARTS = (
    (planned_nodes, ("allowed", "least_in")),
    (pod_rules, ("score_spread", "score_affinity")),
    (node_rules, ("score_taints", "score_node_affinity")),
    (resources_fit, ("fits", "balance", "score_resources")),
)
_OWN = (
    *("bind", "set_bounds", "rules_allow", "filter_nodes", "score_nodes", "schedule", "take_back"),
    *("settle", "strain_of", "move", "next_seed", "worsen"),
)


@lru_cache(maxsize=1)
def compiled_walk() -> Walk:
    """The same compiled; plain where numba is absent."""
    made = linked([*((vars(file), names) for file, names in _PARTS), (globals(), _OWN)])
    return PLAIN if made is None else Walk(*(made[name] for name in Walk.__slots__))
