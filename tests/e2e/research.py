"""The namespace `research`: what tests ask for by ProvisioningRequests, and what they look at afterwards."""

from __future__ import annotations

from typing import Any

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.definitions import define
from tests.controlplane.documents import namespace, node_class
from tests.controlplane.rest import Document
from tests.e2e.shop import CLAIM, POOL
from tests.fakes import embedded, requests
from tests.fakes.requests import ATOMIC

REQUEST = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
_ATTEMPT = "headroom.dev/attempt"
_UNREGISTERED = "karpenter.sh/unregistered"
_NAMESPACE = "research"


def pod_template(cpu: str) -> Document:
    """`worker`, one pod of which is what a request of so many pods asks for."""
    return requests.pod_template(cpu=cpu, namespace=_NAMESPACE)


def node_pool(*, cpu: str, **spec: Any) -> Document:
    """`batch`: nodes of so many CPUs that Karpenter leaves alone; those that are empty and not held are headroom's to remove."""
    pool = embedded.node_pool("batch", **spec)
    pool["spec"]["disruption"]["consolidationPolicy"] = "WhenEmpty"
    needs = {"kubernetes.io/arch": "amd64", "karpenter.kwok.sh/instance-cpu": cpu}
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in needs.items()]
    pool["spec"]["template"]["spec"]["requirements"] += requirements
    return pool


class Research:
    """The namespace on a real control plane where requests are served."""

    def __init__(self, plane: ControlPlane) -> None:
        self.api = plane.api
        define(self.api, "ProvisioningRequest")
        self.api.apply(node_class())
        self.api.apply(namespace(_NAMESPACE))

    def ask(self, name: str, pods: int = 1, *, class_name: str = ATOMIC, **parameters: str) -> None:
        asked = requests.request(name, pods, class_name=class_name, parameters=parameters, namespace=_NAMESPACE)
        self.api.create(asked)

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
