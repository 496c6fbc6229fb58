"""Generated worlds on a real API server: nodes, planned nodes and pods as documents, and what the real kube-scheduler makes of them.

Many worlds share a cluster. Each has a namespace of its own, and a label on its nodes that all of its pods select, so that
neither affinity nor spread looks beyond it. A pod that is meant for one node asks for a resource that only this node has:
unlike a selector, that leaves what spread and affinity look at as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    OPERATING_SYSTEM_LABEL,
    ZONE_LABEL,
    InstanceType,
    Node,
    NodePool,
)
from reconciler.model.placement import PlannedNode
from reconciler.model.pods import NodeSelectorTerm, PodAffinityTerm, PodShape, TopologySpread, WeightedPodAffinityTerm
from reconciler.model.quantity import PODS
from reconciler.model.requirements import LabelSelector, Requirement, Taint, Toleration
from tests.builders import manifest
from tests.controlplane import eventually
from tests.controlplane.rest import Rest, condition

WORLD_LABEL = "headroom.test/world"
_SEATS = "1000"
_AT_ONCE = 8
_SECONDS = 300

Document = dict[str, Any]
Item = TypeVar("Item")


def each(act: Callable[[Item], object], items: Iterable[Item]) -> None:
    """Several at a time."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(act, items))


def create_node(api: Rest, node: Document) -> None:
    """The API server taints every new node as not ready, and nobody here would take that away."""
    api.create(node)
    api.patch("v1", "Node", node["metadata"]["name"], {"spec": {"taints": node["spec"]["taints"]}})


def settled(api: Rest, *, begin: str = "", looks: int = 12) -> list[Document]:
    """The pods whose names begin so, once each is bound or was tried in vain, and nothing has changed for so many looks, a second apart.

    A dozen are longer than a retry waits at most.
    """
    seen: list[int] = []
    found: list[Document] = []

    def quiet() -> bool:
        found[:] = [pod for pod in api.list("v1", "Pod") if pod["metadata"]["name"].startswith(begin)]
        waiting = [pod for pod in found if not pod["spec"].get("nodeName")]
        seen.append(len(found) - len(waiting))
        tried = all(condition(pod, "PodScheduled") == "False" for pod in waiting)
        return tried and (not waiting or (len(seen) > looks and len(set(seen[-looks:])) == 1))

    eventually(quiet, within=_SECONDS, what="the scheduler is done", every=1)
    return found


def node_document(world: str, node: Node) -> Document:
    """A node that is there; its name is its own within the world only."""
    return _node(world, node.name, dict(node.labels), node.allocatable.quantities(), node.taints)


def planned_document(
    world: str, number: int, planned: PlannedNode, pools: Sequence[NodePool], types: Sequence[InstanceType]
) -> Document:
    """A planned node as it may come up: which of its types, zones and capacity types it gets changes from one to the next."""
    pool = next(item for item in pools if item.name == planned.node_pool)
    name = planned.instance_types[number % len(planned.instance_types)]
    kind = next(item for item in types if item.name == name)
    offered = [
        (offering.zone, offering.capacity_type)
        for offering in kind.offerings
        if offering.available and offering.zone in planned.zones and offering.capacity_type in planned.capacity_types
    ]
    zone, capacity_type = offered[number % len(offered)]
    labels = {
        **dict(pool.template.labels),
        **dict(planned.labels),
        NODEPOOL_LABEL: pool.name,
        INSTANCE_TYPE_LABEL: kind.name,
        ARCHITECTURE_LABEL: kind.architecture,
        OPERATING_SYSTEM_LABEL: kind.operating_systems[0],
        ZONE_LABEL: zone,
        CAPACITY_TYPE_LABEL: capacity_type,
    }
    own = f"planned-{number}"
    return _node(world, own, {**labels, HOSTNAME_LABEL: own}, kind.allocatable.quantities(), pool.template.taints)


