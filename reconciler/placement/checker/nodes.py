"""Checks single nodes of a placement: labels, taints, room, ports. Used by violations, and by planned_nodes for nodes to be
made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.demand import Demand
from reconciler.model.machines import Machine
from reconciler.model.nodes import (
    INITIALIZED_LABEL,
    REGISTERED_LABEL,
    InstanceType,
    Node,
    NodeClaim,
    NodePool,
)
from reconciler.model.overlays import NodeOverlay
from reconciler.model.placement import OccupiedBin
from reconciler.model.pods import Pod, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Toleration
from reconciler.model.view import ClusterView
from reconciler.placement.checker.arrivals import Arrivals
from reconciler.placement.checker.sites import OPEN, Site, accepts, clashing_ports, is_initialized, untolerated
from reconciler.placement.checker.volumes import Shelves, misplaced_volumes

_DAEMONS_TOLERATE = tuple(
    Toleration(f"node.kubernetes.io/{name}", "Exists")
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
_UNKNOWN_NODE = Resources()


@dataclass(frozen=True, slots=True)
class Scene:
    """What there was to place in and what was to be placed, by what it is looked up by."""

    view: ClusterView
    pools: Mapping[str, NodePool]
    types: Mapping[str, InstanceType]
    demands: Mapping[ObjectRef, Demand]
    overlays: Sequence[NodeOverlay]
    pods_on: Mapping[str | None, Sequence[Pod]]
    """Pods by node."""
    nodes: Mapping[str, Node]
    claims: Mapping[str, NodeClaim]
    machines: Mapping[str, Machine]
    """Nodes with their NodeClaims, by the node's name."""
    shelves: Shelves
    arrivals: Arrivals
    back_offs: Collection[tuple[str, str, str]]


def existing_violations(scene: Scene, site: Site, occupied: OccupiedBin) -> Iterable[str]:
    yield from _usable(scene, occupied)
    for shape in {id(tenant.shape): tenant.shape for tenant in site.tenants if tenant.chunk}.values():
        yield from (f"{site.name}: {words}" for words in refusals(scene, site, shape))
    clashes = clashing_ports(site.tenants)
    if clashes:
        yield f"{site.name}: host ports {sorted(set(clashes))} clash"
    there = {(pod.namespace, pod.owner_name) for pod in scene.pods_on.get(site.name, ()) if pod.is_daemon}
    expected = [
        daemon.shape
        for daemon in scene.view.daemon_sets
        if (daemon.namespace, daemon.name) not in there and daemon_runs(site, daemon.shape)
    ]
    room = _room(scene, site, occupied) - Resources.total(shape.requests for shape in expected)
    yield from (f"{site.name}: {words}" for words in overcommitted(loads(scene, site), room))


def _usable(scene: Scene, occupied: OccupiedBin) -> Iterable[str]:
    claim, node = scene.claims.get(occupied.node_claim or ""), scene.nodes.get(occupied.node or "")
    if claim is not None and claim.deleting:
        yield f"{claim.name}: is being deleted"
    if node is not None:
        young = not is_initialized(node, scene.machines[node.name].node_claim)
        disrupted = any(taint.key == "karpenter.sh/disrupted" for taint in node.taints)
        if node.deleting or node.unschedulable or disrupted or not (node.ready or young):
            yield f"{node.name}: takes no more pods"


def refusals(scene: Scene, site: Site, shape: PodShape) -> Iterable[str]:
    """Why a chunk may not be on a site, whoever else is there."""
    if shape.volume_claims:
        yield from misplaced_volumes(scene.shelves, site, shape)
    if not accepts(site, shape):
        yield f"labels are not those that {shape.namespace} asks for"
    if untolerated(site.taints, shape):
        yield "a taint is not tolerated"


def _room(scene: Scene, site: Site, occupied: OccupiedBin) -> Resources:
    claim, node = scene.claims.get(occupied.node_claim or ""), scene.nodes.get(occupied.node or "")
    if node is not None:
        if claim is not None and node.label(INITIALIZED_LABEL) != "true":
            return Resources.of(dict(claim.allocatable.amounts) | dict(node.allocatable.amounts))
        return node.allocatable
    if claim is None:
        return _UNKNOWN_NODE
    return claim.allocatable or scene.arrivals.room(site, claim)


def daemon_runs(site: Site, shape: PodShape) -> bool:
    """Registered and initialized are labels that every node comes to have; an open label may come to fit."""
    labels = {key: value for key, value in site.labels.items() if value != OPEN}
    grown = Site(site.name, labels | {REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"}, site.taints, site.exists)
    tolerated = not [
        taint
        for taint in untolerated(site.taints, shape)
        if not any(toleration.tolerates(taint) for toleration in _DAEMONS_TOLERATE)
    ]
    return tolerated and accepts(grown, shape)


@dataclass(frozen=True, slots=True)
class Load:
    """What is on a site of one resource: before chunks came, and with them."""

    name: str
    before: int
    used: int


def loads(scene: Scene, site: Site) -> list[Load]:
    """Of each resource that a chunk asks for: daemon pods, what runs (or the KeepMinimum chunks that it may fill, whichever is
    more), and KeepEmpty chunks."""
    daemons: dict[str, int] = {}
    running: dict[str, int] = {}
    for pod in scene.pods_on.get(site.name, ()) if site.exists else ():
        _add(daemons if pod.is_daemon else running, pod.shape.requests, 1)
    before = {name: daemons.get(name, 0) + running.get(name, 0) for name in (*daemons, *running)}
    minimum: dict[str, int] = {}
    empty: dict[str, int] = {}
    wanted: set[str] = set()
    for tenant in site.tenants:
        if tenant.chunk:
            kind = running if tenant.pending else minimum if tenant.keeps_minimum else empty
            _add(kind, tenant.shape.requests, tenant.count)
            wanted.update(tenant.shape.requests.names())
    return [
        Load(
            name,
            before.get(name, 0),
            daemons.get(name, 0) + max(running.get(name, 0), minimum.get(name, 0)) + empty.get(name, 0),
        )
        for name in sorted(wanted)
    ]


def _add(total: dict[str, int], requests: Resources, count: int) -> None:
    for name, amount in requests.amounts:
        total[name] = total.get(name, 0) + amount * count


def overcommitted(found: Iterable[Load], room: Resources) -> Iterable[str]:
    for load in found:
        there = room.get(load.name)
        if load.used > max(there, load.before):
            yield f"{load.name} is overcommitted ({load.used} of {there})"
