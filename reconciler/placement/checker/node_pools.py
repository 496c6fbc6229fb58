"""Rules on what NodePools make: limits, minValues, capacity reservations, as in Karpenter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    OPERATING_SYSTEM_LABEL,
    InstanceType,
    NodeClaim,
    NodePool,
    Offering,
)
from reconciler.model.placement import PlannedNode
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import Machine
from reconciler.placement.checker.checked_nodes import IndexedProblem
from reconciler.placement.checker.offerings import (
    RESERVED,
    can_be_bought,
    holds,
    labels_as_offered,
    labels_of,
    offerings_for,
    stable_label,
    systems_for,
    ways_to_buy,
)


def limit_violations(problem: IndexedProblem, planned: Sequence[PlannedNode]) -> Iterable[str]:
    """Limits that are exceeded if each planned node becomes the largest type it lists. Only resources that it adds count.

    As filterByRemainingResources in Karpenter's pkg/controllers/provisioning/scheduling.
    """
    added: dict[str, list[PlannedNode]] = {}
    for node in planned:
        added.setdefault(node.node_pool, []).append(node)
    for name, nodes in added.items():
        limits = problem.pools[name].limits
        if limits is None:
            continue
        largest = {names: _largest(problem, names) for names in {node.instance_types for node in nodes}}
        total = Resources.total(largest[node.instance_types] for node in nodes) + Resources.of({"nodes": len(nodes)})
        capacities = [_machine_capacity(problem, item) for item in problem.cluster.machines if item.node_pool == name]
        used = Resources.total(capacities) + Resources.of({"nodes": len(capacities)})
        for resource, limit in limits:
            if total.get(resource) and used.get(resource) + total.get(resource) > limit:
                yield f"NodePool {name}: {resource} exceeds its limit of {limit}"


def _largest(problem: IndexedProblem, names: Iterable[str], least: Resources = Resources()) -> Resources:  # noqa: B008 - immutable
    """The largest amount of each resource, in `least` and among the known types."""
    for name in names:
        if name in problem.instance_types:
            least = least.at_least(problem.instance_types[name].capacity)
    return least


def _machine_capacity(problem: IndexedProblem, machine: Machine) -> Resources:
    """A machine's capacity. A node that is coming up may not report all of it yet. A NodeClaim counts as its largest type."""
    node, claim = machine.node, machine.node_claim
    capacity = (node.capacity if node else Resources()).at_least(claim.capacity if claim else Resources())
    named = machine.label(INSTANCE_TYPE_LABEL)
    asked = claim.requirements if claim and node is None else ()
    listed = next((item.values for item in asked if item.key == INSTANCE_TYPE_LABEL), ())
    return _largest(problem, listed if named is None else (named,), capacity)


_Labels = set[tuple[str, str]]


def min_values_violations(problem: IndexedProblem, planned: PlannedNode) -> Iterable[str]:
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
    has = _listed(problem, planned)
    if CAPACITY_TYPE_LABEL in minimums:
        listed = [_open_to(problem, pool, problem.instance_types[name]) for name in planned.instance_types]
        has |= {(CAPACITY_TYPE_LABEL, RESERVED)}.intersection(set[tuple[str, str]]().union(*listed))
    for key, least in minimums.items():
        left = sum(name == stable_label(key) for name, _ in has)
        if left < least:
            yield f"minValues of {key} is {least}, {left} are left"


def _listed(problem: IndexedProblem, planned: PlannedNode) -> _Labels:
    has: _Labels = set()
    for name, zone, capacity_type in product(planned.instance_types, planned.zones, planned.capacity_types):
        instance_type = problem.instance_types[name]
        has.update(labels_of(instance_type).items())
        has.update((OPERATING_SYSTEM_LABEL, system) for system in systems_for(planned, instance_type))
        for offering in offerings_for(planned, instance_type, zone, capacity_type):
            has.update(labels_as_offered(offering).items())
    return has


def _open_to(problem: IndexedProblem, pool: NodePool, instance_type: InstanceType) -> _Labels:
    """The type's labels, for every way in which the NodePool may buy it."""
    found: _Labels = set()
    for offering, labels in ways_to_buy(instance_type):
        asked = [item for item in pool.template.requirements if item.key in labels]
        backed_off = (instance_type.name, offering.zone, offering.capacity_type) in problem.options.back_offs
        if not backed_off and all(holds(item, labels[item.key]) for item in asked):
            found |= labels.items()
    return found


def reservation_violations(problem: IndexedProblem, planned: Sequence[PlannedNode]) -> Iterable[str]:
    """Reservations with too many planned nodes. A node counts in each that it may use. Where offerings disagree about how many are
    left, the least counts (Karpenter's ReservationManager, provisioning/scheduling)."""
    left: dict[str, int] = {}
    for name, _, offering in _reserved(problem):
        if offering.reservation_capacity is not None:
            left[name] = min(left.get(name, offering.reservation_capacity), offering.reservation_capacity)
    alike = Counter((node.requirements, node.instance_types) for node in planned if RESERVED in node.capacity_types)
    users = Counter[str]()
    for (requirements, names), count in alike.items():
        users.update(dict.fromkeys(_usable(problem, requirements, names), count))
    coming = Counter[str]()
    for claim in problem.cluster.node_claims:
        if _is_coming(claim):
            coming.update(_usable(problem, _asked(claim), problem.instance_types))
    for name, count in sorted(users.items()):
        free = max(0, left.get(name, 0) - coming[name])
        if count > free:
            yield f"reservation {name}: {count} nodes are planned in it, {free} are left"


def _reserved(problem: IndexedProblem) -> Iterator[tuple[str, InstanceType, Offering]]:
    """Reserved offerings with the reservation's name, from whichever label the provider uses."""
    for instance_type in problem.instance_types.values():
        for offering in instance_type.offerings:
            if offering.capacity_type == RESERVED:
                names = [
                    item.values[0]
                    for item in offering.requirements
                    if item.values and item.key.endswith("reservation-id")
                ]
                yield (names[0] if names else f"{instance_type.name} in {offering.zone}"), instance_type, offering


def _usable(problem: IndexedProblem, requirements: Sequence[Requirement], names: Iterable[str]) -> set[str]:
    """The reservations of these types that meet the requirements and are not used up."""
    listed, found = set(names), set()
    for reservation, instance_type, offering in _reserved(problem):
        if instance_type.name in listed and can_be_bought(offering):
            labels = labels_of(instance_type) | labels_as_offered(offering)
            if all(item.key not in labels or holds(item, labels[item.key]) for item in requirements):
                found.add(reservation)
    return found


def _asked(claim: NodeClaim) -> list[Requirement]:
    return [*claim.requirements, *(Requirement(key, Operator.IN, (value,)) for key, value in claim.labels)]


def _is_coming(claim: NodeClaim) -> bool:
    """Whether it will use a node of a reservation that the provider does not count yet."""
    capacity_types = [
        item.values for item in _asked(claim) if item.key == CAPACITY_TYPE_LABEL and item.operator is Operator.IN
    ]
    return (RESERVED,) in capacity_types and claim.condition("Launched") != "True" and not claim.deleting
