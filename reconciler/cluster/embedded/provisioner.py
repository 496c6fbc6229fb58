"""The embedded cluster's provisioner: NodeClaims for pods that found no node, and for static NodePools. Driven by World.

Pools are tried by weight, then by name descending, and pods from the largest down. A pod joins a node that is on its way
while some instance type still holds all of them. Pods that must be spread over zones get nodes in the zones with the fewest of
them. Other rules between pods are left to the scheduler: where they keep a pod from its new node, the next round makes another one.

As under Karpenter's StaticCapacity gate, missing nodes are made at once. If there are too many, claims without an instance go first,
then empty nodes, and nodes with do-not-disrupt pods last. `limits.nodes` limits the size.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from reconciler.cluster.embedded.karpenter import FINALIZER, HASH_VERSION, MANAGER
from reconciler.cluster.embedded.scheduler import Scheduler, places_of
from reconciler.cluster.embedded.store import Body, owner_reference, taint_rows
from reconciler.cluster.embedded.world import World
from reconciler.model.launch_options import LaunchOption
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    DO_NOT_DISRUPT,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    NODEPOOL_LABEL,
    ZONE_LABEL,
    Node,
    NodeClaim,
    NodePool,
    node_claim_ref,
)
from reconciler.model.pods import Pod, PodShape, TopologySpread
from reconciler.model.quantity import Resources, format_duration
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement, Taint, single_valued
from reconciler.placement.constraints.node_rules import tolerated
from reconciler.placement.scheduler.model import queue_order

MOST_ATTEMPTS = 3
"""The most nodes made for one pod. A pod that rules between pods keep off would otherwise cause new ones forever."""
ON_ITS_WAY = Taint("karpenter.sh/unregistered", "", "PreferNoSchedule")
"""Marks nodes that arrive while pods are placed."""
VALIDATED = timedelta(seconds=15)
"""How long after the first look Karpenter makes sure and moves pods (consolidationTTL in pkg/controllers/disruption)."""
MOST_TYPES = 60
"""The most instance types that Karpenter offers a provider in one launch."""


@dataclass(slots=True)
class Coming:
    """A node to be made. ways: the launch options that still hold all of its pods."""

    pool: NodePool
    ways: list[LaunchOption]
    requests: Resources
    pods: list[Pod] = field(default_factory=list)


class Provisioner:
    def __init__(self, world: World, scheduler: Scheduler) -> None:
        self._world = world
        self._scheduler = scheduler
        self._attempts: Counter[str] = Counter()
        self._made = 0
        self._due = False

    def notice(self, ref: ObjectRef, before: Body | None, after: Body | None) -> None:
        del before, after
        self._due = self._due or ref.kind in {"Pod", "NodePool", "NodeClaim"}

    def reconcile(self) -> None:
        if not self._due:
            return
        self._due = False
        # After the scheduler has acted in this instant.
        self._world.at(self._world.now, self._provision)

    def _provision(self) -> None:
        waiting = [pod for pod in self._scheduler.unschedulable if not self._has_node_coming(pod)]
        if waiting:
            found = {pod.uid for pod, node in self.places() if node is not None}
            waiting = [pod for pod in waiting if pod.uid not in found]
        for node in self.nodes_for(waiting):
            self.make(node)

    def nodes_for(self, pods: Sequence[Pod]) -> list[Coming]:
        """New nodes that hold the pods, to be made. Pods that no NodePool has a node for are left out."""
        coming: list[Coming] = []
        pools = sorted(self._world.node_pools().values(), key=lambda pool: pool.name, reverse=True)
        pools.sort(key=lambda pool: -pool.weight)
        for pod in self._in_zones(sorted(pods, key=_largest_first), pools):
            if not any(self._join(pod, node) for node in coming):
                node = next((made for pool in pools if (made := self._open(pod, pool, coming)) is not None), None)
                if node is not None:
                    coming.append(node)
        return coming

    def places(
        self, leaving: AbstractSet[str] = frozenset(), new: Sequence[Node] = ()
    ) -> list[tuple[Pod, Node | None]]:
        """The pods that wait or whose nodes go, and where kube-scheduler's model binds them; None where they would find no room.

        leaving: nodes that go beside those that are being removed. new: nodes that come beside those that are under way. As in Karpenter, no
        pod comes to a node with a taint of any effect that it does not tolerate, and nodes that arrive come last.
        """
        view = self._world.views.view()
        going = {claim.node_name for claim in view.node_claims if claim.deleting}
        going |= {node.name for node in view.nodes if node.is_disrupted}
        arriving = {claim.node_name for claim in view.node_claims if self._is_arriving(claim)}
        there = [node for node in view.nodes if node.name not in going | leaving]
        late = [*(node for node in there if node.name in arriving), *self._under_way()]
        nodes = [
            *(_refusing(node) for node in (*(node for node in there if node.name not in arriving), *new)),
            *(replace(node, taints=(*node.taints, ON_ITS_WAY)) for node in map(_refusing, late)),
        ]
        moves = [pod for pod in view.pods if pod.node_name in going | leaving | {None} and not pod.is_daemon]
        moves.sort(key=lambda pod: (pod.node_name in leaving, queue_order(pod)))
        names = {(pod.namespace, pod.name) for pod in moves}
        staying = [pod for pod in view.pods if (pod.namespace, pod.name) not in names]
        return places_of(moves, nodes, staying, view.namespaces)

    def _is_arriving(self, claim: NodeClaim) -> bool:
        """Whether it was not initialized when Karpenter first looked at what it now makes sure of."""
        since = claim.since("Initialized")
        return claim.condition("Initialized") != "True" or (since is not None and self._world.now - since < VALIDATED)

    def _under_way(self) -> Iterator[Node]:
        """What NodeClaims without a node will become."""
        for claim in self._world.views.view().node_claims:
            if claim.node_name or claim.deleting:
                continue
            labels = {**single_valued(claim.requirements), **dict(claim.labels)}
            ways = self._world.market.purchases(claim.requirements, labels, claim.requests)
            if ways:
                labels = {**ways[0].labels, **labels, HOSTNAME_LABEL: claim.name}
                allocatable = claim.allocatable or ways[0].instance_type.allocatable
                yield Node(claim.name, allocatable, labels=tuple(labels.items()), taints=claim.taints)

    def _in_zones(self, pods: Sequence[Pod], pools: Sequence[NodePool]) -> Iterator[Pod]:
        """The pods; those that must be spread over zones select the zone that has the fewest like them, as in Karpenter."""
        view = self._world.views.view()
        zone_of = {node.name: node.label(ZONE_LABEL) for node in view.nodes}
        moving = {(pod.namespace, pod.name) for pod in pods}
        like: dict[TopologySpread, Counter[str | None]] = {}
        for pod in pods:
            over_zones = (item for item in pod.shape.topology_spread if item.topology_key == ZONE_LABEL)
            rule = next((item for item in over_zones if item.when_unsatisfiable == "DoNotSchedule"), None)
            if rule is None or rule.selector is None:
                yield pod
                continue
            if rule not in like:
                like[rule] = Counter(
                    zone_of.get(other.node_name or "")
                    for other in view.pods
                    if other.namespace == pod.namespace and rule.selector.matches(dict(other.shape.labels))
                    if (other.namespace, other.name) not in moving
                )
            nodes = (self._open(pod, pool, ()) for pool in pools)
            zones = sorted({way.offering.zone for node in nodes if node is not None for way in node.ways})
            zone = min(zones, key=lambda name: like[rule][name], default=None)
            like[rule][zone] += 1
            selector = (*pod.shape.node_selector, *([(ZONE_LABEL, zone)] if zone is not None else []))
            yield replace(pod, shape=replace(pod.shape, node_selector=tuple(dict(selector).items())))

    def _has_node_coming(self, pod: Pod) -> bool:
        """Whether a node for the pod may still come up. True also after a few nodes that did not help, so that no more are made."""
        if self._attempts[pod.uid] >= MOST_ATTEMPTS:
            return True
        return pod.uid in self._attempts and any(
            claim.condition("Initialized") != "True" and not claim.deleting
            for claim in self._world.views.view().node_claims
        )

    def _join(self, pod: Pod, node: Coming) -> bool:
        requests = node.requests + pod.shape.requests
        if not tolerated(node.pool.template.taints, pod.shape.tolerations):
            return False
        ways = [
            way for way in node.ways if requests.fits(way.instance_type.allocatable) and pod.shape.selects(way.labels)
        ]
        if ways:
            node.ways, node.requests = ways, requests
            node.pods.append(pod)
        return bool(ways)

    def _open(self, pod: Pod, pool: NodePool, coming: Iterable[Coming]) -> Coming | None:
        template = pool.template
        if pool.replicas is not None or not tolerated(template.taints, pod.shape.tolerations):
            return None
        labels = _labels_in(pool)
        for key, value in pod.shape.node_selector:
            if any(item.key == key and value in item.values for item in template.requirements):
                labels.setdefault(key, value)
        daemons = daemons_on(self._world, labels, template.taints)
        requests = pod.shape.requests + daemons
        used = self._used(pool, coming)
        ways = [
            way
            for way in self._world.market.purchases(template.requirements, labels, requests)
            if pod.shape.selects(way.labels)
            if all(used.get(name) + way.instance_type.capacity.get(name) <= limit for name, limit in pool.limits or ())
        ]
        return Coming(pool, ways, requests, [pod]) if ways else None

    def _used(self, pool: NodePool, coming: Iterable[Coming]) -> Resources:
        """What counts against the pool's limits, with one more node in their number."""
        claims = self._world.claims_in(pool.name)
        nodes = [node for node in coming if node.pool.name == pool.name]
        used = Resources.total([*(claim.capacity for claim in claims), *(_largest(node) for node in nodes)])
        return used + Resources.of({"nodes": len(claims) + len(nodes) + 1})

    def make(self, node: Coming) -> str:
        """Makes the NodeClaim; returns its name."""
        self._made += 1
        self._attempts.update(pod.uid for pod in node.pods)
        return make_claim(self._world, node, f"{node.pool.uid} {self._made}")


