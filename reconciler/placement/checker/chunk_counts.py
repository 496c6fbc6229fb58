"""Whether a placement fits the problem: it names only what exists, and each chunk is listed once, placed or unplaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain

from reconciler.model.placement import Holding, OccupiedBin, Placement, PlannedNode
from reconciler.model.refs import ObjectRef
from reconciler.placement.checker.indexed_problem import IndexedProblem


def unknown_names(problem: IndexedProblem, placement: Placement) -> Iterable[str]:
    """Names of things that do not exist. If there are any, nothing else can be judged."""
    for planned in placement.planned:
        if planned.node_pool not in problem.pools:
            yield f"NodePool {planned.node_pool} does not exist"
        for name in planned.instance_types:
            if name not in problem.instance_types:
                yield f"instance type {name} does not exist"
    for holding in _held((*placement.occupied, *placement.planned)):
        demand = problem.demands.get(holding.demand)
        if demand is None or holding.group >= len(demand.groups):
            yield f"{holding.demand}: there is no group {holding.group} of it"


def count_violations(problem: IndexedProblem, placement: Placement) -> Iterable[str]:
    placed = Counter[tuple[ObjectRef, int]]()
    for item in _held((*placement.occupied, *placement.planned)):
        placed[item.demand, item.group] += item.count
    for missing in placement.unplaced:
        placed[missing.demand, missing.group] += missing.count
    wanted = {
        (demand.ref, number): group.count
        for demand in problem.demands.values()
        for number, group in enumerate(demand.groups)
        if group.count
    }
    if placed != wanted:
        yield f"placed and unplaced are {sorted(placed.items())}, asked for were {sorted(wanted.items())}"
    unplaced = {item.demand for item in placement.unplaced}
    opening = {holding.demand for holding in _held(placement.planned)}
    somewhere = opening | {holding.demand for holding in _held(placement.occupied)}
    for ref, demand in problem.demands.items():
        if ref in opening and not demand.opens_nodes:
            yield f"{ref}: no new nodes may be made for it"
        if demand.whole and ref in unplaced and ref in somewhere:
            yield f"{ref}: placed in part"


def _held(bins: Iterable[OccupiedBin | PlannedNode]) -> Iterable[Holding]:
    return chain.from_iterable(item.holdings for item in bins)
