"""Checks a placement against the rules from scratch. Called by the optimizer for what it found, by the pass where the setting
`placement.check` asks for it, and by tests.

It judges node by node, as plainly as the rules read. kube-scheduler must accept what is bound together with what is placed. This
must hold for every instance type, zone and capacity type that a planned node lists.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.machines import Machine
from reconciler.model.nodes import Node
from reconciler.model.placement import Placement
from reconciler.placement.checker.arriving_nodes import ArrivingNodes
from reconciler.placement.checker.checked_node import CheckedNode, Occupant, occupants_of
from reconciler.placement.checker.chunk_counts import count_violations, unknown_names
from reconciler.placement.checker.dynamic_resources import device_violations
from reconciler.placement.checker.indexed_problem import IndexedProblem
from reconciler.placement.checker.inter_pod_affinity import inter_pod_violations
from reconciler.placement.checker.labels import STABLE_LABELS, Values, decided
from reconciler.placement.checker.limits import limit_violations
from reconciler.placement.checker.node_ports import port_violations
from reconciler.placement.checker.node_readiness import readiness_violations
from reconciler.placement.checker.node_unschedulable import unschedulable_violations
from reconciler.placement.checker.occupancy import Occupancy
from reconciler.placement.checker.planned_nodes import PlannedNodeChecker, shape_violations
from reconciler.placement.checker.reservations import reservation_violations
from reconciler.placement.checker.resources_fit import fit_violations
from reconciler.placement.checker.sample_nodes import SampleNodes
from reconciler.placement.checker.spot_share import spot_violations
from reconciler.placement.checker.taint_toleration import lasting_taints, reserved_violations
from reconciler.placement.checker.topology_spread import spread_violations
from reconciler.placement.checker.volumes import CheckedVolumes
from reconciler.placement.problem import Problem


def violations(problem: Problem, placement: Placement) -> tuple[str, ...]:
    """One sentence for each broken rule, sorted; empty if the placement is valid."""
    indexed = IndexedProblem.of(problem)
    unknown = set(unknown_names(indexed, placement))
    return tuple(sorted(unknown or set(_violations(indexed, placement))))


def _violations(problem: IndexedProblem, placement: Placement) -> Iterable[str]:
    yield from count_violations(problem, placement)
    arriving = ArrivingNodes(problem)
    samples = SampleNodes(problem.cluster.machines)
    volumes = CheckedVolumes(problem.cluster.storage, samples)
    planned_nodes = PlannedNodeChecker(problem, volumes)
    nodes = _nodes_there(problem, arriving)
    of_node = {node.name: node for node in nodes if node.exists}
    of_claim = {node.name: node for node in nodes if not node.exists}
    occupied: dict[int, CheckedNode] = {}
    for item in placement.occupied:
        there = of_claim.get(item.node_claim or "") if item.node is None else of_node.get(item.node)
        if there is None:
            yield f"{item.node or item.node_claim}: there is no such bin"
        else:
            there.occupants += occupants_of(problem.demands, item.holdings)
            occupied[id(there)] = there
    for node in occupied.values():
        yield from existing_violations(problem, arriving, volumes, node)
    for number, planned in enumerate(placement.planned):
        node = planned_nodes.node(planned, number)
        node.occupants += occupants_of(problem.demands, planned.holdings)
        nodes.append(node)
        yield from (f"{node.name}: {words}" for words in planned_nodes.violations(planned, node))
    yield from limit_violations(problem, placement.planned)
    yield from reservation_violations(problem, placement.planned)
    occupancy = Occupancy(nodes)
    yield from spread_violations(occupancy)
    yield from inter_pod_violations(occupancy, problem.cluster.namespaces)
    yield from volumes.shared_violations(nodes)
    for node in nodes:
        yield from volumes.limit_violations(node)
    yield from device_violations(problem, samples, nodes)
    yield from spot_violations(problem, nodes, placement)


def existing_violations(
    problem: IndexedProblem, arriving: ArrivingNodes, volumes: CheckedVolumes, node: CheckedNode
) -> Iterable[str]:
    """Broken rules on an existing or arriving node with chunks."""
    if node.machine is not None:
        yield from unschedulable_violations(node.machine, problem.options.keeping)
    yield from readiness_violations(node)
    for shape in node.shapes():
        yield from (f"{node.name}: {words}" for words in shape_violations(volumes, node, shape))
    yield from reserved_violations(node)
    yield from port_violations(node)
    yield from fit_violations(problem, arriving, node)


def _nodes_there(problem: IndexedProblem, arriving: ArrivingNodes) -> list[CheckedNode]:
    """Existing nodes and arriving NodeClaims, with the pods bound to them."""
    found: dict[str | None, CheckedNode] = {}
    coming = []
    for machine in problem.cluster.machines:
        if machine.node is not None:
            labels = _labels(arriving, machine, machine.node)
            found[machine.name] = CheckedNode(machine.name, labels, lasting_taints(problem, machine), machine)
        elif machine.node_claim is not None:
            coming.append(arriving.node(machine, machine.node_claim))
    for pod in problem.cluster.pods:
        if pod.node_name in found:
            found[pod.node_name].occupants.append(Occupant(pod.shape, pod=pod))
    return [*found.values(), *coming]


def _labels(arriving: ArrivingNodes, machine: Machine, node: Node) -> dict[str, Values]:
    """A node's labels. Until it is registered, they include those of its NodeClaim, which Karpenter copies then."""
    labels, claim = decided(dict(node.labels)), machine.node_claim
    if claim is None or not machine.awaits_registration:
        return labels
    labels = {**arriving.node(machine, claim).labels, **labels, **decided(dict(claim.labels))}
    older = {key: labels[stable] for key, stable in STABLE_LABELS.items() if stable in labels}
    return older | labels
