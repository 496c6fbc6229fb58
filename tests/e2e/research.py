"""The namespace `research`: what tests ask for by ProvisioningRequests, and what they look at afterwards."""

from __future__ import annotations

from typing import Any

from reconciler.manifests.crds import crds
from tests.builders import manifest
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import namespace, node_class
from tests.controlplane.rest import Document
from tests.e2e.shop import CLAIM, POOL

REQUEST = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
CHECK = "check-capacity.autoscaling.x-k8s.io"
ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
MADE = ("True", "CapacityIsProvisioned")
FOUND = ("True", "CapacityIsFound")
NOT_FOUND = ("False", "CapacityIsNotFound")
_ATTEMPT = "headroom.dev/attempt"
_UNREGISTERED = "karpenter.sh/unregistered"
_NAMESPACE = "research"


def pod_template(cpu: str, name: str = "worker", **spec: Any) -> Document:
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return manifest("v1", "PodTemplate", name, _NAMESPACE, template={"spec": {"containers": [container], **spec}})


def request(name: str, *pod_sets: tuple[str, int], class_name: str = CHECK, **parameters: str) -> Document:
    """pod_sets: a PodTemplate's name and how many pods of it; none of them: one worker."""
    return manifest(
        REQUEST[0],
        REQUEST[1],
        name,
        _NAMESPACE,
        spec={
            "provisioningClassName": class_name,
            "podSets": [
                {"podTemplateRef": {"name": template}, "count": count}
                for template, count in pod_sets or [("worker", 1)]
            ],
            **({"parameters": parameters} if parameters else {}),
        },
    )


def node_pool(
    name: str = "batch", *, cpu: str | None = None, node_class_name: str = "default", limit: str = ""
) -> Document:
    """Nodes that Karpenter leaves alone; those that are empty and not held are headroom's to remove. cpu: of each node."""
    needs = {"karpenter.sh/capacity-type": "on-demand", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if cpu is not None:
        needs["karpenter.kwok.sh/instance-cpu"] = cpu
    return manifest(
        POOL[0],
        POOL[1],
        name,
        spec={
            **({"limits": {"nodes": limit}} if limit else {}),
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": "Never",
                "budgets": [{"nodes": "100%"}],
            },
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": node_class_name},
                    "expireAfter": "Never",
                    "requirements": [{"key": key, "operator": "In", "values": [value]} for key, value in needs.items()],
                }
            },
        },
    )


class Research:
    """The namespace on a real control plane where requests are served."""

    def __init__(self, plane: ControlPlane) -> None:
        self.api = plane.api
        (definition,) = crds(["ProvisioningRequest"])
        self.api.apply(dict(definition))
        eventually(lambda: self.api.list(*REQUEST) == [], within=30, what="requests are served")
        self.api.apply(node_class())
        self.api.apply(namespace(_NAMESPACE))

    def ask(self, name: str, *pod_sets: tuple[str, int], class_name: str = ATOMIC, **parameters: str) -> None:
        self.api.create(request(name, *pod_sets, class_name=class_name, **parameters))

    def cancel(self, name: str) -> None:
        self.api.delete(*REQUEST, name, namespace=_NAMESPACE)

    def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        """Status and reason by type."""
        return {kind: (item["status"], item["reason"]) for kind, item in self._conditions(name).items()}

    def told(self, name: str) -> str:
        """What the request says, and the events about it: for whoever reads that a test failed."""
        conditions = [
            f"{kind} {item['status']} {item['reason']}: {item.get('message', '')}"
            for kind, item in sorted(self._conditions(name).items())
        ]
        events = [
            f"{event.get('eventTime') or event['deprecatedLastTimestamp']} {event['reason']}: {event.get('note', '')}"
            for event in self.api.list("events.k8s.io/v1", "Event", namespace=_NAMESPACE)
            if event["regarding"]["name"] == name
        ]
        return "\n".join((f"{name} says", *conditions, "events", *sorted(events)))

    def wait_for(self, name: str, kind: str, expected: tuple[str, str], *, within: float = 90) -> None:
        def said() -> bool:
            assert self.conditions(name).get(kind) == expected, self.told(name)
            return True

        eventually(said, within=within, what=f"{name} says {kind} {expected}", every=0.5)

    def claims(self) -> set[str]:
        return {claim["metadata"]["name"] for claim in self.api.list(*CLAIM)}

    def attempts(self) -> list[str]:
        """The number of the attempt that each NodeClaim is of; "" of none."""
        labels = [claim["metadata"]["labels"].get(_ATTEMPT, "") for claim in self.api.list(*CLAIM)]
        return sorted(label.rpartition(".")[2] for label in labels)

    def wait_until_nothing_is_left(self) -> None:
        """Neither NodeClaims nor nodes."""

        def gone() -> bool:
            self._collect_unregistered()
            left = self.claims(), [node["metadata"]["name"] for node in self.api.list("v1", "Node")]
            assert left == (set(), []), f"{left} is left"
            return True

        eventually(gone, within=60, what="no node is left", every=0.5)

    def _collect_unregistered(self) -> None:
        """Deletes nodes that lost their NodeClaim before they registered with Karpenter, which leaves those to the cloud's own controller.

        The KWOK provider has none.
        """
        claimed = {claim.get("status", {}).get("providerID") for claim in self.api.list(*CLAIM)}
        for node in self.api.list("v1", "Node"):
            taints = {taint["key"] for taint in node["spec"].get("taints", ())}
            if _UNREGISTERED in taints and node["spec"]["providerID"] not in claimed:
                self.api.delete("v1", "Node", node["metadata"]["name"])

    def _conditions(self, name: str) -> dict[str, Document]:
        found = self.api.get(*REQUEST, name, namespace=_NAMESPACE)
        assert found is not None, f"there is no request {name}"
        return {item["type"]: item for item in found.get("status", {}).get("conditions", ())}

    def wait_until_hashed(self) -> None:
        """Karpenter has taken up the pool `batch`, so that NodeClaims may be made in it."""
        eventually(self._hashed_pool, within=30, what="Karpenter has hashed the pool", every=0.5)

    def _hashed_pool(self) -> Document:
        pool = self.api.get(*POOL, "batch")
        assert pool is not None
        assert "karpenter.sh/nodepool-hash" in pool["metadata"]["annotations"]
        return pool
