"""Rules on what NodePools make: limits, minValues, capacity reservations, as in Karpenter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from reconciler.model.launch_options import RESERVED, LaunchOption, reservation_of
from reconciler.model.machines import Machine
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, NodeClaim, stable_label
from reconciler.model.placement import PlannedNode
from reconciler.model.quantity import Resources
from reconciler.model.refs import by_key
from reconciler.model.requirements import Operator
from reconciler.placement.checker.checked_nodes import IndexedProblem
from reconciler.placement.checker.offerings import settled


def limit_violations(problem: IndexedProblem, planned: Sequence[PlannedNode]) -> Iterable[str]:
    """Limits that are exceeded if each planned node becomes the largest type it lists. Only resources that it adds count.

    As filterByRemainingResources in Karpenter's pkg/controllers/provisioning/scheduling.
    """
    added = by_key((node.node_pool, node) for node in planned)
    for name, nodes in added.items():
        limits = problem.pools[name].limits
        if limits is None:
            continue
        listed = {node.instance_types for node in nodes}
        largest = {names: Resources.largest(_capacities(problem, names)) for names in listed}
        total = Resources.total(largest[node.instance_types] for node in nodes) + Resources.of({"nodes": len(nodes)})
        capacities = [_machine_capacity(problem, item) for item in problem.cluster.machines if item.node_pool == name]
        used = Resources.total(capacities) + Resources.of({"nodes": len(capacities)})
        for resource, limit in limits:
            if total.get(resource) and used.get(resource) + total.get(resource) > limit:
                yield f"NodePool {name}: {resource} exceeds its limit of {limit}"


def _machine_capacity(problem: IndexedProblem, machine: Machine) -> Resources:
    """A machine's capacity. A node that is coming up may not report all of it yet. A NodeClaim counts as its largest type."""
    node, claim = machine.node, machine.node_claim
    own = [side.capacity for side in machine.sides]
    named = machine.label(INSTANCE_TYPE_LABEL)
    asked = claim.requirements if claim and node is None else ()
    listed = next((item.values for item in asked if item.key == INSTANCE_TYPE_LABEL), ())
    return Resources.largest([*own, *_capacities(problem, listed if named is None else (named,))])


def _capacities(problem: IndexedProblem, names: Iterable[str]) -> list[Resources]:
    """Of those of the types that are known."""
    return [problem.instance_types[name].capacity for name in names if name in problem.instance_types]


def min_values_violations(problem: IndexedProblem, planned: PlannedNode, ways: Sequence[LaunchOption]) -> Iterable[str]:
    """Minimums (minValues) that a planned node does not meet. Only labels of the types count, not those that the NodePool adds.

    As Karpenter's InstanceTypes.SatisfiesMinValues (pkg/cloudprovider/types.go). A node of a capacity reservation has no choice.
    """
    pool = problem.pools[planned.node_pool]
    minimums = {item.key: item.min_values for item in pool.template.requirements if item.min_values is not None}
    if not minimums:
        return
    for item in planned.requirements:
        if item.operator is Operator.IN and len(item.values) < (item.min_values or 0):
            yield f"asks for {item.min_values} values of {item.key} and lists {len(item.values)}: the API server refuses it"
    if planned.capacity_types == (RESERVED,):
        return
    has = {label for way in ways for label in way.labels.items()}
    open_to = problem.catalog.ways((), pool.template.requirements)
    reserved = [way for way in open_to if way.offering.capacity_type == RESERVED]
    names = {way.instance_type.name for way in reserved if way.place not in problem.options.back_offs}
    if names.intersection(planned.instance_types):
        has.add((CAPACITY_TYPE_LABEL, RESERVED))
    for key, least in minimums.items():
        left = sum(name == stable_label(key) for name, _ in has)
        if left < least:
            yield f"minValues of {key} is {least}, {left} are left"


def reservation_violations(problem: IndexedProblem, planned: Sequence[PlannedNode]) -> Iterable[str]:
    """Reservations with too many planned nodes. A node counts in each that it may use. Where offerings disagree about how many are
    left, the least counts (Karpenter's ReservationManager, provisioning/scheduling)."""
    left: dict[str, int] = {}
    for item in problem.instance_types.values():
        for offering in item.offerings:
            if offering.reservation_capacity is not None:
                name, _ = reservation_of(item, offering)
                left[name] = min(left.get(name, offering.reservation_capacity), offering.reservation_capacity)
    alike = Counter((node.requirements, node.instance_types) for node in planned if RESERVED in node.capacity_types)
    users = Counter[str]()
    for (requirements, names), count in alike.items():
        ways = (way for way in problem.catalog.ways((), requirements) if way.instance_type.name in names)
        users.update(dict.fromkeys(_reservations(ways), count))
    coming = Counter[str]()
    for claim in problem.cluster.node_claims:
        if _is_coming(claim):
            coming.update(_reservations(problem.catalog.ways(claim.labels, claim.requirements)))
    for name, count in sorted(users.items()):
        free = max(0, left.get(name, 0) - coming[name])
        if count > free:
            yield f"reservation {name}: {count} nodes are planned in it, {free} are left"


def _reservations(ways: Iterable[LaunchOption]) -> set[str]:
    return {name for way in ways if (name := reservation_of(way.instance_type, way.offering)[0])}


def _is_coming(claim: NodeClaim) -> bool:
    """Whether it will use a node of a reservation that the provider does not count yet."""
    is_reserved = settled(claim.labels, claim.requirements).get(CAPACITY_TYPE_LABEL) == RESERVED
    return is_reserved and claim.condition("Launched") != "True" and not claim.deleting
