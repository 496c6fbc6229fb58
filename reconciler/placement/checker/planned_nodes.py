"""Checks nodes to be made: that each may come to be whatever it lists, that it is offered at its price, and that NodePools allow
them all. Used by violations.

What a node lists becomes variants: one for each type, zone, capacity type and operating system. Much of what is asked of a
variant does not depend on who is on the node, and is answered once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    OPERATING_SYSTEM_LABEL,
    ZONE_LABEL,
    InstanceType,
    NodePool,
    Offering,
)
from reconciler.model.placement import PlannedNode
from reconciler.model.pods import PodShape
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement
from reconciler.placement.checker.minimums import labels_open_to
from reconciler.placement.checker.nodes import Scene, daemon_runs, loads, overcommitted, refusals
from reconciler.placement.checker.overlays import overlaid_capacity, overlaid_price, seen_by_overlays
from reconciler.placement.checker.sites import (
    Site,
    Tenant,
    clashing_ports,
    holds,
    in_common,
    label_of,
    labels_as_offered,
    stable_label,
)

_RESERVED = "reserved"


@dataclass(slots=True)
class _Variant:
    """A node that may come of it. room: for chunks, daemons taken off; faults: why its NodePool does not have it; known: why
    shapes may not be on it, by identity."""

    site: Site
    room: Resources
    daemons: tuple[PodShape, ...]
    faults: tuple[str, ...]
    known: dict[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Mix:
    """What nodes that list the same have in common. least: price of the cheapest offering, USD an hour; priced: that of each is known;
    faults: of any of them."""

    variants: tuple[_Variant, ...]
    labels: Mapping[str, str]
    options: Mapping[str, frozenset[str | None]]
    least: float | None
    priced: bool
    faults: tuple[str, ...]


class PlannedNodes:
    """The nodes to be made of one placement."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._mixes: dict[tuple[object, ...], _Mix] = {}
        self._variants: dict[tuple[object, ...], _Variant] = {}
        self._prices: dict[tuple[object, ...], tuple[float | None, ...]] = {}

    def site(self, planned: PlannedNode, number: int) -> Site:
        """A label that differs between the listed types, zones or capacity types is open."""
        mix = self._mix(planned)
        taints = self._scene.pools[planned.node_pool].template.taints
        return Site(f"planned-{number}", mix.labels, taints, exists=False, planned=True, options=mix.options)

    def violations(self, planned: PlannedNode, site: Site) -> Iterable[str]:
        return (f"{site.name}: {words}" for words in self._violations(planned, site))

    def _violations(self, planned: PlannedNode, site: Site) -> Iterable[str]:
        pool = self._scene.pools.get(planned.node_pool)
        if pool is None or pool.replicas is not None or pool.deleting or not pool.ready:
            yield f"NodePool {planned.node_pool} cannot be used"
            return
        if not planned.holdings:
            yield "holds nothing"
        if len(planned.instance_types) != len(set(planned.instance_types)) or not planned.instance_types:
            yield f"instance types {planned.instance_types}"
        mix = self._mix(planned)
        yield from mix.faults
        if mix.priced != planned.price_known:
            yield f"its price is said to be {'known' if planned.price_known else 'unknown'}"
        elif mix.priced and mix.least is not None and abs(mix.least - planned.price) > 1e-6:  # noqa: PLR2004 - a millionth of a USD
            yield f"price is {planned.price}, cheapest offering {mix.least}"
        shapes = {id(tenant.shape): tenant.shape for tenant in site.tenants}
        load = loads(self._scene, site)
        for variant in mix.variants:
            yield from variant.faults
            for identity, shape in shapes.items():
                if identity not in variant.known:
                    variant.known[identity] = tuple(refusals(self._scene, variant.site, shape))
                yield from variant.known[identity]
            yield from overcommitted(load, variant.room)
            if clashing_ports([*site.tenants, *(Tenant(shape, 1, chunk=False) for shape in variant.daemons)]):
                yield "host ports clash"

    def _mix(self, planned: PlannedNode) -> _Mix:
        key = (
            *(planned.node_pool, planned.labels, planned.requirements),
            *(planned.instance_types, planned.zones, planned.capacity_types),
        )
        if key not in self._mixes:
            self._mixes[key] = self._mixed(planned)
        return self._mixes[key]

    def _mixed(self, planned: PlannedNode) -> _Mix:
        variants = tuple(self._listed(planned))
        labels, seen = in_common([variant.site.labels for variant in variants])
        prices: list[float | None] = []
        faults: list[str] = []
        for name, zone, capacity_type in product(planned.instance_types, planned.zones, planned.capacity_types):
            offered = self._offered(planned, name, zone, capacity_type)
            prices += offered
            if not offered:
                faults.append(f"{name} is not offered in {zone} as {capacity_type}")
            if (name, zone, capacity_type) in self._scene.back_offs:
                faults.append(f"{name} in {zone} as {capacity_type} is backed off from")
        pool = self._scene.pools[planned.node_pool]
        faults += self._minimums(pool, planned)
        known = [price for price in prices if price is not None]
        return _Mix(variants, labels, seen, min(known, default=None), len(known) == len(prices), tuple(faults))

    def _listed(self, planned: PlannedNode) -> Iterable[_Variant]:
        for name, zone, capacity_type in product(planned.instance_types, planned.zones, planned.capacity_types):
            for system in self._scene.types[name].operating_systems:
                if _may_run(planned, system):
                    place = {ZONE_LABEL: zone, CAPACITY_TYPE_LABEL: capacity_type, OPERATING_SYSTEM_LABEL: system}
                    key = (planned.node_pool, planned.labels, *_asked_of_offerings(planned), name, *place.values())
                    if key not in self._variants:
                        self._variants[key] = self._variant(planned, name, place)
                    yield self._variants[key]

    def _variant(self, planned: PlannedNode, name: str, place: dict[str, str]) -> _Variant:
        scene, kind, pool = self._scene, self._scene.types[name], self._scene.pools[planned.node_pool]
        offered = [
            set(labels_as_offered(offering).items())
            for offering in _offerings(planned, kind, place[ZONE_LABEL], place[CAPACITY_TYPE_LABEL])
        ]
        sure = dict(set.intersection(*offered)) if offered else {}
        labels = _own_labels(pool, planned) | sure | dict(kind.labels) | {INSTANCE_TYPE_LABEL: name} | place
        site = Site("", labels, pool.template.taints, exists=False)
        daemons = tuple(item.shape for item in scene.view.daemon_sets if daemon_runs(site, item.shape))
        room = kind.allocatable + overlaid_capacity(scene.overlays, seen_by_overlays(pool, kind) | place)
        room -= Resources.total(shape.requests for shape in daemons)
        return _Variant(site, room, daemons, tuple(_forbidden(pool, site)))

    def _minimums(self, pool: NodePool, planned: PlannedNode) -> Iterable[str]:
        """What the types themselves have is counted, whatever the pool gives its nodes. Reserved capacity counts where one of the types
        has it; of a node of a reservation, which leaves no choice, all that its pool may buy."""
        minimums = [item for item in pool.template.requirements if item.min_values is not None]
        if not minimums:
            return
        has = set[tuple[str, str]]()
        for name, zone, capacity_type in product(planned.instance_types, planned.zones, planned.capacity_types):
            kind = self._scene.types[name]
            has.update({**dict(kind.labels), INSTANCE_TYPE_LABEL: name, ARCHITECTURE_LABEL: kind.architecture}.items())
            has.update((OPERATING_SYSTEM_LABEL, one) for one in kind.operating_systems if _may_run(planned, one))
            for offering in _offerings(planned, kind, zone, capacity_type):
                has.update(labels_as_offered(offering).items())
        if planned.capacity_types == (_RESERVED,):
            has.update(*(labels_open_to(self._scene, pool, kind) for kind in self._scene.types.values()))
        elif any(item.key == CAPACITY_TYPE_LABEL for item in minimums):
            listed = [labels_open_to(self._scene, pool, self._scene.types[name]) for name in planned.instance_types]
            has |= {item for labels in listed for item in labels if item == (CAPACITY_TYPE_LABEL, _RESERVED)}
        for item in planned.requirements:
            if item.operator is Operator.IN and len(item.values) < (item.min_values or 0):
                yield f"asks for {item.min_values} values of {item.key} and lists {len(item.values)}: the API server refuses it"
        for item in minimums:
            left = sum(key == stable_label(item.key) for key, _ in has)
            if left < (item.min_values or 0):
                yield f"minValues of {item.key} is {item.min_values}, {left} are left"

    def _offered(self, planned: PlannedNode, name: str, zone: str, capacity_type: str) -> tuple[float | None, ...]:
        """Prices of the offerings that the node may use, None for one that is not known."""
        key = (planned.node_pool, planned.labels, *_asked_of_offerings(planned), name, zone, capacity_type)
        if key not in self._prices:
            scene, kind = self._scene, self._scene.types[name]
            labels = seen_by_overlays(scene.pools[planned.node_pool], kind)
            systems = [one for one in kind.operating_systems if _may_run(planned, one)]
            self._prices[key] = tuple(
                overlaid_price(
                    scene.overlays,
                    labels | labels_as_offered(offering) | {OPERATING_SYSTEM_LABEL: system},
                    offering.price if offering.price_known else None,
                )
                for system in systems
                for offering in _offerings(planned, kind, zone, capacity_type)
            )
        return self._prices[key]


