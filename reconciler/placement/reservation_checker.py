"""Checks that no more nodes are planned in a capacity reservation than it has left. Used by checker; shares nothing with the
engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.nodes import InstanceType, Offering
from reconciler.model.placement import PlannedNode
from reconciler.placement.checked_sites import holds


def reservation_violations(types: Mapping[str, InstanceType], planned: Sequence[PlannedNode]) -> Iterable[str]:
    """A node counts in every reservation that it may come to use."""
    left: dict[str, int] = {}
    users: dict[str, int] = {}
    for kind in types.values():
        for offering in kind.offerings:
            if offering.capacity_type == "reserved" and offering.reservation_capacity:
                name = _name(kind, offering)
                left[name] = min(left.get(name, offering.reservation_capacity), offering.reservation_capacity)
    for node in planned if left else ():
        for name in {name for name in _reservations(types, node) if name in left}:
            users[name] = users.get(name, 0) + 1
    for name, count in sorted(users.items()):
        if count > left[name]:
            yield f"reservation {name}: {count} nodes are planned in it, {left[name]} are left"


def _name(kind: InstanceType, offering: Offering) -> str:
    named = [item.values[0] for item in offering.requirements if item.key.endswith("reservation-id") and item.values]
    return named[0] if named else f"{kind.name} in {offering.zone}"


def _reservations(types: Mapping[str, InstanceType], node: PlannedNode) -> Iterable[str]:
    asked = {item.key: item for item in node.requirements}
    for kind in (types[name] for name in node.instance_types):
        for offering in kind.offerings:
            meets = all(holds(asked[item.key], item.values[0]) for item in offering.requirements if item.key in asked)
            if offering.capacity_type == "reserved" and "reserved" in node.capacity_types and meets:
                yield _name(kind, offering)
