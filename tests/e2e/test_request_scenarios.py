"""ProvisioningRequests on real Karpenter: many at once, one that ran before, and one beside a buffer on the only free node."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from reconciler.manifests.crds import crds
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import namespace, node_claim, node_class, node_pool
from tests.controlplane.rest import Document, condition
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.shop import CLAIM

pytestmark = pytest.mark.e2e

REQUEST = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
BUFFER = ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer")
CHECK = "check-capacity.autoscaling.x-k8s.io"
ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
BURST = 1000


def pod_template(cpu: str) -> Document:
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    metadata = {"name": "worker", "namespace": "research"}
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": metadata,
        "template": {"spec": {"containers": [container]}},
    }


def request(name: str, *, class_name: str = CHECK, count: int = 1) -> Document:
    return {
        "apiVersion": REQUEST[0],
        "kind": REQUEST[1],
        "metadata": {"name": name, "namespace": "research"},
        "spec": {
            "provisioningClassName": class_name,
            "podSets": [{"podTemplateRef": {"name": "worker"}, "count": count}],
        },
    }


def buffer() -> Document:
    return {
        "apiVersion": BUFFER[0],
        "kind": BUFFER[1],
        "metadata": {"name": "spare", "namespace": "research"},
        "spec": {"podTemplateRef": {"name": "worker"}, "replicas": 1},
    }


class Research:
    """A namespace with a pool of nodes that Karpenter leaves alone."""

    def __init__(self, plane: ControlPlane) -> None:
        self.api = plane.api
        (definition,) = crds(["ProvisioningRequest"])
        self.api.apply(dict(definition))
        eventually(lambda: self.api.list(*REQUEST) == [], within=30, what="requests are served")
        self.api.apply(node_class())
        self.api.apply(namespace("research"))
        pool = node_pool("batch", disruption={"consolidateAfter": "Never"})
        self.pool = self.api.apply(pool)

    def add_node(self, name: str, *, cpu: str, pods: int) -> None:
        """A node that nobody uses, as Karpenter makes it."""
        hashed = eventually(self._hashed_pool, within=30, what="Karpenter has hashed the pool")
        claim = node_claim(name, hashed, f"c-{cpu}x-amd64-linux", cpu=cpu, memory="64Gi")
        claim["spec"]["resources"]["requests"]["pods"] = str(pods)
        self.api.create(claim)
        eventually(lambda: self._is_initialized(name), within=60, what="the node is there", every=0.5)

    def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        found = self.api.get(*REQUEST, name, namespace="research")
        assert found is not None
        return {
            item["type"]: (item["status"], item["reason"]) for item in found.get("status", {}).get("conditions", ())
        }

    def wait_for(self, name: str, kind: str, expected: tuple[str, str], *, within: float = 60) -> None:
        def said() -> bool:
            assert self.conditions(name)[kind] == expected, self.conditions(name)
            return True

        eventually(said, within=within, what=f"{name} says {kind} {expected}")

    def buffer_says(self) -> str:
        found = self.api.get(*BUFFER, "spare", namespace="research")
        assert found is not None
        reasons = {item["type"]: str(item["reason"]) for item in found["status"]["conditions"]}
        return reasons["Provisioning"]

    def is_gone(self, name: str) -> bool:
        return self.api.get(*REQUEST, name, namespace="research") is None

    def claims(self) -> set[str]:
        return {claim["metadata"]["name"] for claim in self.api.list(*CLAIM)}

    def _hashed_pool(self) -> Document:
        pool = self.api.get("karpenter.sh/v1", "NodePool", "batch")
        assert pool is not None
        assert "karpenter.sh/nodepool-hash" in pool["metadata"]["annotations"]
        return pool

    def _is_initialized(self, name: str) -> bool:
        return condition(self.api.get(*CLAIM, name), "Initialized") == "True"


@pytest.fixture
def research(empty_control_plane: ControlPlane) -> Research:
    return Research(empty_control_plane)


def test_a_thousand_requests_in_one_burst_are_all_decided(
    research: Research, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    research.api.apply(pod_template("10m"))
    research.add_node("large", cpu="32", pods=600)
    with DaemonProcess(repository.folder, kubeconfig, tmp_path) as daemon:
        daemon.wait_until_ready()
        for number in range(BURST):
            research.api.create(request(f"small-{number:04}"))

        def decided() -> Counter[str | None]:
            found = Counter(condition(item, "Provisioned") for item in research.api.list(*REQUEST))
            assert None not in found, found
            return found

        answers = eventually(decided, within=240, what="all requests are decided", every=1)
        node = research.api.list("v1", "Node")[0]
        assert answers["True"] == int(node["status"]["allocatable"]["pods"])
        assert answers["True"] + answers["False"] == BURST
        assert research.claims() == {"large"}


def test_a_request_of_git_that_ran_is_not_run_again_by_another_daemon(
    research: Research, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    documents = [pod_template("1"), request("train", class_name=ATOMIC)]
    research.api.patch("karpenter.sh/v1", "NodePool", "batch", {"spec": {"disruption": {"consolidateAfter": "0s"}}})
    repository.push({"train.yaml": yaml.safe_dump_all(documents)})
    daemon = DaemonProcess(
        repository.folder, kubeconfig, tmp_path, requests_booked_for="5s", requests_kept_for="5s", passes_interval="3s"
    )
    with daemon:
        research.wait_for("train", "Provisioned", ("True", "CapacityIsProvisioned"), within=90)
        eventually(
            lambda: research.is_gone("train"), within=60, what="the request that has ended is collected", every=0.5
        )
        eventually(lambda: research.claims() == set(), within=90, what="Karpenter has removed its node", every=0.5)
    with daemon:
        eventually(lambda: daemon.status()["passes"] >= 4, within=90, what="four passes of another daemon", every=0.5)
        assert research.claims() == set()
        assert research.is_gone("train")


@pytest.mark.parametrize("first", ["request", "buffer"])
def test_a_request_and_a_buffer_with_one_free_node(
    first: str, research: Research, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    """Room for one pod: the request has it, whoever came first, and the buffer refills on a node of its own."""
    research.api.apply(pod_template("3"))
    research.add_node("free", cpu="4", pods=10)
    with DaemonProcess(repository.folder, kubeconfig, tmp_path):
        if first == "buffer":
            research.api.apply(buffer())
            eventually(lambda: research.buffer_says() == "FitsExistingCapacity", within=60, what="the buffer is full")
            assert research.claims() == {"free"}
        research.api.create(request("check"))
        research.wait_for("check", "Provisioned", ("True", "CapacityIsFound"))
        if first == "request":
            research.api.apply(buffer())
        eventually(lambda: len(research.claims()) == 2, within=60, what="the buffer gets a node of its own")
        eventually(lambda: research.buffer_says() == "FitsExistingCapacity", within=90, what="the buffer is full again")
        assert research.conditions("check")["Provisioned"] == ("True", "CapacityIsFound")
        held = [
            item["metadata"].get("annotations", {}).get("karpenter.sh/do-not-disrupt")
            for item in research.api.list(*CLAIM)
        ]
        assert held == ["true", "true"]
