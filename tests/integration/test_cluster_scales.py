"""A buffer may point to any kind with a scale, headroom having no rights on the kind itself."""

from __future__ import annotations

from typing import Any

import pytest

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
