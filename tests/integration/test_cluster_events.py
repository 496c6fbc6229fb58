"""Events on a real API server: found by kubectl describe, and counted instead of repeated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.cluster.kubernetes import KubernetesCluster
from reconciler.model.refs import ObjectRef
from reconciler.ports import Event
from tests.controlplane import ControlPlane
from tests.controlplane.rest import Document
from tests.integration.real_cluster import buffer_ref, capacity_buffer, opened

pytestmark = pytest.mark.e2e


@pytest.fixture
def cluster(empty_api_server: ControlPlane) -> Iterator[KubernetesCluster]:
    for event in empty_api_server.api.list("v1", "Event", namespace="default"):
        empty_api_server.api.delete("v1", "Event", event["metadata"]["name"], namespace="default")
    empty_api_server.api.create(capacity_buffer())
    with opened(empty_api_server.kubeconfig()) as cluster:
        cluster.view()
        yield cluster


def events(plane: ControlPlane) -> list[Document]:
    return plane.api.list("v1", "Event", namespace="default")


def test_an_event_is_about_its_object(cluster: KubernetesCluster, empty_api_server: ControlPlane) -> None:
    cluster.record(Event(buffer_ref(), "Warning", "FieldConflict", "spec.replicas belongs to somebody"))
    [event] = events(empty_api_server)
    buffer = empty_api_server.api.get("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "web", namespace="default")
    assert buffer is not None
    involved = event["involvedObject"]
    assert (involved["kind"], involved["name"], involved["uid"]) == ("CapacityBuffer", "web", buffer["metadata"]["uid"])
    assert involved["apiVersion"] == "autoscaling.x-k8s.io/v1beta1"
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "FieldConflict", 1)
    assert event["message"] == "spec.replicas belongs to somebody"


def test_the_same_again_is_counted(cluster: KubernetesCluster, empty_api_server: ControlPlane) -> None:
    for _ in range(3):
        cluster.record(Event(buffer_ref(), "Normal", "Applied", "from Git"))
    cluster.record(Event(buffer_ref(), "Normal", "Applied", "once more, differently"))
    assert sorted((item["message"], item["count"]) for item in events(empty_api_server)) == [
        ("from Git", 3),
        ("once more, differently", 1),
    ]


def test_about_what_has_no_namespace_it_is_in_default(
    cluster: KubernetesCluster, empty_api_server: ControlPlane
) -> None:
    cluster.record(Event(ObjectRef("karpenter.sh", "NodeClaim", "", "general-1"), "Normal", "Held", "for web"))
    assert [item["involvedObject"]["name"] for item in events(empty_api_server)] == ["general-1"]


def test_one_that_cannot_be_told_is_dropped(cluster: KubernetesCluster) -> None:
    cluster.record(Event(buffer_ref(namespace="nowhere"), "Normal", "Applied", "to nobody"))
    cluster.close()
    cluster.record(Event(buffer_ref(), "Normal", "Applied", "too late"))
