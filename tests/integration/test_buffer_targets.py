"""What a real API server has of the things that buffers are sized by: live pods, Jobs and ResourceQuotas."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.demand.buffers import buffer_demands
from reconciler.manifests.repository.declared import live_declared
from reconciler.model.buffers import Dialect
from reconciler.model.demand import Demand
from reconciler.model.view import ClusterView
from tests.builders import manifest
from tests.controlplane import ControlPlane
from tests.controlplane.documents import deployment
from tests.controlplane.rest import Document
from tests.integration.real_cluster import capacity_buffer, opened, pod_template, view_where

pytestmark = pytest.mark.e2e


def buffer(name: str, **spec: Any) -> Document:
    return capacity_buffer(name) | {"spec": spec}


def for_target(group: str, kind: str, name: str, **spec: Any) -> Document:
    return buffer(name, scalableRef={"apiGroup": group, "kind": kind, "name": name}, **spec)


def demand_of(view: ClusterView, name: str, dialect: Dialect) -> Demand:
    demands, _ = buffer_demands(live_declared(view), view, dialect=dialect)
    return next(demand for demand in demands if demand.ref.name == name)


def counts(view: ClusterView, name: str) -> tuple[int | None, int | None]:
    """By Karpenter, by Cluster Autoscaler."""
    karpenter, autoscaler = (demand_of(view, name, dialect) for dialect in Dialect)
    return karpenter.desired, autoscaler.desired


def test_what_admission_adds_to_a_pod_counts_for_cluster_autoscaler(plane: ControlPlane) -> None:
    """A LimitRange gives a container that requests nothing a request of 2 CPUs, as a webhook may."""
    ranges = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}}]}
    plane.api.apply(
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r", "namespace": "default"}, "spec": ranges}
    )
    web = deployment("web", replicas=20, cpu="1")
    del web["spec"]["template"]["spec"]["containers"][0]["resources"]
    plane.api.create(web)
    plane.api.patch(
        "apps/v1", "Deployment", "web", {"status": {"replicas": 10}}, namespace="default", subresource="status"
    )
    plane.api.apply(for_target("apps", "Deployment", "web", percentage=20, limits={"cpu": "6"}))
    with opened(plane.kubeconfig()) as cluster:
        assert counts(cluster.view(), "web") == (4, None), "what the template requests says nothing of CPU"
        labels = web["spec"]["template"]["metadata"]["labels"]
        spec = web["spec"]["template"]["spec"]
        metadata = {"name": "web-1", "namespace": "default", "labels": labels}
        plane.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        view = view_where(cluster, lambda view: bool(view.pods), what="the pod is seen")
        # A fifth of the 10 that are observed is 2, which needs 4 of the 6 CPUs.
        assert counts(view, "web") == (4, 2)
        (group,) = demand_of(view, "web", Dialect.CLUSTER_AUTOSCALER).groups
        assert group.shape.requests.get("cpu") == 2000
    plane.api.delete("v1", "LimitRange", "r", namespace="default")


def test_quotas_of_every_scope_are_read_as_the_server_stores_them(plane: ControlPlane) -> None:
    scopes: dict[str, Document] = {
        "running": {"scopes": ["NotTerminating"]},
        "terminating": {"scopes": ["Terminating"]},
        "burstable": {"scopes": ["NotBestEffort"]},
        "across": {"scopes": ["CrossNamespacePodAffinity"]},
        "best-effort": {"scopes": ["BestEffort"], "hard": {"pods": "1"}},
    }
    for operator, values in (("In", ["gold"]), ("NotIn", ["gold"]), ("Exists", []), ("DoesNotExist", [])):
        row = {"scopeName": "PriorityClass", "operator": operator, **({"values": values} if values else {})}
        scopes[f"class-{operator.lower()}"] = {"scopeSelector": {"matchExpressions": [row]}}
    for name, part in scopes.items():
        quota = {"hard": {"requests.cpu": "2"}, **part}
        plane.api.apply(manifest("v1", "ResourceQuota", name, "default", spec=quota))
    plane.api.create(pod_template("web", cpu="1"))
    plane.api.apply(capacity_buffer("web", replicas=6))
    with opened(plane.kubeconfig()) as cluster:
        view = cluster.view()
        assert view.complete
        assert {quota.name for quota in view.resource_quotas} == set(scopes)
        demand = demand_of(view, "web", Dialect.CLUSTER_AUTOSCALER)
    assert demand.desired == 2
    assert demand.explanation[-1] == "2 within ResourceQuota burstable, class-doesnotexist, class-notin, running"
    for name in scopes:
        plane.api.delete("v1", "ResourceQuota", name, namespace="default")
