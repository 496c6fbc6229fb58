"""Attempts of atomic requests on real Karpenter: all at once, within limits or not at all, and the same end after a kill.

tests/properties/test_requests.py kills at every write of the embedded cluster.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.manifests.crds import crds
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import namespace, node_class
from tests.controlplane.rest import Document
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.fault_proxy import FaultProxy
from tests.e2e.shop import CLAIM

pytestmark = pytest.mark.e2e

REQUEST = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
CHECK = "check-capacity.autoscaling.x-k8s.io"
ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
ATTEMPT = "headroom.dev/attempt"
MADE = ("True", "CapacityIsProvisioned")
NODES = 3
LAST_KILL = 10
NODE_POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: batch
spec:
  limits: {nodes: "120"}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never, budgets: [{nodes: "100%"}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: kubernetes.io/os, operator: In, values: [linux]}
        - {key: karpenter.kwok.sh/instance-cpu, operator: In, values: ["4"]}
"""
MANIFESTS: dict[str, str | None] = {
    "pool.yaml": NODE_POOL,
    "worker.yaml": """\
apiVersion: v1
kind: PodTemplate
metadata: {name: worker, namespace: research}
template:
  spec: {containers: [{name: main, image: "main:1", resources: {requests: {cpu: "3", memory: 64Mi}}}]}
""",
}


class Research:
    """Pods of three CPUs, so that each has a node of four to itself."""

    def __init__(self, plane: ControlPlane) -> None:
        self.api = plane.api
        (definition,) = crds(["ProvisioningRequest"])
        self.api.apply(dict(definition))
        eventually(lambda: self.api.list(*REQUEST) == [], within=30, what="requests are served")
        self.api.apply(node_class())
        self.api.apply(namespace("research"))

    def ask(self, count: int, *, name: str = "train", class_name: str = ATOMIC, **parameters: str) -> None:
        self.api.create(
            {
                "apiVersion": REQUEST[0],
                "kind": REQUEST[1],
                "metadata": {"name": name, "namespace": "research"},
                "spec": {
                    "provisioningClassName": class_name,
                    "podSets": [{"podTemplateRef": {"name": "worker"}, "count": count}],
                    **({"parameters": parameters} if parameters else {}),
                },
            }
        )

    def wait_for(self, kind: str, expected: tuple[str, str], *, name: str = "train", within: float = 90) -> None:
        def said() -> bool:
            found = self.api.get(*REQUEST, name, namespace="research") or {}
            conditions = {
                item["type"]: (item["status"], item["reason"]) for item in found.get("status", {}).get("conditions", ())
            }
            assert conditions.get(kind) == expected, conditions
            return True

        eventually(said, within=within, what=f"{name} says {kind} {expected}", every=0.5)

    def claims(self) -> list[Document]:
        return self.api.list(*CLAIM)

    def attempts(self) -> list[str]:
        return sorted(claim["metadata"]["labels"].get(ATTEMPT, "").rpartition(".")[2] for claim in self.claims())


@pytest.fixture
def research(empty_control_plane: ControlPlane) -> Research:
    return Research(empty_control_plane)


def test_a_request_is_made_in_one_step_and_checks_say_what_is_left(
    research: Research, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    """110 nodes from none, more than a pass makes of others; then the booked room is not there for a check."""
    repository.push(MANIFESTS)
    with DaemonProcess(repository.folder, kubeconfig, tmp_path) as daemon:
        daemon.wait_until_ready()
        research.ask(110)
        research.wait_for("Provisioned", MADE, within=180)
        assert research.attempts() == ["1"] * 110
        research.ask(1, name="check", class_name=CHECK)
        research.wait_for("Provisioned", ("False", "CapacityIsNotFound"), name="check")
        research.ask(20, name="too-many", ValidUntilSeconds="20")
        research.wait_for("Provisioned", ("False", "CapacityIsNotFound"), name="too-many")
        research.wait_for("Failed", ("True", "Expired"), name="too-many", within=60)
        assert len(research.claims()) == 110
        research.api.delete(*REQUEST, "train", namespace="research")
        research.wait_for("Provisioned", ("True", "CapacityIsFound"), name="check")
        eventually(lambda: len(research.claims()) == 1, within=120, what="the rest is given back", every=1)


@pytest.mark.parametrize(
    ("number", "moment"), [(4, "before"), (6, "after"), (8, "before"), (9, "after"), (LAST_KILL, "before")]
)
def test_killed_at_a_write_it_goes_on_with_the_same_attempt(
    number: int,
    moment: str,
    research: Research,
    repository: CapacityRepository,
    kubeconfig: Path,
    tmp_path: Path,
) -> None:
    repository.push(MANIFESTS)
    research.ask(NODES)
    with FaultProxy(kubeconfig, tmp_path) as proxy:
        daemon = DaemonProcess(repository.folder, proxy.kubeconfig, tmp_path)
        killed: list[int] = []

        def kill(write: int, when: str) -> int | None:
            if (write, when) != (number, moment) or killed:
                return None
            killed.append(daemon.pid)
            daemon.kill()
            return 503

        proxy.fault = kill
        with daemon:
            eventually(lambda: killed, within=90, what=f"write {number} is reached")
            daemon.start()
            research.wait_for("Provisioned", MADE, within=120)
            assert research.attempts() == ["1"] * NODES