def _offerings(planned: PlannedNode, kind: InstanceType, zone: str, capacity_type: str) -> Iterable[Offering]:
    """Those of the type that the node may use there."""
    asked = {item.key: item for item in planned.requirements}
    for offering in kind.offerings:
        if offering.available and (offering.zone, offering.capacity_type) == (zone, capacity_type):
            wanted = [item for item in offering.requirements if item.key in asked]
            left = capacity_type != "reserved" or offering.reservation_capacity
            if left and all(holds(asked[item.key], item.values[0]) for item in wanted):
                yield offering


def _may_run(planned: PlannedNode, system: str) -> bool:
    return all(holds(item, system) for item in planned.requirements if item.key == OPERATING_SYSTEM_LABEL)


def _asked_of_offerings(planned: PlannedNode) -> Iterable[Requirement]:
    """Requirements that differ between nodes of one type in one place: not the list of types itself."""
    return (item for item in planned.requirements if item.key != INSTANCE_TYPE_LABEL)


def _own_labels(pool: NodePool, planned: PlannedNode) -> dict[str, str]:
    own = dict(pool.template.labels) | dict(planned.labels) | {NODEPOOL_LABEL: pool.name}
    if pool.template.node_class is not None:
        reference = pool.template.node_class
        own[f"{reference.group}/{reference.kind.lower()}"] = reference.name
    return own


