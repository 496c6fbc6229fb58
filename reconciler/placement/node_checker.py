"""Checks single nodes of a placement: labels, taints, room, ports, offerings, pool limits. Used by checker; shares nothing
with the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from reconciler.model.demand import Demand
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    INITIALIZED_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    OPERATING_SYSTEM_LABEL,
    REGISTERED_LABEL,
    ZONE_LABEL,
    InstanceType,
    NodeClaim,
    NodePool,
    Offering,
)
from reconciler.model.overlays import NodeOverlay
from reconciler.model.placement import OccupiedBin, PlannedNode
from reconciler.model.pods import Pod, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement, Toleration
from reconciler.model.view import ClusterView
from reconciler.placement.checked_sites import (
    OPEN,
    Site,
    Tenant,
    accepts,
    clashing_ports,
    holds,
    is_initialized,
    label_of,
    untolerated,
)
from reconciler.placement.overlay_checker import overlaid_capacity, overlaid_price
from reconciler.placement.volume_checker import misplaced_volumes

_DAEMONS_TOLERATE = tuple(
    Toleration(f"node.kubernetes.io/{name}", "Exists")
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
_UNKNOWN_NODE = Resources()


@dataclass(frozen=True, slots=True)
class Scene:
    """What there was to place in and what was to be placed."""

    view: ClusterView
    pools: Mapping[str, NodePool]
    types: Mapping[str, InstanceType]
    demands: Mapping[ObjectRef, Demand]
    overlays: Sequence[NodeOverlay] = ()
    pods_on: Mapping[str | None, Sequence[Pod]] = field(default_factory=dict)
    """Pods by node."""


def existing_violations(scene: Scene, site: Site, occupied: OccupiedBin) -> Iterable[str]:
    yield from _usable(scene, occupied)
    yield from _accepted(scene, site)
    if clashing_ports(site.tenants):
        yield f"{site.name}: host ports {sorted(set(clashing_ports(site.tenants)))} clash"
    room = _room(scene, site, occupied)
    there = {(pod.namespace, pod.owner_name) for pod in scene.pods_on.get(site.name, ()) if pod.is_daemon}
    expected = [
        daemon.shape
        for daemon in scene.view.daemon_sets
        if (daemon.namespace, daemon.name) not in there and _daemon_runs(site, daemon.shape)
    ]
    yield from _fits(scene, site, room - Resources.total(shape.requests for shape in expected))


def _usable(scene: Scene, occupied: OccupiedBin) -> Iterable[str]:
    claim = next((item for item in scene.view.node_claims if item.name == occupied.node_claim), None)
    if claim is not None and claim.deleting:
        yield f"{claim.name}: is being deleted"
    node = next((item for item in scene.view.nodes if item.name == occupied.node), None)
    if node is not None:
        claim = next((item for item in scene.view.node_claims if item.node_name == node.name), None)
        young = not is_initialized(node, claim)
        disrupted = any(taint.key == "karpenter.sh/disrupted" for taint in node.taints)
        if node.deleting or node.unschedulable or disrupted or not (node.ready or young):
            yield f"{node.name}: takes no more pods"


def _accepted(scene: Scene, site: Site) -> Iterable[str]:
    for tenant in site.tenants:
        if tenant.chunk and tenant.shape.volume_claims:
            yield from misplaced_volumes(scene.view, site, tenant.shape)
        if tenant.chunk and not accepts(site, tenant.shape):
            yield f"{site.name}: labels are not those that {tenant.shape.namespace} asks for"
        if tenant.chunk and untolerated(site.taints, tenant.shape):
            yield f"{site.name}: a taint is not tolerated"


def _room(scene: Scene, site: Site, occupied: OccupiedBin) -> Resources:
    claim = next((item for item in scene.view.node_claims if item.name == occupied.node_claim), None)
    node = next((item for item in scene.view.nodes if item.name == occupied.node), None)
    if node is not None:
        if claim is not None and node.label(INITIALIZED_LABEL) != "true":
            return Resources.of(dict(claim.allocatable.amounts) | dict(node.allocatable.amounts))
        return node.allocatable
    if claim is None:
        return _UNKNOWN_NODE
    return claim.allocatable or _smallest(scene, site, claim)


def _smallest(scene: Scene, site: Site, claim: NodeClaim) -> Resources:
    named = label_of(site, INSTANCE_TYPE_LABEL)
    listed = next((item.values for item in claim.requirements if item.key == INSTANCE_TYPE_LABEL), ())
    kinds = [scene.types[name] for name in ((named,) if named not in {None, OPEN} else listed) if name in scene.types]
    if not kinds:
        return claim.requests
    ways = [way for way in _ways(scene, claim) if way[0] in kinds]
    # What cannot be bought now is what its name says: it may be launched already.
    sold = {kind.name for kind, _ in ways}
    own = _settled(claim)
    ways += [
        (kind, dict(kind.labels) | {INSTANCE_TYPE_LABEL: kind.name} | own) for kind in kinds if kind.name not in sold
    ]
    rooms = [kind.allocatable + overlaid_capacity(scene.overlays, labels) for kind, labels in ways]
    resources = {name for room in rooms for name in room.names()}
    return Resources.of({name: min(room.get(name) for room in rooms) for name in resources})


def _daemon_runs(site: Site, shape: PodShape) -> bool:
    """Registered and initialized are labels that every node comes to have; an open label may come to fit."""
    labels = {key: value for key, value in site.labels.items() if value != OPEN}
    grown = Site(site.name, labels | {REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"}, site.taints, site.exists)
    tolerated = not [
        taint
        for taint in untolerated(site.taints, shape)
        if not any(toleration.tolerates(taint) for toleration in _DAEMONS_TOLERATE)
    ]
    return tolerated and accepts(grown, shape)


def _fits(scene: Scene, site: Site, room: Resources) -> Iterable[str]:
    """Daemon pods, what runs (or the KeepMinimum chunks that it may fill, whichever is more), and KeepEmpty chunks."""
    daemons: list[Resources] = []
    running: list[Resources] = []
    minimum: list[Resources] = []
    empty: list[Resources] = []
    for pod in scene.pods_on.get(site.name, ()) if site.exists else ():
        (daemons if pod.is_daemon else running).append(pod.shape.requests)
    before = Resources.total((*daemons, *running))
    for tenant in site.tenants:
        if tenant.chunk:
            kind = running if tenant.pending else minimum if tenant.keeps_minimum else empty
            kind.append(tenant.shape.requests * tenant.count)
    used = (
        Resources.total(daemons) + Resources.total(running).at_least(Resources.total(minimum)) + Resources.total(empty)
    )
    wanted = {name for tenant in site.tenants if tenant.chunk for name in tenant.shape.requests.names()}
    for name in sorted(wanted):
        if used.get(name) > max(room.get(name), before.get(name)):
            yield f"{site.name}: {name} is overcommitted ({used.get(name)} of {room.get(name)})"


def planned_site(scene: Scene, planned: PlannedNode, number: int) -> Site:
    """A label that differs between the listed types, zones or capacity types is open."""
    labels, seen = _in_common([labels for _, labels in _variants(scene, planned)])
    pool = scene.pools[planned.node_pool]
    return Site(f"planned-{number}", labels, pool.template.taints, exists=False, planned=True, options=seen)


def _in_common(variants: Sequence[Mapping[str, str]]) -> tuple[dict[str, str], dict[str, frozenset[str | None]]]:
    """Labels, open where variants differ, and all that each may come to be."""
    keys = sorted({key for variant in variants for key in variant})
    seen = {key: frozenset(variant.get(key) for variant in variants) for key in keys}
    return {key: next(iter(seen[key])) or "" if len(seen[key]) == 1 else OPEN for key in keys}, seen


def claim_site(scene: Scene, claim: NodeClaim) -> Site:
    """A NodeClaim that is no node yet: what it leaves open is open."""
    own = _settled(claim)
    labels, seen = _in_common([labels for _, labels in _ways(scene, claim)])
    asked = {item.key: item.values for item in claim.requirements if item.operator is Operator.IN}
    seen = {key: frozenset[str | None](values) for key, values in asked.items() if key not in own} | seen
    return Site(claim.name, dict.fromkeys(seen, OPEN) | labels | own, claim.taints, exists=False, options=seen)


def _settled(claim: NodeClaim) -> dict[str, str]:
    return {item.key: item.values[0] for item in claim.requirements if _names_one(item)} | dict(claim.labels)


def _ways(scene: Scene, claim: NodeClaim) -> list[tuple[InstanceType, dict[str, str]]]:
    """Type and labels of all that a NodeClaim may become, of what can be bought now."""
    own = _settled(claim)
    asked = [item for item in claim.requirements if item.key not in own]
    pool = scene.pools.get(claim.label(NODEPOOL_LABEL) or "")
    ways = [
        (
            kind,
            dict(kind.labels) | {INSTANCE_TYPE_LABEL: kind.name, OPERATING_SYSTEM_LABEL: system} | _labels_of(offering),
        )
        for kind in (scene.types.values() if pool is not None else ())
        for system in kind.operating_systems
        for offering in kind.offerings
        if offering.available and (offering.capacity_type != "reserved" or offering.reservation_capacity)
    ]
    return [
        (kind, way | own)
        for kind, way in ways
        if all(way.get(key, value) == value for key, value in own.items())
        if all(item.key not in way or holds(item, way[item.key]) for item in asked)
    ]


def _names_one(requirement: Requirement) -> bool:
    return requirement.operator is Operator.IN and len(requirement.values) == 1


def _own_labels(scene: Scene, planned: PlannedNode) -> dict[str, str]:
    pool = scene.pools[planned.node_pool]
    own = dict(pool.template.labels) | dict(planned.labels) | {NODEPOOL_LABEL: pool.name}
    if pool.template.node_class is not None:
        reference = pool.template.node_class
        own[f"{reference.group}/{reference.kind.lower()}"] = reference.name
    return own


def _labels_of(offering: Offering) -> dict[str, str]:
    single = {item.key: item.values[0] for item in offering.requirements if len(item.values) == 1}
    return single | {ZONE_LABEL: offering.zone, CAPACITY_TYPE_LABEL: offering.capacity_type}


def _variants(scene: Scene, planned: PlannedNode) -> Iterable[tuple[InstanceType, dict[str, str]]]:
    """Every node that may come of it: type and labels."""
    own = _own_labels(scene, planned)
    for name, zone, capacity_type in product(planned.instance_types, planned.zones, planned.capacity_types):
        kind = scene.types[name]
        for system in kind.operating_systems:
            place = {ZONE_LABEL: zone, CAPACITY_TYPE_LABEL: capacity_type, OPERATING_SYSTEM_LABEL: system}
            labels = own | dict(kind.labels) | {INSTANCE_TYPE_LABEL: name} | place
            systems = [item for item in planned.requirements if item.key == OPERATING_SYSTEM_LABEL]
            if all(holds(item, system) for item in systems):
                yield kind, labels


def planned_violations(scene: Scene, planned: PlannedNode, site: Site) -> Iterable[str]:
    pool = scene.pools.get(planned.node_pool)
    if pool is None or pool.replicas is not None or pool.deleting or not pool.ready:
        yield f"{site.name}: NodePool {planned.node_pool} cannot be used"
        return
    if not planned.holdings:
        yield f"{site.name}: holds nothing"
    chunks = [tenant for tenant in site.tenants if tenant.chunk]
    for kind, labels in _variants(scene, planned):
        variant = Site(site.name, labels, pool.template.taints, exists=False, tenants=chunks)
        yield from _accepted(scene, variant)
        yield from _pool_accepts(pool, variant)
        daemons = [item.shape for item in scene.view.daemon_sets if _daemon_runs(variant, item.shape)]
        room = kind.allocatable + overlaid_capacity(scene.overlays, labels)
        yield from _fits(scene, variant, room - Resources.total(shape.requests for shape in daemons))
        if clashing_ports([*chunks, *(Tenant(shape, 1, chunk=False) for shape in daemons)]):
            yield f"{site.name}: host ports clash"
    yield from _offered(scene, planned, site)
    yield from _minimums(scene, pool, planned, site)
    if len(planned.instance_types) != len(set(planned.instance_types)) or not planned.instance_types:
        yield f"{site.name}: instance types {planned.instance_types}"


def _pool_accepts(pool: NodePool, site: Site) -> Iterable[str]:
    for requirement in pool.template.requirements:
        known = requirement.key in site.labels
        if (known or requirement.key == HOSTNAME_LABEL) and not holds(requirement, label_of(site, requirement.key)):
            yield f"{site.name}: NodePool {pool.name} does not allow {requirement.key}={site.labels.get(requirement.key)}"


def _offered(scene: Scene, planned: PlannedNode, site: Site) -> Iterable[str]:
    prices = []
    asked = {item.key: item for item in planned.requirements}
    own = _own_labels(scene, planned)
    for name, zone, capacity_type in product(planned.instance_types, planned.zones, planned.capacity_types):
        kind_labels = own | dict(scene.types[name].labels) | {INSTANCE_TYPE_LABEL: name}
        offers = [
            overlaid_price(scene.overlays, kind_labels | _labels_of(offering), offering.price)
            for offering in scene.types[name].offerings
            if offering.available and (offering.zone, offering.capacity_type) == (zone, capacity_type)
            if all(holds(asked[item.key], item.values[0]) for item in offering.requirements if item.key in asked)
            if capacity_type != "reserved" or offering.reservation_capacity
        ]
        if not offers:
            yield f"{site.name}: {name} is not offered in {zone} as {capacity_type}"
        prices += offers
    if prices and abs(min(prices) - planned.price) > 1e-6:  # noqa: PLR2004 - a millionth of a USD
        yield f"{site.name}: price is {planned.price}, cheapest offering {min(prices)}"


def _minimums(scene: Scene, pool: NodePool, planned: PlannedNode, site: Site) -> Iterable[str]:
    for requirement in pool.template.requirements:
        if requirement.min_values is not None:
            seen = {labels.get(requirement.key) for _, labels in _variants(scene, planned)}
            if len(seen) < requirement.min_values:
                yield f"{site.name}: minValues of {requirement.key} is {requirement.min_values}, {len(seen)} are left"


def limit_violations(scene: Scene, planned: Sequence[PlannedNode]) -> Iterable[str]:
    """As if every planned node became the largest of what it lists; only limits that a planned node adds to."""
    for name, pool in scene.pools.items():
        added = [node for node in planned if node.node_pool == name]
        if pool.limits is None or not added:
            continue
        largest = [_largest([scene.types[kind].capacity for kind in node.instance_types]) for node in added]
        total = Resources.total(largest) + Resources.of({"nodes": len(added)})
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
    nodes = {node.name: node for node in scene.view.nodes if node.label(NODEPOOL_LABEL) == pool}
    waiting = [
        claim
        for claim in scene.view.node_claims
        if claim.label(NODEPOOL_LABEL) == pool and claim.node_name not in nodes
    ]
    capacities = [
        _largest(
            [
                node.capacity,
                *(kind.capacity for kind in [scene.types.get(node.label(INSTANCE_TYPE_LABEL) or "")] if kind),
            ]
        )
        for node in nodes.values()
    ]
    for claim in waiting:
        named = claim.label(INSTANCE_TYPE_LABEL)
        asked = next((item.values for item in claim.requirements if item.key == INSTANCE_TYPE_LABEL), ())
        listed = asked if named is None else (named,)
        capacities.append(
            _largest([claim.capacity, *(scene.types[name].capacity for name in listed if name in scene.types)])
        )
    return Resources.total(capacities) + Resources.of({"nodes": len(capacities)})
