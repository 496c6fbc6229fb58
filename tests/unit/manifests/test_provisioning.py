"""ProvisioningRequests and ProvisioningClasses."""

from __future__ import annotations

import pytest

from reconciler.model.provisioning_requests import PodSet
from tests.unit.manifests.reading import codes_of, declared, findings, only

REQUEST = """\
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: train, namespace: research}
spec:
  provisioningClassName: atomic-scale-up.kubernetes.io
  podSets: [{podTemplateRef: {name: t}, count: 8}]
"""
CLASS = """\
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: ProvisioningClass
metadata: {name: atomic-scale-up.kubernetes.io}
"""


def test_a_request() -> None:
    (request,) = declared(REQUEST + "  parameters: {ValidUntilSeconds: '60'}\n").provisioning_requests
    assert (request.class_name, request.pod_sets) == ("atomic-scale-up.kubernetes.io", (PodSet("t", 8),))
    assert (request.parameters, request.created) == ((("ValidUntilSeconds", "60"),), "")


def test_the_proposals_spelling() -> None:
    text = REQUEST.replace("provisioningClassName", "provisioningClass") + "  Parameters: {ValidUntilSeconds: '60'}\n"
    (request,) = declared(text).provisioning_requests
    assert (request.class_name, request.parameters) == (
        "atomic-scale-up.kubernetes.io",
        (("ValidUntilSeconds", "60"),),
    )
    assert [(finding.code, finding.path) for finding in findings(text)] == [
        ("old-spelling", "spec.provisioningClass"),
        ("old-spelling", "spec.Parameters"),
    ]
    assert "provisioningClassName" in declared(text).manifests[0].manifest["spec"]


@pytest.mark.parametrize("count", [0, 16385])
def test_the_size_of_a_pod_set_has_bounds(count: int) -> None:
    finding = only(REQUEST.replace("count: 8", f"count: {count}"))
    assert (finding.code, finding.path) == ("invalid-value", "spec.podSets[0].count")


def test_there_are_up_to_32_pod_sets() -> None:
    many = ", ".join(["{podTemplateRef: {name: t}, count: 1}"] * 33)
    text = REQUEST.replace("{podTemplateRef: {name: t}, count: 8}", many)
    assert only(text).message == "spec.podSets must have at most 32 items, not 33"


def test_other_classes_are_left_to_others() -> None:
    finding = only(REQUEST.replace("atomic-scale-up.kubernetes.io", "queued-provisioning.gke.io"))
    assert (finding.code, finding.severity) == ("foreign-class", "info")


@pytest.mark.parametrize("seconds", ["10m", "0", "-5", ""])
def test_a_life_time_is_a_number_of_seconds(seconds: str) -> None:
    finding = only(REQUEST + f"  parameters: {{ValidUntilSeconds: '{seconds}'}}\n")
    assert (finding.code, finding.path) == ("invalid-parameter", "spec.parameters.ValidUntilSeconds")


def test_a_class_gives_defaults_and_allows_parameters() -> None:
    text = CLASS + "parameters: {ValidUntilSeconds: '7200'}\nallowedParameters: [ValidUntilSeconds, Other]\n"
    (read,) = declared(text).provisioning_classes
    assert (read.class_name, read.ref.namespace) == ("atomic-scale-up.kubernetes.io", "")
    assert (read.defaults, read.allowed) == ((("ValidUntilSeconds", "7200"),), ("Other", "ValidUntilSeconds"))
    (open_class,) = declared(CLASS + "Parameters: {A: b}\n").provisioning_classes
    assert (open_class.defaults, open_class.allowed) == ((("A", "b"),), None)


def test_parameters_that_the_class_does_not_allow() -> None:
    text = CLASS + "allowedParameters: []\n---\n" + REQUEST + "  parameters: {ValidUntilSeconds: '60'}\n"
    finding = only(text)
    assert (finding.code, finding.path) == ("parameter-not-allowed", "spec.parameters.ValidUntilSeconds")
    assert codes_of(CLASS + "allowedParameters: []\nparameters: {A: b}\n") == ["parameter-not-allowed"]
