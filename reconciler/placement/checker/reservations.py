"""Capacity reservations: at most as many planned nodes as are left (Karpenter's ReservationManager, provisioning/scheduling)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, InstanceType, NodeClaim, Offering
from reconciler.model.placement import PlannedNode
from reconciler.model.requirements import Operator, Requirement
from reconciler.placement.checker.indexed_problem import IndexedProblem
from reconciler.placement.checker.labels import holds
from reconciler.placement.checker.offerings import RESERVED, can_be_bought, labels_as_offered, labels_of


def reservation_violations(problem: IndexedProblem, planned: Sequence[PlannedNode]) -> Iterable[str]:
    """Reservations with too many planned nodes. A node counts in each that it may use. Where offerings disagree about how many are
    left, the least counts."""
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
