"""Events, the Lease, snapshots and scales on a real API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from reconciler.cluster.access import kubeconfig_access
from reconciler.cluster.connection import Connection
from reconciler.cluster.kubernetes import KubernetesCluster
from reconciler.cluster.lease import KubernetesLeases, LeaderElection
from reconciler.cluster.snapshot.files import snapshot_at
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.ports import Event
from tests.builders import manifest
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import deployment, namespace, node_class, node_pool
from tests.controlplane.rest import Document
from tests.fakes.clock import ManualClock
from tests.integration.real_cluster import (
    PARENT,
    buffer_ref,
    capacity_buffer,
    definition,
    opened,
    pod_template,
    view_where,
)
from tests.unit.cluster.documents import capture

pytestmark = pytest.mark.e2e


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[KubernetesCluster]:
    for event in plane.api.list("v1", "Event", namespace="default"):
        plane.api.delete("v1", "Event", event["metadata"]["name"], namespace="default")
    plane.api.create(capacity_buffer())
    with opened(plane.kubeconfig()) as cluster:
        cluster.view()
        yield cluster


def events(plane: ControlPlane) -> list[Document]:
    return plane.api.list("v1", "Event", namespace="default")


def test_an_event_is_about_its_object(cluster: KubernetesCluster, plane: ControlPlane) -> None:
    cluster.record(Event(buffer_ref(), "Warning", "FieldConflict", "spec.replicas belongs to somebody"))
    [event] = events(plane)
    buffer = plane.api.get("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "web", namespace="default")
    assert buffer is not None
    involved = event["involvedObject"]
    assert (involved["kind"], involved["name"], involved["uid"]) == ("CapacityBuffer", "web", buffer["metadata"]["uid"])
    assert involved["apiVersion"] == "autoscaling.x-k8s.io/v1beta1"
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "FieldConflict", 1)
    assert event["message"] == "spec.replicas belongs to somebody"


def test_the_same_again_is_told_once(cluster: KubernetesCluster, plane: ControlPlane) -> None:
    for _ in range(3):
        cluster.record(Event(buffer_ref(), "Normal", "Applied", "from Git"))
    cluster.record(Event(buffer_ref(), "Normal", "Applied", "once more, differently"))
    assert sorted((item["message"], item["count"]) for item in events(plane)) == [
        ("from Git", 1),
        ("once more, differently", 1),
    ]


def test_about_what_has_no_namespace_it_is_in_default(cluster: KubernetesCluster, plane: ControlPlane) -> None:
    cluster.record(Event(ObjectRef("karpenter.sh", "NodeClaim", "", "general-1"), "Normal", "Held", "for web"))
    assert [item["involvedObject"]["name"] for item in events(plane)] == ["general-1"]


def test_one_that_cannot_be_told_is_dropped(cluster: KubernetesCluster) -> None:
    cluster.record(Event(buffer_ref(namespace="nowhere"), "Normal", "Applied", "to nobody"))
    cluster.close()
    cluster.record(Event(buffer_ref(), "Normal", "Applied", "too late"))


# Two replicas and one Lease on a real API server: one leads, the other takes over.


class Replicas:
    """Candidates whose time is moved by hand, since leases run out after half a minute."""

    def __init__(self, plane: ControlPlane) -> None:
        plane.api.apply(namespace("lease"))
        plane.api.delete("coordination.k8s.io/v1", "Lease", "headroom", namespace="lease")
        self._path = str(plane.kubeconfig())
        self._connection = Connection(lambda: kubeconfig_access(path=self._path))
        self.clock = ManualClock()

    def candidate(self, identity: str) -> LeaderElection:
        leases = KubernetesLeases(self._connection, "lease", "headroom")
        return LeaderElection(leases, identity, monotonic=lambda: self.clock.now().timestamp(), now=self.clock.now)


def holder(plane: ControlPlane) -> object:
    lease = plane.api.get("coordination.k8s.io/v1", "Lease", "headroom", namespace="lease")
    assert lease is not None
    return lease["spec"].get("holderIdentity")


def test_one_leads_until_it_stops_renewing(plane: ControlPlane) -> None:
    replicas = Replicas(plane)
    first, second = replicas.candidate("a"), replicas.candidate("b")
    first.step()
    second.step()
    assert (first.is_leader(), second.is_leader(), holder(plane)) == (True, False, "a")
    replicas.clock.advance(34)
    second.step()
    assert (first.is_leader(), second.is_leader()) == (False, False)
    replicas.clock.advance(2)
    second.step()
    assert (first.is_leader(), second.is_leader(), holder(plane)) == (False, True, "b")
    first.step()
    assert first.is_leader() is False


# A snapshot of a real API server reads as the server did.


def test_planning_offline_sees_what_planning_online_saw(plane: ControlPlane, tmp_path: Path) -> None:
    plane.api.create(node_class())
    plane.api.create(node_pool("general", limits={"cpu": "100"}))
    plane.api.apply(capacity_buffer(member=True), manager="somebody")
    plane.api.create(pod_template())
    plane.api.create(deployment("web", replicas=3, cpu="500m"))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"token": "hunter2"}}
    plane.api.create(secret | {"metadata": {"name": "key", "namespace": "default"}})
    with opened(plane.kubeconfig()) as cluster:
        live = cluster.view()
        counts = capture(cluster.read, tmp_path / "shot.tar.gz")
    captured = snapshot_at(str(tmp_path / "shot.tar.gz"), PARENT).view()
    assert counts["nodepools"] == 1
    assert captured.complete
    assert captured.workloads == live.workloads
    assert captured.priority_classes == live.priority_classes
    assert captured.namespaces == live.namespaces
    assert captured.inventory.members == live.inventory.members
    assert set(captured.objects) == set(live.objects)
    for ref, item in live.objects.items():
        assert _spec_and_status(captured.objects[ref].managers) == _spec_and_status(item.managers)
        assert captured.objects[ref].body.get("spec") == item.body.get("spec")
    assert b"hunter2" not in (tmp_path / "shot.tar.gz").read_bytes()


def _spec_and_status(managers: Mapping[str, frozenset[str]]) -> dict[str, set[str]]:
    return {
        manager: {path for path in paths if path.startswith(("spec", "status"))} for manager, paths in managers.items()
    }


# A buffer may point to any kind with a scale, headroom having no rights on the kind itself.

GROUP, KIND = "example.com", "Rollout"
REF = ObjectRef(GROUP, KIND, "default", "web")


def crd() -> Document:
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.podsAre",
    }
    return definition(GROUP, KIND, "v1", status={}, scale=scale)


def test_the_scale_of_what_a_buffer_points_to_is_read_wherever_the_kind_keeps_it(plane: ControlPlane) -> None:
    plane.api.apply(crd())
    api = (f"{GROUP}/v1", KIND)
    rollout = manifest(api[0], KIND, "web", "default", spec={"size": 7})
    eventually(lambda: plane.api.apply(rollout), within=60, what="the kind is served")
    plane.api.patch(
        *api, "web", {"status": {"size": 6, "podsAre": "app=web"}}, namespace="default", subresource="status"
    )
    buffer = capacity_buffer()
    buffer["spec"] = {"percentage": 10, "scalableRef": {"apiGroup": GROUP, "kind": KIND, "name": "web"}}
    plane.api.apply(buffer)
    with opened(plane.kubeconfig()) as cluster:
        [workload] = cluster.view().workloads
        assert workload.ref == REF
        assert (workload.replicas, workload.observed_replicas, workload.shape) == (7, 6, None)
        assert workload.selector == LabelSelector((), (Requirement("app", Operator.IN, ("web",)),))
        plane.api.patch(*api, "web", {"spec": {"size": 8}}, namespace="default")
        assert [item.replicas for item in cluster.view().workloads] == [8]
        plane.api.delete(*api, "web", namespace="default")
        assert cluster.view().workloads == ()
        plane.api.apply(rollout)
        assert len(cluster.view().workloads) == 1
        plane.api.delete("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "web", namespace="default")
        view_where(cluster, lambda view: not view.workloads, what="nothing points to it any more")
