"""Writes to a real API server: what is applied, refused, in conflict, or would change nothing at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.cluster.kubernetes import KubernetesCluster
from reconciler.model.changes import Annotate, Apply, ApplyStatus, Delete, Outcome
from reconciler.model.refs import ObjectRef
from tests.controlplane import ControlPlane
from tests.controlplane.documents import node_class, node_pool
from tests.controlplane.rest import Document, condition
from tests.integration.real_cluster import buffer_ref, capacity_buffer, opened, pod_template, template_ref

pytestmark = pytest.mark.e2e

BUFFER = ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer")
POOL = ObjectRef("karpenter.sh", "NodePool", "", "general")


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[KubernetesCluster]:
    with opened(plane.kubeconfig()) as cluster:
        cluster.view()
        yield cluster


def stored(plane: ControlPlane) -> Document:
    found = plane.api.get(*BUFFER, "web", namespace="default")
    assert found is not None
    return found


def test_an_apply_makes_and_changes_an_object(cluster: KubernetesCluster, plane: ControlPlane) -> None:
    assert cluster.write(Apply(buffer_ref(), capacity_buffer(replicas=3))).outcome is Outcome.APPLIED
    assert cluster.write(Apply(buffer_ref(), capacity_buffer(replicas=4))).outcome is Outcome.APPLIED
    live = stored(plane)
    assert live["spec"]["replicas"] == 4
    assert {entry["manager"] for entry in live["metadata"]["managedFields"]} == {"headroom"}


@pytest.mark.parametrize("uid", ["", "the object's"])
def test_a_dry_run_deletes_nothing(cluster: KubernetesCluster, plane: ControlPlane, uid: str) -> None:
    cluster.write(Apply(buffer_ref(), capacity_buffer()))
    expected = stored(plane)["metadata"]["uid"]
    write = Delete(buffer_ref(), expected if uid else "")
    assert cluster.write(write, dry_run=True).outcome is Outcome.APPLIED
    assert stored(plane)["metadata"]["uid"] == expected


@pytest.mark.parametrize("kind", ["apply", "annotate", "status", "delete"])
def test_a_dry_run_tells_what_would_change_nothing(cluster: KubernetesCluster, plane: ControlPlane, kind: str) -> None:
    pool = node_pool("general")
    writes: dict[str, Any] = {
        "apply": Apply(POOL, pool),
        "annotate": Annotate(POOL, (("example.com/mark", "true"), ("example.com/none", None))),
        "status": ApplyStatus(buffer_ref(), {"replicas": 2}),
        "delete": Delete(template_ref()),
    }
    plane.api.create(node_class())
    cluster.write(Apply(POOL, pool))
    cluster.write(Apply(buffer_ref(), capacity_buffer()))
    cluster.write(Apply(template_ref(), pod_template()))
    assert cluster.write(writes[kind], dry_run=True).outcome is (
        Outcome.UNCHANGED if kind == "apply" else Outcome.APPLIED
    )
    assert cluster.write(writes[kind]).ok
    assert cluster.write(writes[kind], dry_run=True).outcome is Outcome.UNCHANGED


def test_a_conflict_names_the_manager_and_the_field(cluster: KubernetesCluster, plane: ControlPlane) -> None:
    plane.api.apply(capacity_buffer(replicas=9), manager="platform-team")
    result = cluster.write(Apply(buffer_ref(), capacity_buffer(replicas=3)))
    assert result.outcome is Outcome.CONFLICT
    assert result.message == (
        'spec.replicas belongs to "platform-team". To take it over, annotate the manifest with headroom.dev/ssa: Override'
    )
    assert stored(plane)["spec"]["replicas"] == 9


def test_force_takes_the_field_over(cluster: KubernetesCluster, plane: ControlPlane) -> None:
    plane.api.apply(capacity_buffer(replicas=9), manager="platform-team")
    assert cluster.write(Apply(buffer_ref(), capacity_buffer(replicas=3), force=True)).ok
    assert stored(plane)["spec"]["replicas"] == 3


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_the_server_finds_invalid_is_refused_in_its_words(
    cluster: KubernetesCluster,
    dry_run: bool,  # noqa: FBT001 - the case
) -> None:
    document = capacity_buffer()
    document["spec"]["scalableRef"] = {"kind": "Deployment", "name": "web", "apiGroup": "apps"}
    result = cluster.write(Apply(buffer_ref(), document), dry_run=dry_run)
    assert result.outcome is Outcome.REFUSED
    assert "You must define either PodTemplateRef or ScalableRef, but not both" in result.message


def test_a_kind_that_is_not_installed_is_refused(cluster: KubernetesCluster) -> None:
    ref = ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "default", "hours")
    document = {"apiVersion": "autoscaling.karpenter.sh/v1alpha1", "kind": "MetricsProducer", "metadata": {}}
    result = cluster.write(Apply(ref, document), dry_run=True)
    assert result.outcome is Outcome.REFUSED
    assert result.message == (
        "the cluster does not serve autoscaling.karpenter.sh/v1alpha1 MetricsProducer: install its CRD"
    )


def test_a_deletion_hits_only_the_object_that_was_meant(cluster: KubernetesCluster, plane: ControlPlane) -> None:
    cluster.write(Apply(buffer_ref(), capacity_buffer()))
    uid = stored(plane)["metadata"]["uid"]
    plane.api.delete(*BUFFER, "web", namespace="default")
    cluster.write(Apply(buffer_ref(), capacity_buffer()))
    result = cluster.write(Delete(buffer_ref(), uid))
    assert (result.outcome, result.ok) == (Outcome.UNCHANGED, True)
    assert "another object by now" in result.message
    namesake = stored(plane)["metadata"]["uid"]
    assert cluster.write(Delete(buffer_ref(), namesake)).outcome is Outcome.APPLIED
    assert plane.api.get(*BUFFER, "web", namespace="default") is None


def test_deleting_what_is_gone_is_done_already(cluster: KubernetesCluster) -> None:
    result = cluster.write(Delete(buffer_ref("ghost"), "some-uid"))
    assert (result.outcome, result.message) == (Outcome.UNCHANGED, "CapacityBuffer/default/ghost is gone already")


@pytest.mark.parametrize("dry_run", [True, False])
def test_annotating_what_is_gone_is_left_out(cluster: KubernetesCluster, dry_run: bool) -> None:  # noqa: FBT001 - the case
    result = cluster.write(Annotate(ObjectRef("", "Node", "", "ghost"), (("a", "b"),)), dry_run=dry_run)
    assert (result.outcome, result.message) == (Outcome.SKIPPED, "Node/ghost is gone")


def test_a_status_is_written_beside_what_others_declare(cluster: KubernetesCluster, plane: ControlPlane) -> None:
    plane.api.apply(capacity_buffer(), manager="somebody")
    ready = {
        "type": "ReadyForProvisioning",
        "status": "True",
        "reason": "Resolved",
        "message": "",
        "lastTransitionTime": "2026-03-01T12:00:00Z",
    }
    assert cluster.write(ApplyStatus(buffer_ref(), {"replicas": 3, "conditions": [ready]})).ok
    live = stored(plane)
    assert (live["status"]["replicas"], condition(live, "ReadyForProvisioning")) == (3, "True")
    assert cluster.write(ApplyStatus(buffer_ref(), {"conditions": [ready]})).ok
    assert "replicas" not in stored(plane)["status"], "a field that is left out is cleared"


def test_the_fields_that_the_served_definition_lacks_are_named(cluster: KubernetesCluster, plane: ControlPlane) -> None:
    """The API server names one of them at a time, in no certain order."""
    buffer = capacity_buffer()
    buffer["spec"] |= {"colour": {"a": 1}, "percent": None}
    buffer["spec"]["podTemplateRef"]["kind"] = "PodTemplate"
    buffer["metadata"]["headroom.dev/prune"] = "disabled"
    assert cluster.unknown_fields(Apply(buffer_ref(), buffer)) == (
        "metadata['headroom.dev/prune']",
        "spec.colour",
        "spec.percent",
        "spec.podTemplateRef.kind",
    )
    pool = node_pool("general")
    pool["spec"]["disruption"] = {"consolidateAfter": "1m", "budgets": [{"nodes": "1"}, {"nodes": "1", "reson": []}]}
    assert cluster.unknown_fields(Apply(POOL, pool)) == ("spec.disruption.budgets[1].reson",)
    template = pod_template()
    template["template"]["spec"]["containers"][0]["resurces"] = {}
    assert cluster.unknown_fields(Apply(template_ref(), template)) == ("template.spec.containers[0].resurces",)
    assert plane.api.get(*BUFFER, "web", namespace="default") is None


@pytest.mark.parametrize("change", [{"replicas": -1}, {"replicas": 3}, {"limits": {"cpu": "x"}}])
def test_other_mistakes_are_not_about_fields(cluster: KubernetesCluster, change: dict[str, Any]) -> None:
    buffer = capacity_buffer()
    buffer["spec"] |= change
    assert cluster.unknown_fields(Apply(buffer_ref(), buffer)) == ()
    elsewhere = {**buffer, "metadata": {"name": "web", "namespace": "nowhere"}}
    assert cluster.unknown_fields(Apply(buffer_ref(namespace="nowhere"), elsewhere)) == ()


def test_a_document_that_the_schema_does_not_allow_is_refused_and_not_tried_again(cluster: KubernetesCluster) -> None:
    buffer = capacity_buffer()
    assert cluster.write(Apply(buffer_ref(), buffer)).ok
    twice = {"type": "Provisioning", "status": "True", "reason": "A", "lastTransitionTime": "2026-11-01T00:00:00Z"}
    result = cluster.write(ApplyStatus(buffer_ref(), {"conditions": [twice, twice]}))
    assert result.outcome is Outcome.REFUSED
    assert "duplicate entries" in result.message
    buffer["spec"]["colour"] = "blue"
    result = cluster.write(Apply(buffer_ref(), buffer))
    assert result.outcome is Outcome.REFUSED
    assert ".spec.colour: field not declared in schema" in result.message
