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
from reconciler.model.pod_spec_from_shape import pod_spec_of
from reconciler.model.pods import PodShape
from reconciler.model.requirements import Taint
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
    spec = pod_spec_of(shape, "main")
    (container,) = spec["containers"]
    requests = container["resources"]["requests"]
    if meant_for is not None:
        requests[_seat(meant_for)] = "1"
    # Extended resources are never overcommitted.
    container["resources"]["limits"] = {key: value for key, value in requests.items() if "/" in key}
    container["image"] = "pause"
    spec |= {"terminationGracePeriodSeconds": 0, "volumes": _volumes(shape)}
    spec["nodeSelector"] = {**dict(shape.node_selector), WORLD_LABEL: world}
    for rule in spec.get("topologySpreadConstraints", ()):
        if rule["whenUnsatisfiable"] != "DoNotSchedule":
            rule.pop("minDomains", None)  # the API server would refuse it
    if bound_to is not None:
        spec["nodeName"] = node_name(world, bound_to)
    return manifest("v1", "Pod", name, world, metadata={"labels": dict(shape.labels)}, spec=spec)


def replica_set_document(world: str, name: str, shape: PodShape) -> Document:
    """It selects by all labels of its pods, as a Deployment's does by template and pod-template-hash. It makes none itself."""
    labels = dict(shape.labels)
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "pause"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return manifest("apps/v1", "ReplicaSet", name, world, spec=spec)


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
