"""Model objects with everything defaulted, so that a test names only what it is about. Used by all tests.

fields: whatever else the object has, by the model's own names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from reconciler.model.buffers import Buffer
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    INITIALIZED_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    OPERATING_SYSTEM_LABEL,
    REGISTERED_LABEL,
    ZONE_LABEL,
    DisruptionBudget,
    InstanceType,
    Node,
    NodeClaimTemplate,
    NodeClassRef,
    NodeOverlay,
    NodePool,
    Offering,
)
from reconciler.model.pods import Pod, PodAffinityTerm, PodShape, TopologySpread, Workload
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector, Operator, Requirement, Taint, Toleration


def resources(cpu: str = "1", memory: str = "1Gi", **others: str) -> Resources:
    return Resources.parse({"cpu": cpu, "memory": memory, **others})


def shape(
    cpu: str = "1",
    memory: str = "1Gi",
    *,
    namespace: str = "shop",
    labels: Mapping[str, str] | None = None,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Toleration] = (),
    **fields: Any,
) -> PodShape:
    found = PodShape(
        namespace=namespace,
        requests=resources(cpu, memory, pods="1"),
        labels=tuple(sorted((labels or {}).items())),
        node_selector=tuple(sorted((node_selector or {}).items())),
        tolerations=tuple(tolerations),
    )
    return replace(found, **fields)


def web(cpu: str = "100m", memory: str = "64Mi", **fields: Any) -> PodShape:
    """A small pod of the app that rules are about where none is named."""
    return shape(cpu, memory, **{"labels": {"app": "web"}, **fields})


def selects(app: str = "web") -> LabelSelector:
    """The pods of an app."""
    return LabelSelector((("app", app),))


def term(topology_key: str, app: str = "web", **fields: Any) -> PodAffinityTerm:
    """Near the pods of an app, or apart from them."""
    return replace(PodAffinityTerm(topology_key, selects(app)), **fields)


def spread(topology_key: str, max_skew: int = 1, *, app: str = "web", **fields: Any) -> TopologySpread:
    """Evenly among the pods of an app; a pod waits where it cannot be."""
    return replace(TopologySpread(topology_key, max_skew, "DoNotSchedule", selects(app)), **fields)


def overlay(name: str, *requirements: Requirement, **fields: Any) -> NodeOverlay:
    return NodeOverlay(ObjectRef("karpenter.sh", "NodeOverlay", "", name), requirements, **fields)


def one_of(key: str, *values: str) -> Requirement:
    return Requirement(key, Operator.IN, values)


def buffer_ref(name: str = "web", namespace: str = "shop") -> ObjectRef:
    return ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", namespace, name)


def deployment_ref(name: str = "web", namespace: str = "shop") -> ObjectRef:
    return ObjectRef("apps", "Deployment", namespace, name)


def buffer(
    name: str = "web",
    *,
    namespace: str = "shop",
    target: str | None = "web",
    replicas: int | None = 3,
    **fields: Any,
) -> Buffer:
    found = Buffer(
        ref=buffer_ref(name, namespace),
        target=None if target is None else deployment_ref(target, namespace),
        replicas=replicas,
    )
    return replace(found, **fields)


def deployment(
    name: str = "web",
    *,
    namespace: str = "shop",
    replicas: int | None = 10,
    pod_shape: PodShape | None = None,
    **fields: Any,
) -> Workload:
    found = Workload(deployment_ref(name, namespace), pod_shape or shape(namespace=namespace), replicas)
    return replace(found, **fields)


def demand(
    name: str = "web", *, count: int = 3, pod_shape: PodShape | None = None, priority: int = 0, **fields: Any
) -> Demand:
    found = Demand(
        ref=buffer_ref(name),
        groups=(ChunkGroup(pod_shape or shape(), count),) if count else (),
        desired=count,
        priority=priority,
    )
    return replace(found, **fields)


def pod(
    name: str = "web-1",
    *,
    namespace: str = "shop",
    node: str | None = None,
    pod_shape: PodShape | None = None,
    owner_kind: str = "ReplicaSet",
    **fields: Any,
) -> Pod:
    found = Pod(
        namespace=namespace,
        name=name,
        shape=pod_shape or shape(namespace=namespace),
        node_name=node,
        phase="Pending" if node is None else "Running",
        owner_kind=owner_kind,
    )
    return replace(found, **fields)


def node(
    name: str = "node-1",
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pool: str | None = "general",
    zone: str = "zone-a",
    instance_type: str = "m-4x",
    capacity_type: str = "on-demand",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    ready: bool = True,
    **fields: Any,
) -> Node:
    all_labels = {
        HOSTNAME_LABEL: name,
        ZONE_LABEL: zone,
        INSTANCE_TYPE_LABEL: instance_type,
        CAPACITY_TYPE_LABEL: capacity_type,
        ARCHITECTURE_LABEL: "amd64",
        OPERATING_SYSTEM_LABEL: "linux",
    }
    if pool is not None:
        all_labels |= {NODEPOOL_LABEL: pool, REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"}
    found = Node(
        name=name,
        allocatable=resources(cpu, memory, pods="110"),
        capacity=resources(cpu, memory, pods="110"),
        labels=tuple(sorted((all_labels | dict(labels or {})).items())),
        annotations=tuple(sorted((annotations or {}).items())),
        taints=tuple(taints),
        uid=f"uid-{name}",
        provider_id=f"test://{name}",
        ready=ready,
    )
    return replace(found, **fields)


def node_pool(
    name: str = "general",
    *,
    weight: int = 0,
    limits: Mapping[str, str] | None = None,
    requirements: Sequence[Requirement] = (),
    taints: Sequence[Taint] = (),
    budgets: tuple[DisruptionBudget, ...] | None = None,
    consolidate_after: timedelta | None = timedelta(0),
    **fields: Any,
) -> NodePool:
    found = NodePool(
        name=name,
        template=NodeClaimTemplate(
            requirements=tuple(requirements),
            taints=tuple(taints),
            node_class=NodeClassRef("karpenter.kwok.sh", "KWOKNodeClass", "default"),
        ),
        weight=weight,
        limits=None if limits is None else Resources.parse(limits).amounts,
        budgets=budgets,
        consolidate_after=consolidate_after,
        uid=f"uid-{name}",
        hash="1234",
        hash_version="v3",
    )
    return replace(found, **fields)


def instance_type(
    name: str = "m-4x",
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    price: float = 0.2,
    zones: Sequence[str] = ("zone-a", "zone-b"),
    capacity_types: Sequence[str] = ("on-demand",),
    available: bool = True,
) -> InstanceType:
    """Offerings in every zone for every capacity type, spot at half the price."""
    return InstanceType(
        name=name,
        architecture="amd64",
        operating_systems=("linux",),
        capacity=resources(cpu, memory, pods="110"),
        overhead=resources("100m", "10Mi"),
        offerings=tuple(
            Offering(
                zone,
                capacity_type,
                price / 2 if capacity_type == "spot" else price,
                available,
                (one_of(CAPACITY_TYPE_LABEL, capacity_type), one_of(ZONE_LABEL, zone)),
            )
            for zone in zones
            for capacity_type in capacity_types
        ),
        labels=tuple(
            sorted({INSTANCE_TYPE_LABEL: name, ARCHITECTURE_LABEL: "amd64", OPERATING_SYSTEM_LABEL: "linux"}.items())
        ),
    )


def pending(name: str, pod_shape: PodShape) -> Demand:
    """What a pod that waits asks for."""
    return Demand(ObjectRef("", "Pod", "shop", name), (ChunkGroup(pod_shape, 1),), 1)


def manifest(
    api_version: str,
    kind: str,
    name: str,
    namespace: str = "",
    *,
    metadata: Mapping[str, Any] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """An API object as a document. metadata: beside its names; fields: beside that."""
    names = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": {**names, **(metadata or {})}, **fields}


def node_manifest(
    name: str,
    room: Mapping[str, str],
    *,
    pool: str = "",
    of_type: str = "",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A ready node; one of a NodePool is registered and initialized, of that type and in zone-a."""
    own = {HOSTNAME_LABEL: name, OPERATING_SYSTEM_LABEL: "linux", ARCHITECTURE_LABEL: "amd64"}
    if pool:
        own |= {NODEPOOL_LABEL: pool, REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"}
        own |= {INSTANCE_TYPE_LABEL: of_type, CAPACITY_TYPE_LABEL: "on-demand", ZONE_LABEL: "zone-a"}
    ready = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    marks = {"labels": {**own, **(labels or {})}}
    return manifest("v1", "Node", name, metadata=marks, spec={"providerID": name, **spec}, status=ready)


def type_in_a_catalog(name: str, room: Mapping[str, str], price: float, **more: Any) -> dict[str, Any]:
    """An entry of `instance_types.json`: on demand in zone-a. more: its other fields."""
    where = ((CAPACITY_TYPE_LABEL, "on-demand"), (ZONE_LABEL, "zone-a"))
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in where]
    offering = {"Price": price, "Available": True, "Requirements": requirements}
    about = {"name": name, "architecture": "amd64", "operatingSystems": ["linux"]}
    return {**about, "resources": dict(room), "offerings": [offering], **more}
