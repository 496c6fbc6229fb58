"""What buffers and requests point to: PodTemplates, workloads, priority classes."""

from __future__ import annotations

import pytest

from reconciler.model.pods import PriorityClass, Workload
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector
from tests.unit.manifests.reading import check, codes_of, declared, findings, found

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


CONSUMING = POD.replace("labels: {app: web}", "annotations: {autoscaling.x-k8s.io/consume-provisioning-request: train}")


def pod(spec: str) -> str:
    return head("v1", "PodTemplate") + f"template: {{spec: {spec}}}\n"


def deployment(spec: str) -> str:
    return head("apps/v1", "Deployment") + f"spec: {{{spec}}}\n"


@found(
    ("a pod of no containers", pod("{containers: []}"), "invalid-value", "template.spec.containers", ""),
    ("a pod without the field", pod("{}"), "missing-field", "template.spec.containers", ""),
    ("an amount in words", pod("{containers: [{name: c, resources: {requests: {cpu: 1 core}}}]}"), "invalid-value",
     "template.spec.containers[0].resources.requests.cpu", ""),
    ("a label that is a boolean", pod("{containers: [{name: c}], nodeSelector: {spot: yes}}"), "wrong-type",
     "template.spec.nodeSelector.spot", ""),
    ("a field of the pod among labels", pod("{containers: [{name: c}], nodeSelector: {priorityClassName: high}}"),
     "misspelt-field", "template.spec.nodeSelector.priorityClassName", ""),
    ("a misspelt field", pod("{containers: [{name: c}], nodeSelecter: {}}"), "misspelt-field",
     "template.spec.nodeSelecter", ""),
    ("a map where a list belongs", pod("{containers: [{name: c}], tolerations: {}}"), "wrong-type",
     "template.spec.tolerations", ""),
    ("a workload without a pod template", deployment("replicas: 3"), "missing-field", "spec.template", ""),
    ("replicas in quotes", deployment(f"replicas: '3', template: {POD}"), "wrong-type", "spec.replicas", ""),
    ("one annotation of two for pods of a request", deployment(f"template: {CONSUMING}"), "half-consumption",
     "spec.template.metadata.annotations['autoscaling.x-k8s.io/consume-provisioning-request']", ""),
)  # fmt: skip
def test_what_a_pod_and_its_workload_cannot_be(text: str, code: str, path: str, words: str) -> None:
    check(text, code, path, words)
