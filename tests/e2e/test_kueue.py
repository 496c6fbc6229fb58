"""Kueue's Jobs start once headroom has made their nodes: docs/batch-with-kueue.md, on real Karpenter with real Kueue."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import node_claim, node_class
from tests.controlplane.rest import Document, condition
from tests.docs.yaml_blocks import yaml_blocks
from tests.e2e.daemon_process import DaemonProcess, install_rbac
from tests.e2e.shop import CLAIM, PLACEHOLDER
from tests.git_repository import GitRepository

pytestmark = pytest.mark.e2e

(POOL,), QUEUE, (JOB,), (PATIENT,), (ALONE,), (PINNED,) = yaml_blocks("batch-with-kueue.md")
REQUEST = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
WORKLOAD = ("kueue.x-k8s.io/v1beta1", "Workload")
CONFIG = ("kueue.x-k8s.io/v1beta1", "ProvisioningRequestConfig")
ADMISSION = "admissionregistration.k8s.io/v1"
POOL_KIND = ("karpenter.sh/v1", "NodePool")
ATTEMPT = "headroom.dev/attempt"
CONSUME = "autoscaling.x-k8s.io/consume-provisioning-request"


def node_pool() -> str:
    """The one of the docs, for the KWOK provider. Each node has room for one pod of the Job, and there may be three of them."""
    text = yaml.safe_dump(POOL).replace("karpenter.k8s.aws/", "karpenter.kwok.sh/")
    return text.replace("karpenter.k8s.aws", "karpenter.kwok.sh").replace("EC2NodeClass", "KWOKNodeClass")


class Batch:
    """The queue of the docs, and what a test asks about its Jobs."""

    def __init__(self, plane: ControlPlane) -> None:
        self.api = plane.api
        self.api.apply(node_class())
        for document in QUEUE:
            self.api.apply(document)

    def submit(self, name: str, *, pods: int = 3, **parameters: str) -> None:
        """parameters: of its request, for nodes of its own among others."""
        job = copy.deepcopy(ALONE if "reserve" in parameters else JOB)
        annotations = {f"provreq.kueue.x-k8s.io/{key}": value for key, value in parameters.items()}
        job["metadata"] |= {"name": name, "annotations": annotations}
        job["spec"] |= {"parallelism": pods, "completions": pods}
        self.api.apply(job)

    def job(self, name: str) -> Document:
        job = self.api.get("batch/v1", "Job", name, namespace="research")
        assert job is not None
        return job

    def pods(self, name: str, count: int = 3) -> list[Document]:
        pods = self.api.list("v1", "Pod", namespace="research", labels=f"job-name={name}")
        assert len(pods) == count
        return pods

    def nodes(self) -> set[str]:
        """The NodeClaims."""
        return {claim["metadata"]["name"] for claim in self.api.list(*CLAIM)}

    @contextmanager
    def stock_out(self) -> Iterator[None]:
        """Meanwhile Karpenter is told of every NodeClaim that there is no capacity for it, and deletes it.

        The KWOK provider says so where the class is not there that a NodeClaim names. The policy lets all of them name one. The NodePool
        stays ready, and headroom's own catalog has all types.
        """
        claims = {"apiGroups": ["karpenter.sh"], "apiVersions": ["v1"], "resources": ["nodeclaims"]}
        sold_out = 'JSONPatch{op: "replace", path: "/spec/nodeClassRef/name", value: "sold-out"}'
        policy = {
            "matchConstraints": {"resourceRules": [{**claims, "operations": ["CREATE"]}]},
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{sold_out}]"}}],
        }
        specs = {"MutatingAdmissionPolicy": policy, "MutatingAdmissionPolicyBinding": {"policyName": "stock-out"}}
        for kind, spec in specs.items():
            self.api.apply({"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": "stock-out"}, "spec": spec})
        try:
            eventually(lambda: self.named_class() == "sold-out", within=60, what="the policy is in force")
            yield
        finally:
            for kind in reversed(specs):
                self.api.delete(ADMISSION, kind, "stock-out")

    def named_class(self) -> str:
        """That of a NodeClaim which somebody would make now."""
        pool = self.api.get(*POOL_KIND, "batch")
        assert pool is not None
        claim = self.api.apply(node_claim("tried", pool, "c-4x-amd64-linux"), dry_run=True)
        return str(claim["spec"]["nodeClassRef"]["name"])

    def provisioned(self, job: str) -> Document:
        """This condition of its request."""
        conditions: list[Document] = self.request(job)["status"]["conditions"]
        return next(item for item in conditions if item["type"] == "Provisioned")

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

    def wait_until_attempt_has_failed(self, job: str, number: int) -> None:
        """And none of its NodeClaims is left, so that the next attempt has not begun."""

        def has_failed() -> bool:
            found = self.provisioned(job)
            assert found["reason"] == "AttemptFailed", found
            assert found["message"].startswith(f"attempt {number} failed, the next one begins at "), found
            return self.nodes() == set()

        eventually(has_failed, within=120, what=f"attempt {number} for {job} has failed")

    def is_queued(self, job: str) -> bool:
        """Whether Kueue holds it back, with its quota, for this request."""
        (workload,) = self.api.list(*WORKLOAD, namespace="research")
        states = {name: condition(workload, name) for name in ("QuotaReserved", "Admitted", "Evicted")}
        assert states["Evicted"] is None, workload["status"]
        return (
            states["QuotaReserved"] == "True"
            and states["Admitted"] != "True"
            and workload["spec"]["active"] is not False
            and bool(self.job(job)["spec"]["suspend"])
        )

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
def batch(request: pytest.FixtureRequest, control_plane_with_kueue: ControlPlane, tmp_path: Path) -> Iterator[Batch]:
    """With headroom at work. What the test submitted is deleted after it.

    Its parameter: how long after a failure headroom tries a request again.
    """
    made = Batch(control_plane_with_kueue)
    repository = GitRepository(tmp_path / "repository")
    repository.commit({"nodepool.yaml": node_pool()})
    first_retry = getattr(request, "param", "1m")
    kubeconfig = install_rbac(control_plane_with_kueue)
    with DaemonProcess(repository.work, kubeconfig, tmp_path, requests_first_retry=first_retry):
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
    assert {
        pod["spec"]["nodeName"] for pod in pods
    } <= made  # one that comes late may take the room of one that has ended
    assert {pod["metadata"]["annotations"][CONSUME] for pod in pods} == {request["metadata"]["name"]}
    batch.wait_for_condition("train", "BookingExpired")
    batch.wait_until_nothing_is_left()


def test_the_patient_job_of_the_docs_runs_as_written(batch: Batch) -> None:
    batch.api.apply(PATIENT)
    name = str(PATIENT["metadata"]["name"])
    request = batch.wait_for_condition(name, "Provisioned")
    assert request["spec"]["parameters"] == {"ValidUntilSeconds": "3600"}
    batch.wait_until_done(name)
    batch.wait_until_nothing_is_left()


def test_a_job_that_cannot_be_had_is_tried_as_often_as_kueue_has_it(batch: Batch) -> None:
    """There is quota for four pods, but the pool ends with three nodes."""
    retry = {"backoffLimitCount": 1, "backoffBaseSeconds": 1, "backoffMaxSeconds": 1}
    batch.api.patch(*CONFIG, "whole-jobs", {"spec": {"retryStrategy": retry}})
    batch.submit("large", pods=4, ValidUntilSeconds="5")
    batch.wait_for_condition("large", "Failed")
    batch.wait_for_condition("large", "Failed", attempt=2)
    batch.wait_until_given_up("large")
    assert batch.api.list(*CLAIM) == []


@pytest.mark.parametrize("batch", ["20s"], indirect=True)
def test_a_job_that_meets_a_stock_out_stays_queued_and_runs_once_that_ends(batch: Batch) -> None:
    with batch.stock_out():
        batch.submit("train")
        eventually(lambda: batch.request("train"), within=60, what="Kueue asks for nodes")
        for number in (1, 2):
            batch.wait_until_attempt_has_failed("train", number)
            assert batch.is_queued("train")

    request = batch.wait_for_condition("train", "Provisioned", within=180)
    claims = batch.api.list(*CLAIM)
    assert [claim["metadata"]["labels"][ATTEMPT] for claim in claims] == [f"{request['metadata']['uid']}.3"] * 3
    batch.wait_until_done("train")
    # A pod that comes late may find that another has ended, and takes its room.
    assert {pod["spec"]["nodeName"] for pod in batch.pods("train")} <= {claim["status"]["nodeName"] for claim in claims}
    (only,) = batch.api.list(*REQUEST, namespace="research")
    assert only["metadata"]["uid"] == request["metadata"]["uid"]
    batch.wait_until_nothing_is_left()


def test_kueue_pins_the_pods_of_two_jobs_to_their_own_nodes(batch: Batch) -> None:
    """By provisioningClassDetails: the nodes of both jobs have room for the pods of either."""
    batch.api.apply(PINNED)
    batch.submit("one", pods=1, reserve="true")
    batch.submit("two", pods=1, reserve="true")
    for name in ("one", "two"):
        request = batch.wait_for_condition(name, "Provisioned")
        assert request["spec"]["parameters"] == {"reserve": "true"}
        own = {"ReservedNodes": f"research.{request['metadata']['name']}"}
        assert request["status"]["provisioningClassDetails"] == own
        (pod,) = eventually(partial(batch.pods, name, 1), within=60, what=f"the pod of {name} is there")
        assert pod["spec"]["nodeSelector"] == {"headroom.dev/reserved": own["ReservedNodes"]}
        batch.wait_until_done(name)
    batch.wait_until_nothing_is_left()
