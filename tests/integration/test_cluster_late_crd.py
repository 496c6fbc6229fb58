"""Kinds that come with a CRD: absent, installed later, and gone again."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.changes import Apply, Outcome
from reconciler.model.refs import ObjectRef
from tests.builders import manifest
from tests.controlplane import ControlPlane, eventually
from tests.integration.real_cluster import opened, view_where

pytestmark = pytest.mark.e2e

GROUP, KIND = "autoscaling.karpenter.sh", "MetricsProducer"
REF = ObjectRef(GROUP, KIND, "default", "hours")
DOCUMENT = manifest(f"{GROUP}/v1alpha1", KIND, "hours", "default", spec={"schedule": {"defaultReplicas": 1}})
CRD: dict[str, Any] = manifest(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    f"metricsproducers.{GROUP}",
    spec={
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": KIND, "plural": "metricsproducers", "singular": "metricsproducer", "listKind": f"{KIND}List"},
        "versions": [],
    },
)


def crd(version: str = "v1alpha1") -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = {"name": version, "served": True, "storage": True, "schema": schema}
    return {**CRD, "spec": {**CRD["spec"], "versions": [served]}}


def remove_crd(plane: ControlPlane) -> None:
    """And waits until the server has let go of the kind, which whoever empties it after a test relies on."""
    plane.api.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", CRD["metadata"]["name"])

    def groups() -> list[str]:
        return [group["name"] for group in plane.api.document("GET", "/apis")["groups"]]

    eventually(lambda: GROUP not in groups(), within=30, what="the group is gone")


def test_a_kind_is_picked_up_when_its_crd_is_installed_and_let_go_with_it(empty_api_server: ControlPlane) -> None:
    plane = empty_api_server
    with opened(plane.kubeconfig()) as cluster:
        before = cluster.view()
        assert before.complete, "a kind that nobody installed is no gap"
        assert (GROUP, KIND) not in before.apis
        plane.api.apply(crd())
        view_where(cluster, lambda view: (GROUP, KIND) in view.apis, what="the kind is discovered")
        assert cluster.write(Apply(REF, DOCUMENT)).outcome is Outcome.APPLIED
        view_where(cluster, lambda view: REF in view.objects, what="its objects are watched")
        remove_crd(plane)
        after = view_where(
            cluster, lambda view: (GROUP, KIND) not in view.apis and view.complete, what="the kind is gone"
        )
    assert REF not in after.objects


def test_a_write_right_after_the_crd_does_not_wait_for_the_next_look(empty_api_server: ControlPlane) -> None:
    plane = empty_api_server
    with opened(plane.kubeconfig(), discovery_interval=3600) as cluster:
        cluster.view()
        plane.api.apply(crd())
        try:
            view_where(
                cluster,
                lambda _view: cluster.write(Apply(REF, DOCUMENT), dry_run=True).ok,
                what="the server serves the kind",
            )
        finally:
            remove_crd(plane)


def test_a_version_that_headroom_does_not_read_is_a_gap(empty_api_server: ControlPlane) -> None:
    plane = empty_api_server
    plane.api.apply(crd("v9"))
    try:
        with opened(plane.kubeconfig()) as cluster:
            view = view_where(cluster, lambda view: not view.complete, what="the version is noticed")
            assert view.gaps == (f"metricsproducers.{GROUP} is served as v9 only; headroom reads v1alpha1",)
    finally:
        remove_crd(plane)


# `headroom crd | kubectl apply --server-side -f -` on a real API server: what is somebody else's, or newer, stays as it is. Needs kubectl.
