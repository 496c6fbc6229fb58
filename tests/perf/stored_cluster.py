"""A large cluster in the API server's own store, always the same: objects as large as those of a real one.

They are written to etcd directly, as JSON, which the API server reads as it reads its own: asking it for each would take an hour.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from tests.controlplane.rest import Document

ZONES = ("test-zone-a", "test-zone-b", "test-zone-c")
NAMESPACES = 40
PODS_OF_ONE = 30
"""Pods of one Deployment, which has two old ReplicaSets beside the one in use."""
_CPUS = ("100m", "250m", "500m", "500m")
_MEMORIES = ("128Mi", "256Mi", "512Mi", "1Gi")
_MADE = "2026-11-01T08:00:00Z"
Stored = tuple[str, str]
"""A key of etcd and its JSON."""


def large_cluster(*, nodes: int, pods: int, name: str = "node", seed: int = 7) -> Iterator[Stored]:
    """Nodes of 32 CPUs with their NodeClaims and CSINodes, pods spread over them, and the workloads of the pods."""
    random = Random(seed)
    for number in range(NAMESPACES):
        yield f"/registry/namespaces/team-{number}", _json(_namespace(f"team-{number}"))
    yield "/registry/karpenter.sh/nodepools/general", _json(_node_pool())
    for number in range(nodes):
        yield from _node(f"{name}-{number:05}", ZONES[number % len(ZONES)])
    for number in range(-(-pods // PODS_OF_ONE)):
        yield from _workload(number, random, min(PODS_OF_ONE, pods - number * PODS_OF_ONE), nodes, name)


def _json(document: Document) -> str:
    return json.dumps(document, separators=(",", ":"))


def _metadata(name: str, **more: Any) -> Document:
    return {"name": name, "uid": f"uid-{name}", "creationTimestamp": _MADE, **more}


def _namespace(name: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": _metadata(name, labels={"kubernetes.io/metadata.name": name}),
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _node_pool() -> Document:
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
    ]
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": _metadata("general", annotations={"karpenter.sh/nodepool-hash": "1"}),
        "spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": requirements}}},
    }


def _managed(*paths: str, manager: str, subresource: str = "") -> Document:
    """Field managers, which are a third of most objects."""
    fields: Document = {}
    for path in paths:
        inner = fields
        for part in path.split("."):
            inner = inner.setdefault(f"f:{part}", {})
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": _MADE,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **({"subresource": subresource} if subresource else {}),
    }


def _conditions(*kinds: str) -> list[Document]:
    return [
        {"type": kind, "status": "True", "lastTransitionTime": _MADE, "reason": f"{kind}Is", "message": f"{kind} is so"}
        for kind in kinds
    ]


def _images() -> list[Document]:
    return [
        {
            "names": [
                f"registry.example.com/team/image-{each}@sha256:{each:064x}",
                f"registry.example.com/team/image-{each}:1.{each}",
            ],
            "sizeBytes": 10_000_000 + each,
        }
        for each in range(40)
    ]


def _node(name: str, zone: str) -> Iterator[Stored]:
    room = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "s-32x-amd64-linux",
        "karpenter.sh/nodepool": "general",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/initialized": "true",
        "karpenter.sh/registered": "true",
        "karpenter.kwok.sh/instance-family": "s",
        "karpenter.kwok.sh/instance-size": "32x",
        "topology.kubernetes.io/region": "test-region",
        "topology.kubernetes.io/zone": zone,
    }
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}]
    info = dict.fromkeys(
        ("kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion", "machineID"), "1.36.3"
    )
    yield (
        f"/registry/minions/{name}",
        _json(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": _metadata(
                    name,
                    labels=labels,
                    annotations={"node.alpha.kubernetes.io/ttl": "0", "karpenter.sh/nodepool-hash": "1"},
                    managedFields=[
                        _managed(*(f"metadata.labels.{key.replace('.', '_')}" for key in labels), manager="karpenter"),
                        _managed(
                            "status.allocatable.cpu",
                            "status.capacity.cpu",
                            "status.conditions.Ready.lastHeartbeatTime",
                            "status.images",
                            manager="kubelet",
                            subresource="status",
                        ),
                    ],
                ),
                "spec": {"providerID": f"kwok://{name}"},
                "status": {
                    "allocatable": room,
                    "capacity": room,
                    "conditions": _conditions("Ready"),
                    "images": _images(),
                    "addresses": addresses,
                    "nodeInfo": info,
                },
            }
        ),
    )
    yield _node_claim(name, labels, room)
    yield _csi_node(name)


def _node_claim(name: str, labels: Document, room: Document) -> Stored:
    claim = name.replace("node", "general")
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    kinds = _conditions("Launched", "Registered", "Initialized", "Ready", "Consolidatable")
    return (
        f"/registry/karpenter.sh/nodeclaims/{claim}",
        _json(
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "metadata": _metadata(
                    claim, labels=labels, managedFields=[_managed("status.conditions.Ready", manager="karpenter")]
                ),
                "spec": {"nodeClassRef": reference, "requirements": []},
                "status": {
                    "nodeName": name,
                    "providerID": f"kwok://{name}",
                    "allocatable": room,
                    "capacity": room,
                    "conditions": kinds,
                },
            }
        ),
    )


def _csi_node(name: str) -> Stored:
    drivers = [{"name": "ebs.csi.example.com", "nodeID": name, "allocatable": {"count": 25}, "topologyKeys": ["zone"]}]
    return (
        f"/registry/csinodes/{name}",
        _json(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": _metadata(name),
                "spec": {"drivers": drivers},
            }
        ),
    )


def _workload(number: int, random: Random, pods: int, nodes: int, node: str) -> Iterator[Stored]:
    """A Deployment, its ReplicaSets and its pods."""
    name, namespace = f"app-{number:05}", f"team-{number % NAMESPACES}"
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop", "example.com/team": namespace}
    template = {"metadata": {"labels": labels}, "spec": _pod_spec(name, random.choice(_CPUS), random.choice(_MEMORIES))}
    selector = {"matchLabels": {"app.kubernetes.io/name": name}}
    ready = {"replicas": pods, "readyReplicas": pods, "availableReplicas": pods, "observedGeneration": 3}
    managed = [_managed("spec.replicas", "spec.template.spec.containers.main.resources", manager="kubectl")]

    def metadata(called: str, **more: Any) -> Document:
        return _metadata(called, namespace=namespace, labels=labels, generation=3, managedFields=managed, **more)

    yield (
        f"/registry/deployments/{namespace}/{name}",
        _json(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": metadata(name),
                "spec": {"replicas": pods, "selector": selector, "template": template},
                "status": ready,
            }
        ),
    )
    for age, suffix in enumerate(("7d4b9c", "6c8f5d", "59b7fb")):
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": f"uid-{name}", "controller": True}
        yield (
            f"/registry/replicasets/{namespace}/{name}-{suffix}",
            _json(
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "metadata": metadata(f"{name}-{suffix}", ownerReferences=[owner]),
                    "spec": {"replicas": 0 if age else pods, "selector": selector, "template": template},
                    "status": {"replicas": 0} if age else ready,
                }
            ),
        )
    text = _json(_pod(name, namespace, labels, template["spec"]))
    for each in range(pods):
        pod = f"{name}-7d4b9c-{each:05}"
        on = f"{node}-{(number * PODS_OF_ONE + each) % nodes:05}"
        yield f"/registry/pods/{namespace}/{pod}", text.replace("POD-NAME", pod).replace("NODE-NAME", on)


def _pod_spec(name: str, cpu: str, memory: str) -> Document:
    environment = [{"name": f"SETTING_{each}", "value": f"a value of setting {each} of {name}"} for each in range(12)]
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10}
    return {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": name,
        "securityContext": {"runAsNonRoot": True},
        "schedulerName": "default-scheduler",
        "containers": [
            {
                "name": "main",
                "image": f"registry.example.com/team/{name}:1.2.3",
                "env": environment,
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
                "livenessProbe": probe,
                "readinessProbe": probe,
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
            },
        ],
    }


def _pod(name: str, namespace: str, labels: Document, spec: Document) -> Document:
    """As kubelet has reported it running. POD-NAME and NODE-NAME stand for its own."""
    mount = {
        "name": "kube-api-access-x7k2p",
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    authority = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    lasting = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    container = {**spec["containers"][0], "volumeMounts": [mount]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _pod_metadata(name, namespace, labels, (*spec, *(f"containers.main.{key}" for key in container))),
        "spec": {
            **spec,
            "nodeName": "NODE-NAME",
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            "enableServiceLinks": True,
            "containers": [container],
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", **lasting},
                {"key": "node.kubernetes.io/unreachable", **lasting},
            ],
            "volumes": [{"name": mount["name"], "projected": {"defaultMode": 420, "sources": [token, authority]}}],
        },
        "status": _pod_status(name, container["resources"]),
    }


def _pod_metadata(name: str, namespace: str, labels: Document, fields: Iterable[str]) -> Document:
    """fields: of the spec, as the field manager names them."""
    return {
        "name": "POD-NAME",
        "generateName": f"{name}-7d4b9c-",
        "namespace": namespace,
        "uid": "uid-POD-NAME",
        "creationTimestamp": _MADE,
        "labels": {**labels, "pod-template-hash": "7d4b9c"},
        "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{name}-7d4b9c",
                "uid": f"uid-{name}-7d4b9c",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [
            _managed(
                *(f"metadata.labels.{key.replace('.', '_')}" for key in labels),
                *(f"spec.{key}" for key in fields),
                manager="kube-controller-manager",
            ),
            _managed(
                *(
                    f"status.conditions.{kind}.{field}"
                    for kind in ("Ready", "Initialized", "ContainersReady", "PodReadyToStartContainers")
                    for field in ("lastProbeTime", "lastTransitionTime", "status", "type")
                ),
                *(
                    f"status.{key}"
                    for key in ("containerStatuses", "hostIP", "hostIPs", "phase", "podIP", "podIPs", "startTime")
                ),
                manager="kubelet",
                subresource="status",
            ),
        ],
    }


def _pod_status(name: str, resources: Document) -> Document:
    image = f"registry.example.com/team/{name}"
    return {
        "phase": "Running",
        "conditions": _conditions(
            "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"
        ),
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": "10.1.0.1",
        "podIPs": [{"ip": "10.1.0.1"}],
        "startTime": _MADE,
        "qosClass": "Burstable",
        "containerStatuses": [
            {
                "name": "main",
                "image": f"{image}:1.2.3",
                "imageID": f"{image}@sha256:{'0' * 64}",
                "containerID": f"containerd://{'1' * 64}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": _MADE}},
                "lastState": {},
                "allocatedResources": resources["requests"],
                "resources": resources,
            }
        ],
    }