def pod_document(
    world: str, name: str, shape: PodShape, *, meant_for: str | None = None, bound_to: str | None = None
) -> Document:
    """meant_for: name of the one node that has its seat; bound_to: there already, past any scheduler."""
    requests = {key: value for key, value in shape.requests.quantities().items() if key != PODS}
    limits = {key: value for key, value in requests.items() if "/" in key}  # extended resources are never overcommitted
    if meant_for is not None:
        requests[_seat(meant_for)] = limits[_seat(meant_for)] = "1"
    container: Document = {
        "name": "main",
        "image": "pause",
        "resources": {"requests": requests, "limits": limits},
        "ports": [
            {"containerPort": port.port, "hostPort": port.port, "protocol": port.protocol, "hostIP": port.address}
            for port in shape.host_ports
        ],
    }
    spec: Document = {
        "containers": [container],
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {**dict(shape.node_selector), WORLD_LABEL: world},
        "tolerations": [_toleration(item) for item in shape.tolerations],
        "topologySpreadConstraints": [_spread(item) for item in shape.topology_spread],
        "affinity": _affinity(shape),
        "volumes": _volumes(shape),
    }
    if bound_to is not None:
        spec["nodeName"] = node_name(world, bound_to)
    return manifest("v1", "Pod", name, world, metadata={"labels": dict(shape.labels)}, spec=spec)


def replica_set_document(world: str, name: str, shape: PodShape) -> Document:
    """It selects by all labels of its pods, as a Deployment's does by template and pod-template-hash. It makes none itself."""
    labels = dict(shape.labels)
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "pause"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": world}, "spec": spec}


def owned_by(pod: Document, replica_set: str) -> Document:
    """The pod as one of a ReplicaSet's, so that the default spread constraints apply to it."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set, "uid": f"uid-{replica_set}"}
    metadata = {**pod["metadata"], "ownerReferences": [{**owner, "controller": True}]}
    return {**pod, "metadata": metadata}


def node_name(world: str, name: str) -> str:
    return f"{world}-{name}"


def _volumes(shape: PodShape) -> list[Document]:
    return [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in shape.volume_claims]


def _seat(name: str) -> str:
    return f"headroom.test/{name}"


def _node(
    world: str, name: str, labels: Mapping[str, str], allocatable: Mapping[str, str], taints: Sequence[Taint]
) -> Document:
    """labels: a hostname, if it has one, is the world's own as names are."""
    full = node_name(world, name)
    hostname = {HOSTNAME_LABEL: node_name(world, labels[HOSTNAME_LABEL])} if HOSTNAME_LABEL in labels else {}
    room = {**allocatable, _seat(name): _SEATS}
    return manifest(
        "v1",
        "Node",
        full,
        metadata={"labels": {**labels, **hostname, WORLD_LABEL: world}},
        spec={"taints": [{"key": item.key, "value": item.value, "effect": item.effect} for item in taints]},
        status={"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
    )


def _toleration(item: Toleration) -> Document:
    return {"key": item.key, "operator": item.operator, "value": item.value, "effect": item.effect}


def _expressions(items: Sequence[Requirement]) -> list[Document]:
    return [{"key": item.key, "operator": str(item.operator), "values": list(item.values)} for item in items]


def _selector(item: LabelSelector | None) -> Document | None:
    if item is None:
        return None
    return {"matchLabels": dict(item.match_labels), "matchExpressions": _expressions(item.expressions)}


def _spread(item: TopologySpread) -> Document:
    return {
        "topologyKey": item.topology_key,
        "maxSkew": item.max_skew,
        "whenUnsatisfiable": item.when_unsatisfiable,
        "labelSelector": _selector(item.selector),
        "minDomains": item.min_domains if item.when_unsatisfiable == "DoNotSchedule" else None,
        "nodeTaintsPolicy": item.node_taints_policy,
        "matchLabelKeys": list(item.match_label_keys),
    }


def _term(item: PodAffinityTerm) -> Document:
    return {
        "topologyKey": item.topology_key,
        "labelSelector": _selector(item.selector),
        "matchLabelKeys": list(item.match_label_keys),
    }


def _node_term(item: NodeSelectorTerm) -> Document:
    return {"matchExpressions": _expressions(item.expressions)}


def _affinity(shape: PodShape) -> Document:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    node_terms = [_node_term(item) for item in shape.required_node_terms]
    return {
        "nodeAffinity": {
            required: {"nodeSelectorTerms": node_terms} if node_terms else None,
            preferred: [
                {"weight": item.weight, "preference": _node_term(item.term)} for item in shape.preferred_node_terms
            ],
        },
        "podAffinity": {
            required: [_term(item) for item in shape.pod_affinity],
            preferred: [_weighted(item) for item in shape.preferred_pod_affinity],
        },
        "podAntiAffinity": {
            required: [_term(item) for item in shape.pod_anti_affinity],
            preferred: [_weighted(item) for item in shape.preferred_pod_anti_affinity],
        },
    }


def _weighted(item: WeightedPodAffinityTerm) -> Document:
    return {"weight": item.weight, "podAffinityTerm": _term(item.term)}
