"""Judges what a rehearsal says of the orders in which pods may come: where each is bound no rule is broken, and nobody waits untold.

The nodes are taken as the rehearsal has them. Which of several possible nodes a pod gets is a matter of kube-scheduler's scores, and is not
judged: so a wait is known to be one, while that nobody waits is known of the orders that are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from reconciler.model.machines import Machine
from reconciler.model.nodes import Node
from reconciler.model.placement import Binding, OccupiedBin, Placement, PlannedNode, Wait
from reconciler.model.pods import Pod, PodShape
from reconciler.model.refs import ObjectRef
from reconciler.placement.checker.checked_nodes import CheckedNode, Occupant
from reconciler.placement.checker.node_rules import (
    CheckedVolumes,
    loads,
    overcommitted,
    port_violations,
    unschedulable_violations,
)
from reconciler.placement.checker.offerings import decided
from reconciler.placement.checker.planned_nodes import shape_violations
from reconciler.placement.checker.pod_rules import Namespaces, Occupancy, inter_pod_violations, spread_violations
from reconciler.placement.problem import Problem

Order = Sequence[Binding]


def rehearsal_violations(
    problem: Problem,
    placement: Placement,
    nodes: Sequence[Node],
    pods: Sequence[Pod],
    waits: Sequence[Wait],
    orders: Iterable[Order],
) -> Iterable[str]:
    """nodes: as they will stand, with these pods running. waits: what is told. orders: others that were tried."""
    told = {wait.demand for wait in waits}
    for wait in waits:
        own = [item.node for item in wait.bindings if item.demand == wait.demand]
        if (own.count(""), len(own)) != (wait.waiting, wait.promised):
            yield f"{wait.demand}: {wait.waiting} of {wait.promised} wait as it is told, in its order {own.count('')} of {len(own)}"
    for order in (*(wait.bindings for wait in waits), *orders):
        untold = {item.demand for item in order if not item.node} - told
        yield from (f"{ref}: its pods wait in an order that was tried, and nobody is told" for ref in sorted(untold))
        yield from _unpromised(problem, placement, order)
        yield from order_violations(problem, nodes, pods, order)


def _unpromised(problem: Problem, placement: Placement, order: Order) -> Iterable[str]:
    """Objections where more or fewer pods of a shape come than chunks of it have room."""
    groups = {item.ref: item.groups for item in problem.demands}
    unlike = Counter[tuple[ObjectRef, PodShape]]()
    for item in order:
        unlike[item.demand, groups[item.demand][item.group].shape] += 1
    coming = {ref for ref, _ in unlike}
    bins: list[OccupiedBin | PlannedNode] = [*placement.occupied, *placement.planned]
    for holding in (holding for item in bins for holding in item.holdings):
        if holding.demand in coming:
            unlike[holding.demand, groups[holding.demand][holding.group].shape] -= holding.count
    wrong = {ref for (ref, _), count in unlike.items() if count}
    yield from (f"{ref}: not as many pods come as have room" for ref in sorted(wrong))


def order_violations(problem: Problem, nodes: Iterable[Node], pods: Iterable[Pod], order: Order) -> Iterable[str]:
    """What is wrong once all pods of the order have come: each that is bound is where every rule allows it, and no node takes one that waits."""
    demands, namespaces = {item.ref: item for item in problem.demands}, problem.view.namespaces
    there, volumes = _with_pods(nodes, pods), CheckedVolumes(problem.view.storage)
    came = Counter((item.demand, item.group, item.node) for item in order)
    for (ref, group, name), count in came.items():
        if name in there:
            there[name].occupants.append(Occupant(demands[ref].groups[group].shape, count, demand=demands[ref]))
        elif name:
            yield f"{ref}: there is no node {name}"
    everywhere = list(there.values())
    for node in everywhere:
        yield from _broken(node, volumes)
    yield from _broken_between(everywhere, namespaces)
    for node in everywhere:
        # They run from here on, so that one more pod is judged as kube-scheduler judges it.
        node.occupants = [item if item.pod else Occupant(item.shape, item.count) for item in node.occupants]
    for ref, group in sorted({(ref, group) for ref, group, name in came if not name}):
        for node in everywhere:
            node.occupants.append(Occupant(demands[ref].groups[group].shape, demand=demands[ref]))
            if not any(_broken(node, volumes)) and not any(_broken_between(everywhere, namespaces)):
                yield f"{ref}: a pod waits, and {node.name} takes it"
            node.occupants.pop()


def _with_pods(nodes: Iterable[Node], pods: Iterable[Pod]) -> dict[str, CheckedNode]:
    there = {
        node.name: CheckedNode(node.name, decided(dict(node.labels)), node.taints, Machine(node, None))
        for node in nodes
    }
    for pod in pods:
        if pod.node_name in there and not pod.is_finished:
            there[pod.node_name].occupants.append(Occupant(pod.shape, pod=pod))
    return there


def _broken(checked: CheckedNode, volumes: CheckedVolumes) -> Iterable[str]:
    """Rules on one node."""
    node = checked.machine.node if checked.machine else None
    if node is None or not any(item.is_chunk for item in checked.occupants):
        return
    yield from unschedulable_violations(checked, ())
    for shape in checked.shapes():
        yield from (f"{checked.name}: {words}" for words in shape_violations(volumes, checked, shape))
    yield from port_violations(checked)
    yield from (f"{checked.name}: {words}" for words in overcommitted(loads(checked), node.allocatable))


def _broken_between(nodes: Sequence[CheckedNode], namespaces: Namespaces) -> Iterable[str]:
    """Rules between pods."""
    occupancy = Occupancy(nodes)
    yield from spread_violations(occupancy)
    yield from inter_pod_violations(occupancy, namespaces)
