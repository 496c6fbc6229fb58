"""Checks that no more nodes are planned in a capacity reservation than it has left. Used by violations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.nodes import InstanceType, NodeClaim, Offering
from reconciler.model.placement import PlannedNode
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.checker.sites import holds

_CAPACITY_TYPE, _INSTANCE_TYPE = "karpenter.sh/capacity-type", "node.kubernetes.io/instance-type"


def reservation_violations(
    view: ClusterView, types: Mapping[str, InstanceType], planned: Sequence[PlannedNode]
) -> Iterable[str]:
    """A node counts in every reservation that it may come to use, and so does a NodeClaim for reserved capacity that is not
    launched yet. Of several counts of what is left the least is sure."""
    left: dict[str, int] = {}
    for kind in types.values():
        for offering in kind.offerings:
            if offering.capacity_type == "reserved" and offering.reservation_capacity is not None:
                name = _name(kind, offering)
                left[name] = min(left.get(name, offering.reservation_capacity), offering.reservation_capacity)
    reserved = _Reserved(types.values())
    users: dict[str, int] = {}
    for node in planned:
        for name in reserved.by(node) if "reserved" in node.capacity_types else ():
            users[name] = users.get(name, 0) + 1
    coming: dict[str, int] = {}
    for claim in view.node_claims:
        for name in reserved.compatibility(_asked(claim)) if _is_coming(claim) else ():
            coming[name] = coming.get(name, 0) + 1
    for name, count in sorted(users.items()):
        free = max(0, left.get(name, 0) - coming.get(name, 0))
        if count > free:
            yield f"reservation {name}: {count} nodes are planned in it, {free} are left"


def _name(kind: InstanceType, offering: Offering) -> str:
    named = [item.values[0] for item in offering.requirements if item.key.endswith("reservation-id") and item.values]
    return named[0] if named else f"{kind.name} in {offering.zone}"


class _Reserved:
    """Offerings of reservations that can be had, with their labels, by type. Nodes that ask for the same are looked at once."""

    def __init__(self, types: Iterable[InstanceType]) -> None:
        self._sold = {
            kind.name: [
                (_name(kind, offering), _labels(kind, offering))
                for offering in kind.offerings
                if offering.capacity_type == "reserved" and offering.available and offering.reservation_capacity
            ]
            for kind in types
        }
        self._sold = {name: sold for name, sold in self._sold.items() if sold}
        self._known: dict[tuple[object, ...], frozenset[str]] = {}

    def by(self, node: PlannedNode) -> frozenset[str]:
        """Reservations that a planned node may come to use."""
        key = (node.instance_types, node.requirements)
        if key not in self._known:
            self._known[key] = self.compatibility(node.requirements, node.instance_types)
        return self._known[key]

    def compatibility(self, requirements: Sequence[Requirement], names: Iterable[str] | None = None) -> frozenset[str]:
        """Reservations of these types (None: any) that meet requirements."""
        return frozenset(
            reservation
            for name in (self._sold if names is None else names)
            for reservation, labels in self._sold.get(name, ())
            if all(item.key not in labels or holds(item, labels[item.key]) for item in requirements)
        )


def _labels(kind: InstanceType, offering: Offering) -> dict[str, str]:
    sold_as = {item.key: item.values[0] for item in offering.requirements if len(item.values) == 1}
    return dict(kind.labels) | {_INSTANCE_TYPE: kind.name} | sold_as


def _asked(claim: NodeClaim) -> list[Requirement]:
    return [*claim.requirements, *(Requirement(key, Operator.IN, (value,)) for key, value in claim.labels)]


def _is_coming(claim: NodeClaim) -> bool:
    """Whether it will take a node of a reservation, of which nobody tells yet."""
    kinds = [item for item in _asked(claim) if item.key == _CAPACITY_TYPE and item.operator is Operator.IN]
    only_reserved = any(item.values == ("reserved",) for item in kinds)
    return only_reserved and claim.condition("Launched") != "True" and not claim.deleting
