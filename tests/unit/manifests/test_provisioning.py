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
    assert (request.class_name, request.parameters) == ("atomic-scale-up.kubernetes.io", (("ValidUntilSeconds", "60"),))
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
    assert codes_of(CLASS + "allowedParameters: []\nparameters: {ValidUntilSeconds: '60'}\n") == [
        "parameter-not-allowed"
    ]


CHECK = REQUEST.replace("atomic-scale-up.kubernetes.io", "check-capacity.autoscaling.x-k8s.io")
FOREIGN = REQUEST.replace("atomic-scale-up.kubernetes.io", "queued-provisioning.gke.io")
DEFAULT = 'write ValidUntilSeconds: "{}", which is the default, or remove it'


@pytest.mark.parametrize(
    ("text", "parameter", "code", "hint"),
    [
        (CHECK, "noRetry: 'TRUE'", "invalid-parameter", 'did you mean noRetry: "true"?'),
        (CHECK, "noRetry: ' false'", "invalid-parameter", 'did you mean noRetry: "false"?'),
        (CHECK, "noRetry: 'yes'", "invalid-parameter", 'write noRetry: "true", or remove it'),
        (CHECK, "noretry: 'true'", "unknown-parameter", 'did you mean "noRetry"?'),
        (CHECK, "validUntilSeconds: '60'", "unknown-parameter", 'did you mean "ValidUntilSeconds"?'),
        (
            CHECK,
            "zone: a",
            "unknown-parameter",
            "it has ValidUntilSeconds, bookedForSeconds, noRetry, processorInstance",
        ),
        (CHECK, "ValidUntilSeconds: '99999999999999999999'", "invalid-parameter", DEFAULT.format(604800)),
        (CHECK, "ValidUntilSeconds: '٦٠'", "invalid-parameter", DEFAULT.format(604800)),
        (REQUEST, "ValidUntilSeconds: 10m", "invalid-parameter", DEFAULT.format(600)),
        (REQUEST, "noRetry: 'true'", "unknown-parameter", "remove it"),
        (REQUEST, "processorInstance: a", "unknown-parameter", "remove it"),
        (REQUEST, "reserve: 'True'", "invalid-parameter", 'did you mean reserve: "true"?'),
        (CHECK, "reserve: 'true'", "unknown-parameter", "remove it"),
        (REQUEST, "ValidUntilsecond: '60'", "unknown-parameter", 'did you mean "ValidUntilSeconds"?'),
    ],
)
def test_a_parameter_that_is_ignored_is_found(text: str, parameter: str, code: str, hint: str) -> None:
    finding = only(f"{text}  parameters: {{{parameter}}}\n")
    assert (finding.code, finding.hint) == (code, hint)
    assert finding.path == f"spec.parameters.{parameter.partition(':')[0]}"


@pytest.mark.parametrize("parameter", ["noRetry: 'true'", "noRetry: 'false'", "processorInstance: b"])
def test_the_parameters_of_cluster_autoscaler_are_taken(parameter: str) -> None:
    assert codes_of(f"{CHECK}  parameters: {{{parameter}}}\n") == []


def test_parameters_of_other_classes_are_for_others_to_judge() -> None:
    assert "unknown-parameter" not in codes_of(FOREIGN + "  parameters: {maxRunDurationSeconds: '60'}\n")


def test_defaults_of_a_class_are_judged_like_parameters() -> None:
    assert codes_of(CLASS + "parameters: {noRetry: 'true', ValidUntilSeconds: 1h}\n") == [
        "unknown-parameter",
        "invalid-parameter",
    ]
    assert codes_of(CLASS.replace("atomic-scale-up.kubernetes.io", "other.io") + "parameters: {A: b}\n") == []


RESERVING = REQUEST.replace("namespace: research", 'namespace: research, annotations: {headroom.dev/reserve: "true"}')


@pytest.mark.parametrize(
    ("class_name", "hint"),
    [
        ("best-effort-atomic.autoscaling.x-k8s.io", 'did you mean "best-effort-atomic-scale-up.autoscaling.x-k8s.io"?'),
        ("check-capacty.autoscaling.x-k8s.io", 'did you mean "check-capacity.autoscaling.x-k8s.io"?'),
        ("mine.autoscaling.x-k8s.io", ""),
        ("queued-provisioning.gke.io", ""),
    ],
)
def test_a_class_that_is_left_to_others_reserves_no_nodes(class_name: str, hint: str) -> None:
    """Only a note said that the class is left to others, however near its name was."""
    without, foreign = findings(RESERVING.replace("atomic-scale-up.kubernetes.io", class_name))
    assert (foreign.code, without.code) == ("foreign-class", "annotation-without-effect")
    assert foreign.hint.startswith(hint or "headroom's classes are check-capacity")
    assert class_name in without.message
    assert without.hint == (hint or "remove it, or ask for an atomic class")


TEMPLATE = """\
---
apiVersion: v1
kind: PodTemplate
metadata: {name: t, namespace: research}
template:
  spec:
    containers: [{name: c, image: i}]
    tolerations: [TOLERATION]
"""
OWN = "{key: headroom.dev/reserved, value: research.train, effect: NoSchedule}"


@pytest.mark.parametrize(
    "toleration",
    [
        OWN,
        "{key: headroom.dev/reserved, operator: Exists}",
        "{operator: Exists}",
        OWN.replace(", effect: NoSchedule", ""),
    ],
)
def test_pods_that_come_to_reserved_nodes(toleration: str) -> None:
    assert codes_of(RESERVING + TEMPLATE.replace("TOLERATION", toleration)) == []


@pytest.mark.parametrize("toleration", ["", "{key: dedicated, operator: Exists}", OWN.replace("train", "tune")])
def test_pods_that_could_not_come_to_the_nodes_that_are_reserved_for_them(toleration: str) -> None:
    finding = only(RESERVING + TEMPLATE.replace("TOLERATION", toleration))
    assert (finding.code, finding.path) == ("reserve-not-tolerated", "spec.podSets[0].podTemplateRef.name")
    assert finding.hint == f"add tolerations: [{OWN}] to its template.spec, and to that of the pods"


def test_a_check_reserves_no_node() -> None:
    text = RESERVING.replace("atomic-scale-up.kubernetes.io", "check-capacity.autoscaling.x-k8s.io")
    assert codes_of(text + TEMPLATE.replace("TOLERATION", "")) == ["annotation-without-effect"]


def test_the_taint_of_a_long_name_ends_in_a_digest() -> None:
    long = RESERVING.replace("name: train", f"name: {'a' * 60}")
    (finding,) = (item for item in findings(long + TEMPLATE.replace("TOLERATION", OWN)) if item.severity == "error")
    value = finding.hint.partition("value: ")[2].partition(",")[0]
    assert len(value) == 63
    assert codes_of(long + TEMPLATE.replace("TOLERATION", OWN.replace("research.train", value))) == []
