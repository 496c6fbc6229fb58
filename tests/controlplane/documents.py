"""Documents that the playground and the tests apply: a node class, pools, claims, workloads.

Called by `python -m tests.controlplane` and by tests; each returns a new document that the
caller may change.
"""

from __future__ import annotations

from tests.builders import manifest
from tests.controlplane.rest import Document

NODE_CLASS_REF = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
NODE_POOL = "karpenter.sh/nodepool"

_PAUSE = "pause"


def node_class() -> Document:
    """What pools and claims refer to; the KWOK provider needs nothing in it."""
    return {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}


def node_pool(name: str = "default", **spec: object) -> Document:
    """A pool of amd64 Linux nodes; `spec` adds to it (`limits`, `weight`, `disruption`, …)."""
    template = {
        "spec": {
            "nodeClassRef": dict(NODE_CLASS_REF),
            "requirements": [
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            ],
            "expireAfter": "Never",
        }
    }
    return manifest("karpenter.sh/v1", "NodePool", name, spec={"template": template, **spec})


def node_claim(name: str, pool: Document, *instance_types: str, cpu: str = "1", memory: str = "1Gi") -> Document:
    """A claim as Karpenter itself would make it for a pool that has been read from the server.

    It belongs to the pool and is limited to some instance types, which the KWOK provider needs.
    """
    template = pool["spec"]["template"]
    pool_name = pool["metadata"]["name"]
    requirements = [
        *template["spec"]["requirements"],
        {"key": NODE_POOL, "operator": "In", "values": [pool_name]},
        {"key": INSTANCE_TYPE, "operator": "In", "values": list(instance_types)},
    ]
    return manifest(
        "karpenter.sh/v1",
        "NodeClaim",
        name,
        metadata={
            "labels": {**template.get("metadata", {}).get("labels", {}), NODE_POOL: pool_name},
            "ownerReferences": [
                {
                    "apiVersion": pool["apiVersion"],
                    "kind": pool["kind"],
                    "name": pool_name,
                    "uid": pool["metadata"]["uid"],
                    "blockOwnerDeletion": True,
                }
            ],
        },
        spec={
            "nodeClassRef": template["spec"]["nodeClassRef"],
            "requirements": requirements,
            "resources": {"requests": {"cpu": cpu, "memory": memory, "pods": "10"}},
            "expireAfter": "Never",
        },
    )


def namespace(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def deployment(name: str, *, replicas: int, cpu: str, namespace: str = "default") -> Document:
    """Pods that ask for some CPU and run nowhere in particular."""
    labels = {"app": name}
    container = {"name": "main", "image": _PAUSE, "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return manifest(
        "apps/v1",
        "Deployment",
        name,
        namespace,
        spec={
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
            },
        },
    )
