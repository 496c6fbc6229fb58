"""ProvisioningRequests and ProvisioningClasses."""

from __future__ import annotations

import pytest

from reconciler.model.provisioning_requests import PodSet
from tests.unit.manifests.reading import check, codes_of, declared, findings, found, only

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


SECONDS = "spec.parameters.ValidUntilSeconds"
SETS = "{podTemplateRef: {name: t}, count: 8}"


def asking(parameter: str, request: str = CHECK) -> str:
    return f"{request}  parameters: {{{parameter}}}\n"


@found(
    ("a set of no pods", REQUEST.replace("count: 8", "count: 0"), "invalid-value", "spec.podSets[0].count", ""),
    ("a set of too many pods", REQUEST.replace("count: 8", "count: 16385"), "invalid-value", "spec.podSets[0].count", ""),
    ("too many sets of pods", REQUEST.replace(SETS, ", ".join([SETS] * 33)), "invalid-value", "",
     "spec.podSets must have at most 32 items, not 33"),
    ("a class that others provide for", FOREIGN, "foreign-class", "", ""),
    *((f"a life of {written!r} seconds", asking(f"ValidUntilSeconds: '{written}'", REQUEST), "invalid-parameter", SECONDS,
       DEFAULT.format(600)) for written in ("10m", "0", "-5", "")),
    *((f"a life of {written!r} seconds for a check", asking(f"ValidUntilSeconds: '{written}'"), "invalid-parameter", SECONDS,
       DEFAULT.format(604800)) for written in ("99999999999999999999", "٦٠")),
    ("TRUE is not true", asking("noRetry: 'TRUE'"), "invalid-parameter", "spec.parameters.noRetry", 'did you mean noRetry: "true"?'),
    ("a space before false", asking("noRetry: ' false'"), "invalid-parameter", "", 'did you mean noRetry: "false"?'),
    ("yes is not true", asking("noRetry: 'yes'"), "invalid-parameter", "", 'write noRetry: "true", or remove it'),
    ("True is not true", asking("reserve: 'True'", REQUEST), "invalid-parameter", "", 'did you mean reserve: "true"?'),
    ("a small letter", asking("noretry: 'true'"), "unknown-parameter", "spec.parameters.noretry", 'did you mean "noRetry"?'),
    ("another small letter", asking("validUntilSeconds: '60'"), "unknown-parameter", "", 'did you mean "ValidUntilSeconds"?'),
    ("a letter too few", asking("ValidUntilsecond: '60'", REQUEST), "unknown-parameter", "", 'did you mean "ValidUntilSeconds"?'),
    ("a parameter of nobody", asking("zone: a"), "unknown-parameter", "",
     "it has ValidUntilSeconds, bookedForSeconds, noRetry, processorInstance"),
    ("an atomic request is always tried again", asking("noRetry: 'true'", REQUEST), "unknown-parameter", "", "; remove it"),
    ("an atomic request is no instance's", asking("processorInstance: a", REQUEST), "unknown-parameter", "", "; remove it"),
    ("a check reserves nothing", asking("reserve: 'true'"), "unknown-parameter", "", "; remove it"),
)  # fmt: skip
def test_what_a_request_cannot_ask_for_or_is_not_given(text: str, code: str, path: str, words: str) -> None:
    check(text, code, path, words)
