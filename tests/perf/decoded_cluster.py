"""A large cluster and buffers as the daemon holds them once decoded, always the same. Used by the placement benchmark."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from random import Random

from reconciler.manifests.instance_types import SYNTHETIC_ZONES, synthetic_instance_types
from reconciler.model.demand import Demand
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    INITIALIZED_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    REGISTERED_LABEL,
    ZONE_LABEL,
    InstanceType,
    Node,
    NodeClaim,
)
from reconciler.model.pods import Pod, PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.quantity import CPU, MEMORY
from reconciler.model.requirements import LabelSelector
from reconciler.model.view import ClusterView
from tests.builders import demand, shape

WORKLOADS = 500
_TYPE = "s-16x-amd64-linux"
_CPUS = ("100m", "250m", "500m", "500m")
_MEMORIES = ("100Mi", "256Mi", "512Mi", "1Gi", "2Gi")
_CHUNK_CPUS = ("250m", "500m", "1", "1500m", "2")


def buffers(count: int, *, chunks: int) -> tuple[Demand, ...]:
    """`count` buffers of `chunks` equal chunks each, sizes drawn."""
    random = Random(11)
    return tuple(
        demand(
            f"buffer-{number:03}",
            count=chunks,
            pod_shape=shape(random.choice(_CHUNK_CPUS), random.choice(_MEMORIES), labels={"app": f"app-{number}"}),
        )
        for number in range(count)
    )


def workload_buffers(count: int, *, chunks: int) -> tuple[Demand, ...]:
    """Buffers for as many of the cluster's workloads, with all the rules of their pods."""
    shapes = _workloads()
    return tuple(demand(f"buffer-{number:03}", count=chunks, pod_shape=shapes[number * 7]) for number in range(count))


def cluster(*, nodes: int, pods: int) -> ClusterView:
    """Nodes of 16 CPUs in four zones, each with its NodeClaim, and bound pods of 500 workloads that fit there.

    One workload in ten spreads over zones, one in ten keeps its pods apart.
    """
    made = [_node(number) for number in range(nodes)]
    rooms = [_Room(_kind().allocatable.get(CPU), _kind().allocatable.get(MEMORY)) for _ in range(nodes)]
    shapes = _workloads()
    bound = []
    for number in range(pods):
        node = number % nodes
        start = number // nodes * 17 + node
        candidates = ((start + step) % WORKLOADS for step in range(WORKLOADS))
        index = next(index for index in candidates if rooms[node].take(index, shapes[index]))
        bound.append(
            Pod(
                shapes[index].namespace,
                f"app-{index:03}-{number:06}",
                shapes[index],
                node_name=made[node].name,
                uid=f"uid-{number}",
                phase="Running",
                owner_kind="ReplicaSet",
                owner_name=f"app-{index:03}",
            )
        )
    return ClusterView(
        revision="1",
        nodes=tuple(made),
        node_claims=tuple(_claim(node) for node in made),
        pods=tuple(sorted(bound, key=lambda pod: (pod.namespace, pod.name))),
    )


def some_pods_changed(view: ClusterView, count: int) -> ClusterView:
    """The next view: `count` pods are gone and as many came on other nodes; all else is the very same objects."""
    step = len(view.pods) // count
    pods = list(view.pods)
    for number in range(0, step * count, step):
        pods[number] = replace(pods[number], name=f"{pods[number].name}-b", uid=f"{pods[number].uid}-b")
    return replace(view, revision="2", pods=tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name))))


@dataclass
class _Room:
    """What is free on a node, and which workloads are on it."""

    cpu: int
    memory: int
    workloads: set[int] = field(default_factory=set)

    def take(self, index: int, pod_shape: PodShape) -> bool:
        cpu, memory = pod_shape.requests.get(CPU), pod_shape.requests.get(MEMORY)
        if cpu > self.cpu or memory > self.memory or (pod_shape.pod_anti_affinity and index in self.workloads):
            return False
        self.cpu -= cpu
        self.memory -= memory
        self.workloads.add(index)
        return True


@cache
def _workloads() -> tuple[PodShape, ...]:
    random = Random(7)
    return tuple(_workload(number, random) for number in range(WORKLOADS))


def _workload(number: int, random: Random) -> PodShape:
    labels = {"app": f"app-{number}"}
    selector = LabelSelector(tuple(labels.items()))
    plain = shape(random.choice(_CPUS), random.choice(_MEMORIES), namespace=f"team-{number % 10}", labels=labels)
    match number % 10:
        case 3:
            return replace(plain, topology_spread=(TopologySpread(ZONE_LABEL, 5, "DoNotSchedule", selector),))
        case 7:
            return replace(plain, pod_anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, selector),))
        case _:
            return plain


def _node(number: int) -> Node:
    name = f"node-{number:05}"
    labels = {
        **dict(_kind().labels),
        HOSTNAME_LABEL: name,
        INSTANCE_TYPE_LABEL: _TYPE,
        NODEPOOL_LABEL: "general",
        CAPACITY_TYPE_LABEL: "on-demand",
        INITIALIZED_LABEL: "true",
        REGISTERED_LABEL: "true",
        ZONE_LABEL: SYNTHETIC_ZONES[number % len(SYNTHETIC_ZONES)],
    }
    return Node(
        name,
        _kind().allocatable,
        labels=tuple(sorted(labels.items())),
        capacity=_kind().capacity,
        uid=f"uid-{name}",
        provider_id=f"kwok://{name}",
    )


def _claim(node: Node) -> NodeClaim:
    return NodeClaim(
        name=node.name.replace("node", "general"),
        labels=node.labels,
        uid=f"claim-{node.uid}",
        node_name=node.name,
        provider_id=node.provider_id,
        conditions=(("Initialized", "True"), ("Launched", "True"), ("Ready", "True"), ("Registered", "True")),
        capacity=node.capacity,
        allocatable=node.allocatable,
    )


@cache
def _kind() -> InstanceType:
    return next(item for item in synthetic_instance_types() if item.name == _TYPE)
