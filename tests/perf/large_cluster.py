"""Large inputs for the benchmarks, always the same: a snapshot of many nodes and pods, and folders of manifests."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from reconciler.manifests.instance_types import synthetic_instance_types
from reconciler.model.nodes import InstanceType
from tests.manifests import snapshot_in

ZONES = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
CPUS = ("100m", "250m", "500m", "1", "1500m")
MEMORIES = ("100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi")

Object = dict[str, Any]


def write_snapshot(folder: Path, *, nodes: int, pods: int) -> None:
    """Nodes of 16 CPUs and 64 GiB in one pool, pods spread over them, all as kubectl prints them."""
    random = Random(7)
    types = synthetic_instance_types()
    kind = next(item for item in types if "amd64" in item.name and "linux" in item.name and "16x" in item.name)
    lists = {plural: [_machine(plural, index, kind) for index in range(nodes)] for plural in ("nodes", "nodeclaims")}
    for plural, count in {"pods": pods, "workloads": 50}.items():
        bound = [{"NODE": f"node-{index % nodes}", "REQUESTS": _requests(random)} for index in range(count)]
        lists[plural] = [_object(plural, index, **bound[index]) for index in range(count)]
    snapshot_in(folder, {**lists, "nodepools": [_object("nodepools", 0)]}, [_type(item) for item in types])


def write_buffers(folder: Path, *, count: int) -> None:
    """One file a buffer; odd ones by percentage, even ones by replicas."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        size = "percentage: 50" if index % 2 else "replicas: 20"
        (folder / f"buffer-{index:04}.yaml").write_text(
            "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\n"
            f"metadata:\n  name: buffer-{index}\n  namespace: team-{index % 10}\nspec:\n"
            f"  scalableRef:\n    apiGroup: apps\n    kind: Deployment\n    name: app-{index % 50}\n  {size}\n"
        )


def write_documents(folder: Path, *, count: int) -> None:
    """A mixed repository: buffers, pod templates and node pools, ten documents a file."""
    folder.mkdir(parents=True, exist_ok=True)
    documents = [_document(index) for index in range(count)]
    for start in range(0, count, 10):
        (folder / f"documents-{start:05}.yaml").write_text("---\n".join(documents[start : start + 10]))


def _document(index: int) -> str:
    head = f"metadata:\n  name: item-{index}\n"
    if index % 3 == 0:
        return (
            f"apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\n{head}  namespace: team\nspec:\n"
            f"  podTemplateRef:\n    name: item-{index + 1}\n  replicas: {index % 9}\n  limits:\n    cpu: '8'\n"
        )
    if index % 3 == 1:
        return (
            f"apiVersion: v1\nkind: PodTemplate\n{head}  namespace: team\ntemplate:\n  metadata:\n    labels:\n"
            "      app: web\n  spec:\n    containers:\n      - name: main\n        image: web:1\n        resources:\n"
            "          requests:\n            cpu: 250m\n            memory: 256Mi\n"
        )
    return (
        f"apiVersion: karpenter.sh/v1\nkind: NodePool\n{head}spec:\n  weight: {index % 100 + 1}\n  template:\n    spec:\n"
        "      nodeClassRef:\n        group: karpenter.kwok.sh\n        kind: KWOKNodeClass\n        name: default\n"
        "      requirements:\n        - key: kubernetes.io/os\n          operator: In\n          values: [linux]\n"
        "  disruption:\n    consolidateAfter: 30s\n    budgets:\n      - nodes: 10%\n        reasons: [Drifted]\n"
    )


_CLAIM = "{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}"
_CONTAINERS = "[{name: main, resources: {requests: REQUESTS}}]"
_CONDITIONS = ", ".join(
    f'{{type: {name}, status: "True"}}' for name in ("Launched", "Registered", "Initialized", "Ready")
)
_TEXTS = {
    "nodes": """{apiVersion: v1, kind: Node, metadata: {name: node-NUMBER, uid: node-uid-NUMBER, labels: LABELS},
        spec: {providerID: "kwok://node-NUMBER"},
        status: {allocatable: ALLOCATABLE, capacity: CAPACITY, conditions: [{type: Ready, status: "True"}]}}""",
    "nodeclaims": f"""{{apiVersion: karpenter.sh/v1, kind: NodeClaim,
        metadata: {{name: general-NUMBER, uid: claim-uid-NUMBER, labels: LABELS}},
        spec: {{nodeClassRef: {_CLAIM}, requirements: []}},
        status: {{nodeName: node-NUMBER, providerID: "kwok://node-NUMBER", allocatable: ALLOCATABLE, capacity: CAPACITY,
          conditions: [{_CONDITIONS}]}}}}""",
    "pods": f"""{{apiVersion: v1, kind: Pod,
        metadata: {{name: pod-NUMBER, namespace: TEAM, labels: {{app: APP}},
          ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: APP, controller: true}}]}},
        spec: {{nodeName: NODE, containers: {_CONTAINERS}}}, status: {{phase: Running}}}}""",
    "nodepools": f"""{{apiVersion: karpenter.sh/v1, kind: NodePool,
        metadata: {{name: general, uid: pool-uid, annotations: {{karpenter.sh/nodepool-hash: "1"}}}},
        spec: {{template: {{spec: {{nodeClassRef: {_CLAIM}, requirements: [
          {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}},
          {{key: kubernetes.io/os, operator: In, values: [linux]}}]}}}}}}}}""",
    "workloads": f"""{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: APP, namespace: TEAM}},
        spec: {{replicas: 40, selector: {{matchLabels: {{app: APP}}}},
          template: {{metadata: {{labels: {{app: APP}}}}, spec: {{containers: {_CONTAINERS}}}}}}}}}""",
}
"""YAML of an object. Words in capitals stand for values of its own."""


def _object(plural: str, index: int, **values: object) -> Object:
    text = _json(plural)
    words = {"APP": f"app-{index % 50}", "TEAM": f"team-{index % 10}", "NUMBER": str(index)}
    for word, value in values.items():
        text = text.replace(f'"{word}"', json.dumps(value))
    for word, short in words.items():
        text = text.replace(word, short)
    found: Object = json.loads(text)
    return found


@cache
def _json(plural: str) -> str:
    return json.dumps(yaml.safe_load(_TEXTS[plural]))


def _machine(plural: str, index: int, kind: InstanceType) -> Object:
    labels = {
        **dict(kind.labels),
        "kubernetes.io/hostname": f"node-{index}",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": kind.name,
        "karpenter.sh/nodepool": "general",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/initialized": "true",
        "karpenter.sh/registered": "true",
        "topology.kubernetes.io/zone": ZONES[index % len(ZONES)],
    }
    room = {"ALLOCATABLE": kind.allocatable.quantities(), "CAPACITY": kind.capacity.quantities()}
    return _object(plural, index, LABELS=labels, **room)


def _requests(random: Random) -> Object:
    return {"cpu": random.choice(CPUS), "memory": random.choice(MEMORIES)}


def _type(kind: InstanceType) -> Object:
    return {
        "name": kind.name,
        "architecture": kind.architecture,
        "operatingSystems": list(kind.operating_systems),
        "resources": kind.capacity.quantities(),
        "offerings": [
            {
                "Price": offering.price,
                "Available": offering.available,
                "Requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [offering.capacity_type]},
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [offering.zone]},
                ],
            }
            for offering in kind.offerings
        ],
    }
