"""The shop: the manifests and the workload that the whole-path tests are about."""

from __future__ import annotations

from typing import Any

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import node_class
from tests.controlplane.rest import Document, condition
from tests.fakes.embedded import workload
from tests.manifests import BY_DEPLOYMENT, buffer

CLAIM = ("karpenter.sh/v1", "NodeClaim")
POOL = ("karpenter.sh/v1", "NodePool")
BUFFER = ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer")
PLACEHOLDER = "headroom.dev/placeholder=true"

NODE_POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: general
spec:
  limits: {cpu: "200"}
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 0s
    budgets: [{nodes: "100%"}]
  template:
    metadata:
      labels: {team: shop}
      annotations: {example.com/owner: platform}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      expireAfter: 720h
      taints: [{key: dedicated, value: shop, effect: NoSchedule}]
      startupTaints: []
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: kubernetes.io/os, operator: In, values: [linux]}
        - {key: karpenter.kwok.sh/instance-cpu, operator: In, values: ["4", "8"]}
        - {key: example.com/tier, operator: In, values: [gold, silver]}
"""

BUFFER_OF_FOUR = buffer("web", "percentage: 40", of=BY_DEPLOYMENT)


def deployment(replicas: int = 10, *, name: str = "web", cpu: str = "1", **pod_spec: Any) -> Document:
    """Ten web pods of one CPU, which tolerate the pool's taint. pod_spec: more fields of their spec."""
    toleration = {"key": "dedicated", "operator": "Equal", "value": "shop", "effect": "NoSchedule"}
    container = {"image": "web:1", "resources": {"requests": {"cpu": cpu, "memory": "512Mi"}}}
    pod_spec |= {"container": container, "tolerations": [toleration], "terminationGracePeriodSeconds": 0}
    return workload(name, replicas=replicas, **pod_spec)


def buffer_of(chunks: int) -> str:
    """A CapacityBuffer of that many web pods."""
    return buffer("web", f"replicas: {chunks}", of=BY_DEPLOYMENT)


class Shop:
    """The shop on a real control plane: what a test asks about it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.api = plane.api
        self.plane = plane
        self.api.apply(node_class())
        self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})

    def deploy(self) -> None:
        self.api.apply(deployment())

    def scale(self, replicas: int) -> None:
        self.api.patch(
            "apps/v1", "Deployment", "web", {"spec": {"replicas": replicas}}, namespace="shop", subresource="scale"
        )

    def pods(self) -> list[Document]:
        return self.api.list("v1", "Pod", namespace="shop")

    def running(self) -> list[Document]:
        return [pod for pod in self.pods() if pod["status"].get("phase") == "Running"]

    def claims(self) -> list[Document]:
        return self.api.list(*CLAIM)

    def placeholders(self) -> list[Document]:
        return [
            claim
            for claim in self.api.list(*CLAIM, labels=PLACEHOLDER)
            if not claim["metadata"].get("deletionTimestamp")
        ]

    def consolidate_after(self) -> str:
        """Of the NodePool, as the cluster has it."""
        pool = self.api.get("karpenter.sh/v1", "NodePool", "general") or {}
        return str(pool.get("spec", {}).get("disruption", {}).get("consolidateAfter", ""))

    def node(self, name: str) -> Document:
        node = self.api.get("v1", "Node", name)
        assert node is not None, f"node {name} is not there"
        return node

    def buffer(self, name: str = "web") -> dict[str, Any]:
        return self.api.get(*BUFFER, name, namespace="shop") or {}

    def wait_for_placeholders(self) -> list[Document]:
        """The buffer's placeholders, all initialized."""

        def ready() -> list[Document]:
            found = self.placeholders()
            assert found, "no placeholder yet"
            assert all(condition(claim, "Initialized") == "True" for claim in found), found
            return found

        return eventually(ready, within=90, what="placeholders are initialized", every=0.5)

    def wait_for_buffer(self, reason: str, *, replicas: int = 4, within: float = 90) -> dict[str, Any]:
        """The buffer's status says that it is provisioned so."""

        def said() -> dict[str, Any]:
            buffer = self.buffer()
            status = buffer.get("status", {})
            conditions = {item["type"]: item for item in status.get("conditions", [])}
            assert conditions.get("Provisioning", {}).get("reason") == reason, status
            assert status.get("replicas") == replicas, status
            return buffer

        return eventually(said, within=within, what=f"the buffer says {reason}", every=0.5)
