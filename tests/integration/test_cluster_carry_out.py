"""Carrying out writes on a real API server: the ApplySet, pruning, and a second time that writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reconciler.cluster.apply import carry_out
from reconciler.cluster.kubernetes import KubernetesCluster
from reconciler.model.changes import Apply, ChangeSet, Delete, Write
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import Document
from tests.integration.real_cluster import PARENT, buffer_ref, capacity_buffer, opened, pod_template, template_ref

pytestmark = pytest.mark.e2e

MEMBERS: tuple[Write, ...] = (
    Apply(buffer_ref(), capacity_buffer(member=True)),
    Apply(template_ref(), pod_template(member=True)),
)


def run(cluster: KubernetesCluster, writes: Sequence[Write], memory: Mapping[str, Any] | None = None) -> ChangeSet:
    return carry_out(cluster, writes, parent=PARENT, view=cluster.view(), records=memory or {})


def parent(plane: ControlPlane) -> Document:
    found = plane.api.get("v1", "ConfigMap", "headroom", namespace="headroom-system")
    assert found is not None
    return found


def written(plane: ControlPlane, since: int) -> list[str]:
    return [f"{event.verb} {event.resource}" for event in plane.writes_by("admin", since=since)]


def test_the_applyset_is_recorded_before_its_members_and_pruned_before_it_shrinks(plane: ControlPlane) -> None:
    with opened(plane.kubeconfig()) as cluster:
        plane.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "headroom-system"}})
        mark = plane.audit_mark()
        assert not run(cluster, MEMBERS, {"backOffs": [1]}).failures
        assert written(plane, mark) == [
            "patch configmaps",
            "patch podtemplates",
            "patch capacitybuffers",
            "patch configmaps",  # what to remember, when it happened
        ]
        metadata = parent(plane)["metadata"]
        assert metadata["labels"] == {"applyset.kubernetes.io/id": PARENT.id}
        assert metadata["annotations"]["applyset.kubernetes.io/contains-group-kinds"] == (
            "CapacityBuffer.autoscaling.x-k8s.io,PodTemplate"
        )
        assert metadata["annotations"]["applyset.kubernetes.io/additional-namespaces"] == "default"
        assert cluster.view().inventory.members == {buffer_ref(), template_ref()}
        assert cluster.view().inventory.records == {"backOffs": [1]}

        mark = plane.audit_mark()
        assert not run(cluster, [Delete(buffer_ref())], {"backOffs": [1]}).failures
        assert written(plane, mark) == ["delete capacitybuffers", "patch configmaps"]
        # The watch tells of the deletion, maybe later.
        eventually(lambda: cluster.view().inventory.members == {template_ref()}, within=30, what="the buffer is gone")
        assert parent(plane)["metadata"]["annotations"]["applyset.kubernetes.io/contains-group-kinds"] == "PodTemplate"


def test_a_restarted_process_writes_nothing_either(plane: ControlPlane) -> None:
    with opened(plane.kubeconfig()) as cluster:
        run(cluster, MEMBERS, {"backOffs": [1]})
    mark = plane.audit_mark()
    with opened(plane.kubeconfig()) as cluster:
        run(cluster, MEMBERS, cluster.view().inventory.records)
    assert written(plane, mark) == []
