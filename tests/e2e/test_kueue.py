"""Kueue's jobs start once headroom has made their nodes: docs/batch-with-kueue.md, on real Karpenter with real Kueue."""

from __future__ import annotations

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import Document
from tests.docs.yaml_blocks import yaml_blocks

pytestmark = pytest.mark.e2e

REQUEST = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
CONSUME = "autoscaling.x-k8s.io/consume-provisioning-request"


def test_kueue_starts_a_job_once_its_request_is_provisioned(control_plane_with_kueue: ControlPlane) -> None:
    api = control_plane_with_kueue.api
    queue, (job,) = yaml_blocks("batch-with-kueue.md")
    for document in (*queue, job):
        api.apply(document)

    def started() -> Document:
        found = api.get("batch/v1", "Job", "train", namespace="research")
        assert found is not None
        assert not found["spec"]["suspend"]
        return found

    (request,) = eventually(lambda: api.list(*REQUEST, namespace="research"), within=30, what="Kueue asks for capacity")
    assert [pod_set["count"] for pod_set in request["spec"]["podSets"]] == [3]
    conditions = [
        {"type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for name in ("Accepted", "Provisioned")
    ]
    name = request["metadata"]["name"]
    api.patch(*REQUEST, name, {"status": {"conditions": conditions}}, namespace="research", subresource="status")
    template = eventually(started, within=30, what="Kueue starts the Job")["spec"]["template"]
    assert template["metadata"]["annotations"][CONSUME] == name
