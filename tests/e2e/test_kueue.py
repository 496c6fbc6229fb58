"""Kueue's Jobs start once headroom has made their nodes: docs/batch-with-kueue.md, on real Karpenter with real Kueue."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import node_class
from tests.controlplane.rest import Document, condition
from tests.docs.yaml_blocks import yaml_blocks
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import DaemonProcess, install_rbac
from tests.e2e.shop import CLAIM, PLACEHOLDER

pytestmark = pytest.mark.e2e

QUEUE, (JOB,), (PATIENT,), (ALONE,) = yaml_blocks("batch-with-kueue.md")
REQUEST = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
WORKLOAD = ("kueue.x-k8s.io/v1beta1", "Workload")
CONFIG = ("kueue.x-k8s.io/v1beta1", "ProvisioningRequestConfig")
CONSUME = "autoscaling.x-k8s.io/consume-provisioning-request"
# Each node has room for one pod of the Job, and there may be three of them.
NODE_POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: batch
spec:
  limits: {cpu: "12"}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s, budgets: [{nodes: "100%"}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: kubernetes.io/os, operator: In, values: [linux]}
        - {key: karpenter.kwok.sh/instance-cpu, operator: In, values: ["4"]}
"""


class Batch:
    """The queue of the docs, and what a test asks about its Jobs."""

    def __init__(self, plane: ControlPlane) -> None:
        self.api = plane.api
        self.api.apply(node_class())
        for document in QUEUE:
            self.api.apply(document)

    def submit_alone(self) -> str:
        """The Job of the docs that has nodes of its own; returns its name."""
        self.api.apply(ALONE)
        return str(ALONE["metadata"]["name"])

    def submit(self, name: str, *, pods: int = 3, gate: str = "", **annotations: str) -> None:
        """gate: what its pods wait for before they are scheduled."""
        job = copy.deepcopy(JOB)
        job["metadata"] |= {"name": name, "annotations": annotations}
        job["spec"] |= {"parallelism": pods, "completions": pods}
        if gate:
            job["spec"]["template"]["spec"]["schedulingGates"] = [{"name": gate}]
        self.api.apply(job)

    def job(self, name: str) -> Document:
        job = self.api.get("batch/v1", "Job", name, namespace="research")
        assert job is not None
        return job

    def pods(self, name: str) -> list[Document]:
        pods = self.api.list("v1", "Pod", namespace="research", labels=f"job-name={name}")
        assert len(pods) == 3
        return pods

    def request(self, job: str, attempt: int = 1) -> Document:
        """The one that Kueue makes when the Job comes up for the so-manieth time."""
        requests = {item["metadata"]["name"]: item for item in self.api.list(*REQUEST, namespace="research")}
        names = (name for name in requests if name.startswith(f"job-{job}-"))
        return requests[next((name for name in names if name.endswith(f"-capacity-{attempt}")), "none yet")]

    def wait_for_condition(self, job: str, kind: str, *, attempt: int = 1, within: float = 90) -> Document:
        def has_it() -> Document:
            request = self.request(job, attempt)
            assert condition(request, kind) == "True", request.get("status")
            return request

        return eventually(has_it, within=within, what=f"attempt {attempt} of {job} is {kind}")

    def wait_until_done(self, job: str) -> Document:
        def done() -> Document:
            found = self.job(job)
            assert condition(found, "Complete") == "True", found["status"]
            return found

        return eventually(done, within=120, what=f"{job} is done")

    def wait_until_given_up(self, job: str) -> None:
        def given_up() -> bool:
            (workload,) = self.api.list(*WORKLOAD, namespace="research")
            assert workload["spec"]["active"] is False
            assert condition(workload, "Evicted") == "True", workload["status"]
            return bool(self.job(job)["spec"]["suspend"])

        eventually(given_up, within=60, what=f"Kueue gives {job} up")

    def wait_until_nothing_is_left(self) -> None:
        eventually(lambda: self.api.list(*CLAIM) == [], within=120, what="all nodes have gone", every=0.5)