def _forbidden(pool: NodePool, site: Site) -> Iterable[str]:
    for requirement in pool.template.requirements:
        known = requirement.key in site.labels
        if (known or requirement.key == HOSTNAME_LABEL) and not holds(requirement, label_of(site, requirement.key)):
            yield f"NodePool {pool.name} does not allow {requirement.key}={site.labels.get(requirement.key)}"


def limit_violations(scene: Scene, planned: Sequence[PlannedNode]) -> Iterable[str]:
    """As if every planned node became the largest of what it lists; only limits that a planned node adds to."""
    added: dict[str, list[PlannedNode]] = {}
    for node in planned:
        added.setdefault(node.node_pool, []).append(node)
    largest: dict[tuple[str, ...], Resources] = {}
    for name, nodes in added.items():
        pool = scene.pools.get(name)
        if pool is None or pool.limits is None:
            continue
        for names in {node.instance_types for node in nodes} - largest.keys():
            largest[names] = _largest([scene.types[kind].capacity for kind in names])
        total = Resources.total(largest[node.instance_types] for node in nodes) + Resources.of({"nodes": len(nodes)})
        usage = _usage(scene, name)
        for resource, limit in pool.limits:
            if total.get(resource) and usage.get(resource) + total.get(resource) > limit:
                yield f"NodePool {name}: {resource} exceeds its limit of {limit}"


def _largest(capacities: Sequence[Resources]) -> Resources:
    largest = Resources()
    for capacity in capacities:
        largest = largest.at_least(capacity)
    return largest


def _usage(scene: Scene, pool: str) -> Resources:
    machines = [machine for machine in scene.view.machines if machine.node_pool == pool]
    nodes = [machine.node for machine in machines if machine.node is not None]
    waiting = [machine.node_claim for machine in machines if machine.node is None and machine.node_claim is not None]
    capacities = [
        _largest(
            [
                node.capacity,
                *(kind.capacity for kind in [scene.types.get(node.label(INSTANCE_TYPE_LABEL) or "")] if kind),
            ]
        )
        for node in nodes
    ]
    for claim in waiting:
        named = claim.label(INSTANCE_TYPE_LABEL)
        asked = next((item.values for item in claim.requirements if item.key == INSTANCE_TYPE_LABEL), ())
        listed = asked if named is None else (named,)
        capacities.append(
            _largest([claim.capacity, *(scene.types[name].capacity for name in listed if name in scene.types)])
        )
    return Resources.total(capacities) + Resources.of({"nodes": len(capacities)})
