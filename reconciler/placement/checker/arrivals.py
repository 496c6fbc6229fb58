"""NodeClaims that are no nodes yet: what each may become, and the least room that it will have. Used by violations and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.nodes import (
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    OPERATING_SYSTEM_LABEL,
    InstanceType,
    NodeClaim,
    NodePool,
)
from reconciler.model.overlays import NodeOverlay
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement
from reconciler.placement.checker.overlays import overlaid_capacity, seen_by_overlays
from reconciler.placement.checker.sites import OPEN, Site, holds, in_common, label_of, labels_as_offered

_Way = tuple[InstanceType, Mapping[str, str]]
"""Type and labels of a node that may come of a NodeClaim."""


@dataclass(frozen=True, slots=True)
class _Prospect:
    """What NodeClaims that ask for the same may become, of what can be bought now. labels: open where ways differ."""

    ways: Sequence[_Way]
    labels: Mapping[str, str]
    options: Mapping[str, frozenset[str | None]]


class Arrivals:
    """NodeClaims on their way, of one pass. Those that ask for the same are looked at once."""

    def __init__(
        self, pools: Mapping[str, NodePool], types: Mapping[str, InstanceType], overlays: Sequence[NodeOverlay]
    ) -> None:
        self._pools = pools
        self._types = types
        self._overlays = overlays
        self._sold: dict[str, list[_Way]] = {}
        self._prospects: dict[tuple[object, ...], _Prospect] = {}

    def site(self, claim: NodeClaim) -> Site:
        """What a NodeClaim leaves open is open."""
        own, prospect = _settled(claim), self._prospect(claim)
        asked = {item.key: item.values for item in claim.requirements if item.operator is Operator.IN}
        seen = {key: frozenset[str | None](values) for key, values in asked.items() if key not in own}
        seen |= prospect.options
        labels = dict.fromkeys(seen, OPEN) | dict(prospect.labels) | own
        return Site(claim.name, labels, claim.taints, exists=False, options=seen)

    def room(self, site: Site, claim: NodeClaim) -> Resources:
        """That of the smallest node that it may become, resource by resource."""
        named = label_of(site, INSTANCE_TYPE_LABEL)
        listed = next((item.values for item in claim.requirements if item.key == INSTANCE_TYPE_LABEL), ())
        names = (named,) if named is not None and named != OPEN else listed
        kinds = [self._types[name] for name in names if name in self._types]
        if not kinds:
            return claim.requests
        named_so = {kind.name for kind in kinds}
        ways = [(kind, labels) for kind, labels in self._prospect(claim).ways if kind.name in named_so]
        # What cannot be bought now is what its name says: it may be launched already.
        sold = {kind.name for kind, _ in ways}
        own = _settled(claim)
        ways += [
            (kind, dict(kind.labels) | {INSTANCE_TYPE_LABEL: kind.name} | own)
            for kind in kinds
            if kind.name not in sold
        ]
        rooms = [kind.allocatable + self._added(claim, kind, labels) for kind, labels in ways]
        resources = {name for room in rooms for name in room.names()}
        return Resources.of({name: min(room.get(name) for room in rooms) for name in resources})

    def _added(self, claim: NodeClaim, kind: InstanceType, labels: Mapping[str, str]) -> Resources:
        pool = self._pools.get(claim.label(NODEPOOL_LABEL) or "")
        if pool is None or not self._overlays:
            return Resources()
        offered = {OPERATING_SYSTEM_LABEL}.union(*map(labels_as_offered, kind.offerings))
        of_place = {key: value for key, value in labels.items() if key in offered}
        return overlaid_capacity(self._overlays, seen_by_overlays(pool, kind) | of_place)

    def _prospect(self, claim: NodeClaim) -> _Prospect:
        key = (claim.labels, claim.requirements)
        if key not in self._prospects:
            ways = tuple(self._ways(claim))
            self._prospects[key] = _Prospect(ways, *in_common([labels for _, labels in ways]))
        return self._prospects[key]

    def _ways(self, claim: NodeClaim) -> Iterable[_Way]:
        own = _settled(claim)
        asked = [item for item in claim.requirements if item.key not in own]
        by_name = [item for item in asked if item.key == INSTANCE_TYPE_LABEL]
        for name in self._types if (claim.label(NODEPOOL_LABEL) or "") in self._pools else ():
            if own.get(INSTANCE_TYPE_LABEL, name) != name or not all(holds(item, name) for item in by_name):
                continue
            for kind, way in self._ways_of(name):
                settled = all(way.get(key, value) == value for key, value in own.items())
                if settled and all(item.key not in way or holds(item, way[item.key]) for item in asked):
                    yield kind, {**way, **own}

    def _ways_of(self, name: str) -> Sequence[_Way]:
        if name not in self._sold:
            kind = self._types[name]
            self._sold[name] = [
                (
                    kind,
                    dict(kind.labels)
                    | {INSTANCE_TYPE_LABEL: name, OPERATING_SYSTEM_LABEL: system}
                    | labels_as_offered(offering),
                )
                for system in kind.operating_systems
                for offering in kind.offerings
                if offering.available and (offering.capacity_type != "reserved" or offering.reservation_capacity)
            ]
        return self._sold[name]


def _settled(claim: NodeClaim) -> dict[str, str]:
    return {item.key: item.values[0] for item in claim.requirements if _names_one(item)} | dict(claim.labels)


def _names_one(requirement: Requirement) -> bool:
    return requirement.operator is Operator.IN and len(requirement.values) == 1