@pytest.fixture
def batch(control_plane_with_kueue: ControlPlane, tmp_path: Path) -> Iterator[Batch]:
    """With headroom at work. What the test submitted is deleted after it."""
    made = Batch(control_plane_with_kueue)
    repository = CapacityRepository(tmp_path / "repository")
    repository.push({"nodepool.yaml": NODE_POOL})
    with DaemonProcess(repository.folder, install_rbac(control_plane_with_kueue), tmp_path):
        yield made
        for job in made.api.list("batch/v1", "Job", namespace="research"):
            made.api.delete("batch/v1", "Job", job["metadata"]["name"], namespace="research")
        made.wait_until_nothing_is_left()
        eventually(lambda: made.api.list(*WORKLOAD) == [], within=60, what="Kueue has forgotten the Jobs")


def test_a_job_starts_on_the_nodes_that_were_made_for_it_and_they_go_with_it(batch: Batch) -> None:
    batch.submit("train")
    request = batch.wait_for_condition("train", "Provisioned")
    made = {claim["status"]["nodeName"] for claim in batch.api.list(*CLAIM, labels=PLACEHOLDER)}
    assert len(made) == 3
    assert condition(request, "Accepted") == "True"

    batch.wait_until_done("train")
    pods = batch.pods("train")
    assert {pod["spec"]["nodeName"] for pod in pods} == made
    assert {pod["metadata"]["annotations"][CONSUME] for pod in pods} == {request["metadata"]["name"]}
    batch.wait_for_condition("train", "BookingExpired")
    batch.wait_until_nothing_is_left()


def test_a_second_job_waits_and_follows(batch: Batch) -> None:
    batch.submit("first")
    batch.wait_for_condition("first", "Provisioned")
    batch.submit("second")
    done = batch.wait_until_done("first")
    followed = batch.wait_until_done("second")
    assert followed["status"]["startTime"] >= done["status"]["completionTime"]
    assert condition(batch.request("second"), "Provisioned") == "True"
    batch.wait_until_nothing_is_left()


def test_a_job_that_cannot_be_had_is_tried_as_often_as_kueue_has_it(batch: Batch) -> None:
    """There is quota for four pods, but the pool ends with three nodes."""
    retry = {"backoffLimitCount": 1, "backoffBaseSeconds": 1, "backoffMaxSeconds": 1}
    batch.api.patch(*CONFIG, "whole-jobs", {"spec": {"retryStrategy": retry}})
    batch.submit("large", pods=4, **dict.fromkeys(PATIENT["metadata"]["annotations"], "5"))
    batch.wait_for_condition("large", "Failed")
    batch.wait_for_condition("large", "Failed", attempt=2)
    batch.wait_until_given_up("large")
    assert batch.api.list(*CLAIM) == []


def test_a_job_whose_nodes_go_before_its_pods_came_is_given_up(batch: Batch) -> None:
    batch.submit("train", gate="example.com/data-is-there")
    batch.wait_for_condition("train", "Provisioned")
    eventually(lambda: batch.pods("train"), within=60, what="its pods are there, behind the gate")
    for claim in batch.api.list(*CLAIM):
        batch.api.delete(*CLAIM, claim["metadata"]["name"])
    batch.wait_for_condition("train", "CapacityRevoked")
    batch.wait_until_given_up("train")
    batch.wait_until_nothing_is_left()


def test_a_job_has_nodes_of_its_own_by_a_parameter_that_kueue_passes_on(batch: Batch) -> None:
    name = batch.submit_alone()
    request = batch.wait_for_condition(name, "Provisioned")
    assert request["spec"]["parameters"] == {"reserve": "true"}
    reserved = {"key": "headroom.dev/reserved", "value": f"research.{request['metadata']['name']}"}
    for claim in batch.api.list(*CLAIM, labels=PLACEHOLDER):
        assert reserved | {"effect": "NoSchedule"} in claim["spec"]["taints"]

    batch.wait_until_done(name)
    batch.wait_for_condition(name, "BookingExpired")
    batch.wait_until_nothing_is_left()
