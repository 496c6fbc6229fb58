"""Checks a placement against the rules from scratch. Called by the optimizer for what it found, by the pass where the setting
`placement.check` asks for it, and by tests.

It judges node by node, as plainly as the rules read. kube-scheduler must accept what is bound together with what is placed. This
must hold for every instance type, zone and capacity type that a planned node lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from reconciler.model.placement import Holding, OccupiedBin, Placement, PlannedNode
from reconciler.model.refs import ObjectRef
from reconciler.placement.checker.checked_nodes import CheckedNode, IndexedProblem, nodes_there
from reconciler.placement.checker.node_pools import limit_violations, reservation_violations
from reconciler.placement.checker.node_rules import (
    CheckedVolumes,
    fit_violations,
    port_violations,
    readiness_violations,
    reserved_violations,
    unschedulable_violations,
)
from reconciler.placement.checker.planned_nodes import PlannedNodeChecker, shape_violations
from reconciler.placement.checker.pod_rules import Occupancy, inter_pod_violations, spread_violations
from reconciler.placement.problem import Problem


def violations(problem: Problem, placement: Placement) -> tuple[str, ...]:
    """One sentence for each broken rule, sorted; empty if the placement is valid."""
    indexed = IndexedProblem(problem)
    unknown = set(unknown_names(indexed, placement))
    return tuple(sorted(unknown or set(_violations(indexed, placement))))


def _violations(problem: IndexedProblem, placement: Placement) -> Iterable[str]:
    yield from count_violations(problem, placement)
    volumes = CheckedVolumes(problem.cluster.storage)
    planned_nodes = PlannedNodeChecker(problem, volumes)
    nodes = nodes_there(problem)
    there = {(node.exists, node.name): node for node in nodes}
    occupied: dict[int, CheckedNode] = {}
    for item in placement.occupied:
        node = there.get((item.node is not None, item.node or item.node_claim or ""))
        if node is None:
            yield f"{item.node or item.node_claim}: there is no such bin"
        else:
            node.hold(problem.demands, item.holdings)
            occupied[id(node)] = node
    for node in occupied.values():
        yield from unschedulable_violations(node, problem.options.keeping)
        yield from readiness_violations(node)
        for shape in node.shapes():
            yield from (f"{node.name}: {words}" for words in shape_violations(volumes, node, shape))
        yield from reserved_violations(node)
        yield from port_violations(node)
        yield from fit_violations(problem, node)
    for number, planned in enumerate(placement.planned):
        node = planned_nodes.node(planned, number)
        node.hold(problem.demands, planned.holdings)
        nodes.append(node)
        yield from (f"{node.name}: {words}" for words in planned_nodes.violations(planned, node))
    yield from limit_violations(problem, placement.planned)
    yield from reservation_violations(problem, placement.planned)
    occupancy = Occupancy(nodes)
    yield from spread_violations(occupancy)
    yield from inter_pod_violations(occupancy, problem.cluster.namespaces)


def unknown_names(problem: IndexedProblem, placement: Placement) -> Iterable[str]:
    """Names of things that do not exist. If there are any, nothing else can be judged."""
    for planned in placement.planned:
        if planned.node_pool not in problem.pools:
            yield f"NodePool {planned.node_pool} does not exist"
        for name in planned.instance_types:
            if name not in problem.instance_types:
                yield f"instance type {name} does not exist"
    for holding in _holdings((*placement.occupied, *placement.planned)):
        demand = problem.demands.get(holding.demand)
        if demand is None or holding.group >= len(demand.groups):
            yield f"{holding.demand}: there is no group {holding.group} of it"


def count_violations(problem: IndexedProblem, placement: Placement) -> Iterable[str]:
    """Each chunk is listed once, placed or unplaced."""
    placed = Counter[tuple[ObjectRef, int]]()
    for item in _holdings((*placement.occupied, *placement.planned)):
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
    opening = {holding.demand for holding in _holdings(placement.planned)}
    somewhere = opening | {holding.demand for holding in _holdings(placement.occupied)}
    for ref, demand in problem.demands.items():
        if ref in opening and not demand.opens_nodes:
            yield f"{ref}: no new nodes may be made for it"
        if demand.whole and ref in unplaced and ref in somewhere:
            yield f"{ref}: placed in part"


def _holdings(bins: Iterable[OccupiedBin | PlannedNode]) -> Iterable[Holding]:
    return (holding for item in bins for holding in item.holdings)
