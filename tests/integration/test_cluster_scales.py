"""A buffer may point to any kind with a scale, headroom having no rights on the kind itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.cluster.snapshot.capture import capture
from reconciler.cluster.snapshot.files import snapshot_at
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import Document
from tests.integration.real_cluster import capacity_buffer, opened, view_where

pytestmark = pytest.mark.e2e

GROUP, KIND = "example.com", "Rollout"
REF = ObjectRef(GROUP, KIND, "default", "web")


def crd() -> Document:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.podsAre",
    }
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True, "schema": schema}
    version["subresources"] = {"status": {}, "scale": scale}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"rollouts.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": KIND, "plural": "rollouts", "singular": "rollout", "listKind": f"{KIND}List"},
            "versions": [version],
        },
    }


def test_the_scale_of_what_a_buffer_points_to_is_read_wherever_the_kind_keeps_it(
    empty_api_server: ControlPlane,
) -> None:
    plane = empty_api_server
    plane.api.apply(crd())
    api = (f"{GROUP}/v1", KIND)
    rollout = {
        "apiVersion": api[0],
        "kind": KIND,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"size": 7},
    }
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


def test_every_object_with_a_scale_is_in_a_snapshot(empty_api_server: ControlPlane, tmp_path: Path) -> None:
    """No buffer points to one of them, and only their scales are kept."""
    plane = empty_api_server
    plane.api.apply(crd())
    api = (f"{GROUP}/v1", KIND)
    for name, size in (("web", 7), ("api", 2)):
        rollout = {
            "apiVersion": api[0],
            "kind": KIND,
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"size": size, "token": "hunter2"},
        }
        eventually(partial(plane.api.apply, rollout), within=60, what="the kind is served")
        status = {"size": size - 1, "podsAre": f"app={name}"}
        plane.api.patch(*api, name, {"status": status}, namespace="default", subresource="status")
    with opened(plane.kubeconfig()) as cluster:
        cluster.view()
        counts = capture(cluster.read, tmp_path, scaled=cluster.read_scaled())
    assert counts["rollouts"] == 2
    found = {item.ref.name: item for item in snapshot_at(str(tmp_path)).view().workloads}
    assert {name: (item.replicas, item.observed_replicas) for name, item in found.items()} == {
        "web": (7, 6),
        "api": (2, 1),
    }
    assert found["web"].ref == REF
    assert found["web"].selector == LabelSelector((), (Requirement("app", Operator.IN, ("web",)),))
    assert "hunter2" not in (tmp_path / "workloads.json").read_text()
