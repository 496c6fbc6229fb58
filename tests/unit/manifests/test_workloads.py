"""What buffers and requests point to: PodTemplates, workloads, priority classes."""

from __future__ import annotations

import pytest

from reconciler.model.pods import PriorityClass, Workload
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector
from tests.unit.manifests.reading import codes_of, declared, findings, only

POD = "{metadata: {labels: {app: web}}, spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}"


def workload(text: str) -> Workload:
    (read,) = declared(text).workloads
    return read


def head(api_version: str, kind: str) -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: web, namespace: shop}}\n"


@pytest.mark.parametrize(
    ("api_version", "kind", "body"),
    [
        ("apps/v1", "Deployment", f"spec: {{replicas: 3, template: {POD}}}"),
        ("apps/v1", "StatefulSet", f"spec: {{replicas: 3, template: {POD}}}"),
        ("apps/v1", "ReplicaSet", f"spec: {{replicas: 3, template: {POD}}}"),
        ("v1", "ReplicationController", f"spec: {{replicas: 3, template: {POD}}}"),
        ("batch/v1", "Job", f"spec: {{parallelism: 3, template: {POD}}}"),
        (
            "batch/v1",
            "CronJob",
            f"spec: {{schedule: '@daily', jobTemplate: {{spec: {{parallelism: 3, template: {POD}}}}}}}",
        ),
    ],
)
def test_workloads_are_context_and_never_applied(api_version: str, kind: str, body: str) -> None:
    text = head(api_version, kind) + body + "\n"
    read = workload(text)
    assert (read.ref.kind, read.ref.group, read.replicas) == (kind, api_version.rpartition("/")[0], 3)
    assert read.shape is not None
    assert (read.shape.requests.get("cpu"), read.shape.labels) == (1000, (("app", "web"),))
    assert (declared(text).manifests, findings(text)) == ((), [])


def test_selectors() -> None:
    deployment = head("apps/v1", "Deployment") + f"spec: {{selector: {{matchLabels: {{app: web}}}}, template: {POD}}}\n"
    controller = head("v1", "ReplicationController") + f"spec: {{selector: {{app: web}}, template: {POD}}}\n"
    assert workload(deployment).selector == workload(controller).selector == LabelSelector((("app", "web"),))
    assert workload(deployment).replicas is None


def test_a_pod_template_is_applied_and_has_no_replicas() -> None:
    text = head("v1", "PodTemplate") + f"template: {POD}\n"
    read = workload(text)
    assert (read.ref, read.replicas) == (ObjectRef("", "PodTemplate", "shop", "web"), None)
    assert [manifest.ref for manifest in declared(text).manifests] == [read.ref]


def test_a_pod_template_with_a_spec_above_it() -> None:
    missing, misplaced = findings(head("v1", "PodTemplate") + f"spec: {{template: {POD}}}\n")
    assert (missing.code, missing.path) == ("missing-field", "template")
    assert "template.spec" in missing.hint
    assert (misplaced.path, misplaced.hint) == ("spec", "spec belongs one level down, in template")


@pytest.mark.parametrize(
    ("pod", "code", "path"),
    [
        ("{spec: {containers: []}}", "invalid-value", "template.spec.containers"),
        ("{spec: {}}", "missing-field", "template.spec.containers"),
        ("{spec: {containers: [{name: c, resources: {requests: {cpu: 1 core}}}]}}", "invalid-value",
         "template.spec.containers[0].resources.requests.cpu"),
        ("{spec: {containers: [{name: c}], nodeSelector: {spot: yes}}}", "wrong-type", "template.spec.nodeSelector.spot"),
        ("{spec: {containers: [{name: c}], nodeSelector: {priorityClassName: high}}}", "misspelt-field",
         "template.spec.nodeSelector.priorityClassName"),
        ("{spec: {containers: [{name: c}], nodeSelecter: {}}}", "misspelt-field", "template.spec.nodeSelecter"),
        ("{spec: {containers: [{name: c}], tolerations: {}}}", "wrong-type", "template.spec.tolerations"),
    ],
)  # fmt: skip
def test_what_a_pod_cannot_be(pod: str, code: str, path: str) -> None:
    finding = only(head("v1", "PodTemplate") + f"template: {pod}\n")
    assert (finding.code, finding.path) == (code, path)


def test_a_workload_has_a_pod_template() -> None:
    finding = only(head("apps/v1", "Deployment") + "spec: {replicas: 3}\n")
    assert (finding.code, finding.path) == ("missing-field", "spec.template")


def test_replicas_are_a_number() -> None:
    finding = only(head("apps/v1", "Deployment") + f"spec: {{replicas: '3', template: {POD}}}\n")
    assert (finding.code, finding.path) == ("wrong-type", "spec.replicas")


def test_one_consumption_annotation_needs_the_other() -> None:
    annotated = "metadata: {annotations: {autoscaling.x-k8s.io/consume-provisioning-request: train}}, spec"
    text = (
        head("apps/v1", "Deployment")
        + f"spec: {{template: {POD.replace('metadata: {labels: {app: web}}, spec', annotated)}}}\n"
    )
    finding = only(text)
    assert (finding.code, finding.severity) == ("half-consumption", "warning")
    assert finding.path == "spec.template.metadata.annotations['autoscaling.x-k8s.io/consume-provisioning-request']"


def test_consumption_annotations_on_the_workload_itself() -> None:
    text = f"""\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  annotations:
    autoscaling.x-k8s.io/consume-provisioning-request: r
    autoscaling.x-k8s.io/provisioning-class-name: c
spec: {{template: {POD}}}
"""
    assert codes_of(text) == ["half-consumption", "half-consumption"]
    assert "spec.template.metadata.annotations" in findings(text)[0].hint


def test_a_priority_class() -> None:
    text = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\nglobalDefault: true\n"
    (read,) = declared(text).priority_classes
    assert read == PriorityClass("high", 1000, global_default=True, position=read.position)
    assert declared(text).manifests == ()