def make_claim(world: World, node: Coming, seed: str) -> str:
    """Makes the NodeClaim; returns its name. seed: for the name, another one for each."""
    name = f"{node.pool.name}-{hashlib.sha256(seed.encode()).hexdigest()[:5]}"
    world.store.create(node_claim_ref(name), planned_claim(node), MANAGER)
    return name


def _labels_in(pool: NodePool) -> dict[str, str]:
    """The labels that each of its nodes has."""
    template = pool.template
    return {**single_valued(template.requirements), **dict(template.labels), NODEPOOL_LABEL: pool.name}


def to_be_made(node: Coming, number: int) -> Node:
    """What its cheapest launch would become."""
    way, name = node.ways[0], f"to be made {number}"
    daemons = node.requests - Resources.total(pod.shape.requests for pod in node.pods)
    labels = tuple({**way.labels, HOSTNAME_LABEL: name}.items())
    return Node(name, way.instance_type.allocatable - daemons, labels=labels, taints=node.pool.template.taints)


def _refusing(node: Node) -> Node:
    return replace(node, taints=tuple(replace(taint, effect="NoSchedule") for taint in node.taints))


def _largest(node: Coming) -> Resources:
    """The largest type that it may still become, which is charged against limits, as in Karpenter."""
    return Resources.largest(way.instance_type.capacity for way in node.ways)


