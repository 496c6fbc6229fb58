"""Balloon pods in a namespace of a real API server that enforces the Pod Security Standard `restricted`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.buffers import Fulfilment
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from reconciler.plan.buffers.keeping import with_balloons
from tests.builders import buffer_ref, manifest, shape
from tests.controlplane import ControlPlane
from tests.controlplane.rest import Document

pytestmark = pytest.mark.e2e

NAMESPACE = "restricted-balloons"


@pytest.fixture
def api_server(empty_api_server: ControlPlane) -> ControlPlane:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    empty_api_server.api.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    )
    empty_api_server.api.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}}
    )
    empty_api_server.api.apply(
        manifest("scheduling.k8s.io/v1", "PriorityClass", "headroom-balloon", value=-10, preemptionPolicy="Never")
    )
    return empty_api_server


def create_pod(plane: ControlPlane, deployment: Mapping[str, Any]) -> Document:
    """A pod of the Deployment, as its ReplicaSet would make it, checked by the API server and not stored."""
    template = deployment["spec"]["template"]
    body = manifest("v1", "Pod", "a", metadata={**template["metadata"]}, spec=template["spec"])
    path = plane.api.path("v1", "Pod", NAMESPACE, None)
    return plane.api.document("POST", path, body=body, query={"dryRun": "All"})


def test_a_balloon_of_devices_and_huge_pages_is_accepted(api_server: ControlPlane) -> None:
    """Of these the API server takes no request without its limit."""
    requests = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"}
    demand = Demand(
        buffer_ref(),
        desired=1,
        shape=replace(shape("1"), requests=Resources.parse(requests)),
        fulfilment=Fulfilment.BALLOON,
    )
    (item,) = with_balloons(Declared(), [demand], ClusterView(), "pause").manifests
    pod = create_pod(api_server, item.manifest)
    assert not pod["spec"].get("volumes"), "a token would be a volume"
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"}