def _largest_first(pod: Pod) -> tuple[int, int, str, str]:
    requests = pod.shape.requests
    return (-requests.get("cpu"), -requests.get("memory"), pod.namespace, pod.name)


def daemons_on(world: World, labels: Mapping[str, str], taints: Iterable[Taint]) -> Resources:
    """What the daemons of a node with these labels and taints request."""
    taints = tuple(taints)
    return Resources.total(
        daemon.shape.requests for daemon in world.views.view().daemon_sets if _runs_on(daemon.shape, labels, taints)
    )


def _runs_on(shape: PodShape, labels: Mapping[str, str], taints: Iterable[Taint]) -> bool:
    return tolerated(taints, shape.tolerations) and replace(shape, required_node_terms=()).selects(labels)


def planned_claim(node: Coming) -> dict[str, Any]:
    """The NodeClaim as Karpenter would make it: launched as the cheapest of the ways."""
    pool, template = node.pool, node.pool.template
    types = dict.fromkeys(way.instance_type.name for way in node.ways)
    requirements = [
        *(_written(item) for item in template.requirements if item.key != INSTANCE_TYPE_LABEL),
        *_shared(node),
        {"key": NODEPOOL_LABEL, "operator": "In", "values": [pool.name]},
        {"key": INSTANCE_TYPE_LABEL, "operator": "In", "values": list(types)[:MOST_TYPES]},
    ]
    spec: dict[str, Any] = {
        "requirements": requirements,
        "resources": {"requests": node.requests.quantities()},
        "expireAfter": "Never" if template.expire_after is None else format_duration(template.expire_after),
    }
    if template.node_class is not None:
        reference = template.node_class
        spec["nodeClassRef"] = {"group": reference.group, "kind": reference.kind, "name": reference.name}
    spec |= taint_rows("taints", template.taints) | taint_rows("startupTaints", template.startup_taints)
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "labels": {**dict(template.labels), NODEPOOL_LABEL: pool.name},
            "annotations": {
                **dict(template.annotations),
                NODEPOOL_HASH: pool.hash or "",
                NODEPOOL_HASH_VERSION: pool.hash_version or HASH_VERSION,
            },
            "finalizers": [FINALIZER],
            "ownerReferences": [
                owner_reference("karpenter.sh/v1", "NodePool", pool.name, pool.uid, blockOwnerDeletion=True)
            ],
        },
        "spec": spec,
    }


def _written(item: Requirement) -> dict[str, Any]:
    row: dict[str, Any] = {"key": item.key, "operator": item.operator.value}
    return {**row, "values": list(item.values)} if item.values else row


def _shared(node: Coming) -> list[dict[str, Any]]:
    """The requirements of all pods, so that the launch cannot choose a label that one of them refuses."""
    settled = {
        item.key for item in node.pool.template.requirements if item.operator is Operator.IN and len(item.values) == 1
    }
    wanted = {
        ZONE_LABEL: sorted({way.offering.zone for way in node.ways}),
        CAPACITY_TYPE_LABEL: sorted({way.offering.capacity_type for way in node.ways}),
        **{key: [value] for pod in node.pods for key, value in pod.shape.node_selector},
    }
    return [
        {"key": key, "operator": "In", "values": values}
        for key, values in sorted(wanted.items())
        if key not in settled | {INSTANCE_TYPE_LABEL}
    ]


RETRY = timedelta(seconds=10)
"""How long a pool waits after it lost a node or a launch failed."""


class StaticPools:
    def __init__(self, world: World) -> None:
        self._world = world
        self._dirty: set[str] = set()
        self._made = 0

    def notice(self, ref: ObjectRef, before: Body | None, after: Body | None) -> None:
        if ref.kind == "NodePool" and after is not None:
            self._dirty.add(ref.name)
        elif ref.kind == "NodeClaim" and before is not None and after is None:
            pool = (before["metadata"].get("labels") or {}).get(NODEPOOL_LABEL, "")
            self._world.at(self._world.now + RETRY, lambda: self._keep(pool))

    def reconcile(self) -> None:
        dirty, self._dirty = sorted(self._dirty), set()
        for name in dirty:
            self._keep(name)

    def _keep(self, name: str) -> None:
        pool = self._world.node_pools().get(name)
        if pool is None or pool.replicas is None or pool.deleting:
            return
        claims = [claim for claim in self._world.claims_in(name) if not claim.deleting]
        wanted = min(pool.replicas, dict(pool.limits or ()).get("nodes", pool.replicas))
        for _ in range(wanted - len(claims)):
            self._make(pool)
        for claim in sorted(claims, key=self._cost)[: max(0, len(claims) - wanted)]:
            self._world.store.delete(node_claim_ref(claim.name))

    def _make(self, pool: NodePool) -> None:
        template, labels = pool.template, _labels_in(pool)
        daemons = daemons_on(self._world, labels, template.taints)
        ways = self._world.market.purchases(template.requirements, labels, daemons)
        if not ways:
            self._world.at(self._world.now + RETRY, lambda: self._keep(pool.name))
            return
        self._made += 1
        make_claim(self._world, Coming(pool, ways, daemons), f"static {pool.uid} {self._made}")

    def _cost(self, claim: NodeClaim) -> tuple[bool, int, str]:
        """The sort key of removal: the lowest goes first."""
        if not claim.node_name:
            return (False, 0, claim.name)
        pods = [pod for pod in self._world.views.view().pods if pod.node_name == claim.node_name and not pod.is_daemon]
        kept = any(name == DO_NOT_DISRUPT for pod in pods for name, _ in pod.annotations)
        return (kept, 1 + len(pods), claim.name)
