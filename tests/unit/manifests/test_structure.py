"""Structural findings: each says what was expected and what to write; all errors of a document come at once."""

from __future__ import annotations

import pytest

from reconciler.model.refs import ObjectRef, SourcePosition
from tests.unit.manifests.reading import codes_of, declared, findings, only

HEAD = "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: b, namespace: shop}\n"


@pytest.mark.parametrize(
    ("spec", "message", "hint"),
    [
        ("{podTemplateRef: {name: t}, replicas: '3'}", 'spec.replicas must be a whole number, not the text "3"',
         "write 3 without quotes"),
        ("{podTemplateRef: {name: t}, percentage: 20%, replicas: 1}", 'spec.percentage must be a whole number, not the text "20%"',
         "write 20"),
        ("{podTemplateRef: {name: t}, replicas: 2147483648}",
         "spec.replicas must be at most 2147483647, not 2147483648", "write 2147483647 or less"),
        ("{podTemplateRef: {name: t}, replicas: 99999999999999999999}",
         "spec.replicas must be at most 2147483647, not 1e+20", "write 2147483647 or less"),
        ("{podTemplateRef: {name: t}, replicas: -1}", "spec.replicas must be at least 0, not -1", "write it like 3"),
        ("{podTemplateRef: {name: t}, replicas: 2.5}", "spec.replicas must be a whole number, not the number 2.5", ""),
        ("{podTemplateRef: {name: 7}, replicas: 1}", "spec.podTemplateRef.name must be text, not the number 7",
         'write it in quotes: "7"'),
        ("{podTemplateRef: {name: 99999999999999999999}, replicas: 1}",
         "spec.podTemplateRef.name must be text, not the number 1e+20", "write it in quotes"),
        ("{podTemplateRef: {name: no}, replicas: 1}", "spec.podTemplateRef.name must be text, not the boolean false",
         "put it in quotes; YAML reads yes, no, on, off, y and n as booleans"),
        ("{podTemplateRef: {}, replicas: 1}", "spec.podTemplateRef.name is missing", 'add name: "small-pod"'),
        ("{podTemplateRef: {name: ''}, replicas: 1}", "spec.podTemplateRef.name must not be empty",
         'write it like "small-pod"'),
        ("{podTemplateRef: t, replicas: 1}", 'spec.podTemplateRef must be a mapping, not the text "t"', ""),
        ("{podTemplateRef: {name: t}, limits: {cpu: 0.5}}",
         "spec.limits.cpu must be a whole number or text, not the number 0.5", 'write it in quotes: "0.5"'),
        ("{podTemplateRef: {name: t}, limits: {memory: 1gb}}",
         'spec.limits.memory has a value that is not allowed: "1gb"', 'write it like "1Gi"'),
        ("{podTemplateRef: {name: t}, limits: {cpu: 1gb}}",
         'spec.limits.cpu has a value that is not allowed: "1gb"', 'write it like "500m"'),
        ("{podTemplateRef: {name: t}, replica: 1, replicas: 1}",
         "spec.replica is not a field of this kind", 'did you mean "replicas"?'),
        ("{podTemplateRef: {name: t}, replicaCount: 1, replicas: 1}",
         "spec.replicaCount is not a field of this kind and is dropped", 'did you mean "replicas"?'),
        ("{podTemplateRef: {name: t, replicas: 2}, replicas: 1}",
         "spec.podTemplateRef.replicas is not a field of this kind", "replicas belongs one level up, beside podTemplateRef"),
        ("{podTemplateRef: {name: t}, name: t, replicas: 1}",
         "spec.name is not a field of this kind", "name belongs one level down, in podTemplateRef"),
        ("{podTemplateRef: {name: t}, limits: {replicas: 1, cpu: 1}}",
         "spec.limits.replicas is an entry of limits, and the field replicas beside limits is missing",
         "move replicas one level up; an entry of that name is possible where the field is given too"),
        ("{podTemplateRef: {name: t}, limits: {cpu: }, replicas: 1}",
         "spec.limits.cpu must be a value, not null", "write a value, or remove the key"),
        ("{podTemplateRef: {name: t}, replicas: 1, headroom.dev/priority: '3'}",
         "spec['headroom.dev/priority'] is not a field of this kind",
         "it looks like an entry of a map, such as metadata.annotations: write it there"),
    ],
)  # fmt: skip
def test_words_and_hints(spec: str, message: str, hint: str) -> None:
    finding = only(HEAD + f"spec: {spec}\n")
    assert (finding.message, finding.hint) == (message, hint)


def test_a_value_as_long_as_its_file_is_not_told_in_full() -> None:
    head = HEAD.replace("name: b", f"name: b, annotations: {{headroom.dev/lead-time: {'9' * 3_000}h}}")
    finding = only(head + "spec: {podTemplateRef: {name: t}, replicas: 1}\n")
    assert finding.message.startswith("headroom.dev/lead-time has the value '999")
    assert len(finding.message) < 300


def test_unknown_fields_are_not_applied() -> None:
    text = HEAD.replace("name: b", "name: b, team: {}") + "spec: {podTemplateRef: {name: t, x: 1}, replicas: 1, y: 2}\n"
    (manifest,) = declared(text).manifests
    assert manifest.manifest["spec"] == {"podTemplateRef": {"name": "t"}, "replicas": 1}
    assert manifest.manifest["metadata"] == {"name": "b", "namespace": "shop"}
    pod = "{spec: {containers: [{name: c, picture: x}], nodeChooser: {}}}"
    template = "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: t}\ntemplate: " + pod
    (applied,) = declared(template).manifests
    assert applied.manifest["template"] == {"spec": {"containers": [{"name": "c"}]}}


def test_everything_that_is_wrong_is_told_at_once_and_in_order() -> None:
    text = HEAD + "spec:\n  replicas: x\n  percentage: y\n  scalableRef: {}\n  extra: 1\n"
    assert [(finding.code, finding.position and finding.position.line) for finding in findings(text)] == [
        ("wrong-type", 5),
        ("wrong-type", 6),
        ("missing-field", 7),
        ("missing-field", 7),
        ("unknown-field", 8),
    ]


def test_a_finding_names_its_object_and_place() -> None:
    finding = only(HEAD + "spec:\n  podTemplateRef:\n    name: ''\n  replicas: 1\n")
    assert finding.ref == ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "b")
    assert finding.position == SourcePosition("file.yaml", 6, 5)


def test_explicit_nulls_are_absent_fields() -> None:
    assert codes_of(HEAD + "spec: {podTemplateRef: {name: t}, replicas: 1, scalableRef: null, limits: ~}\n") == []


def test_an_integral_number_is_an_integer_however_it_is_written() -> None:
    (buffer,) = declared(HEAD + "spec: {podTemplateRef: {name: t}, replicas: 1e1}\n").buffers
    assert buffer.replicas == 10


SPEC = "spec: {podTemplateRef: {name: t}, replicas: 1}\n"


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ("{namespace: shop}", "name"), ("{name: Web}", "name"), ("{name: 5}", "name"),
        ("{name: b, namespace: a.b}", "namespace"), ("{name: b, labels: {a: true}}", "labels.a"),
        ("{name: b, annotations: {a: 1}}", "annotations.a"), ("[]", ""),
    ],
)  # fmt: skip
def test_metadata(metadata: str, path: str) -> None:
    text = HEAD.replace("{name: b, namespace: shop}", metadata) + SPEC
    finding = only(text)
    assert (finding.severity, finding.path) == ("error", f"metadata.{path}".rstrip("."))
    assert declared(text).manifests == ()


def test_what_only_the_api_server_writes_is_passed_over() -> None:
    text = HEAD.replace("name: b", "name: b, uid: u, resourceVersion: '5', creationTimestamp: null")
    text += "spec: {podTemplateRef: {name: t}, replicas: 1}\nstatus: {replicas: 3}\n"
    assert [(finding.code, finding.path) for finding in findings(text)] == [
        ("server-field", "metadata.uid"),
        ("server-field", "metadata.resourceVersion"),
        ("server-field", "status"),
    ]
    (manifest,) = declared(text).manifests
    assert manifest.manifest.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert manifest.manifest["metadata"] == {"name": "b", "namespace": "shop"}


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("apiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool\n", "foreign-kind",
         "write apiVersion: karpenter.sh/v1 if that is what is meant"),
        ("apiVersion: autoscaling.x-k8s.io/v2\nkind: CapacityBuffer\nmetadata: {name: b}\n", "unknown-version",
         "write apiVersion: autoscaling.x-k8s.io/v1beta1"),
        ("replicaCount: 3\n", "not-an-object", "a Kubernetes object has apiVersion and kind"),
        ("apiVersion: v2\nname: chart\nversion: 1.0.0\n", "other-kinds", ""),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "other-kinds", ""),
        ("kind: 5\napiVersion: []\n", "other-kinds", ""),
    ],
)  # fmt: skip
def test_documents_that_are_none_of_ours(text: str, code: str | None, hint: str) -> None:
    assert [(finding.code, finding.hint) for finding in findings(text)] == ([(code, hint)] if code else [])


@pytest.mark.parametrize(
    ("annotation", "code"),
    [
        ("headroom.dev/one-shot: once", "invalid-annotation"),
        ('headroom.dev/one-shot: "true", headroom.dev/fulfilment: balloon', "annotation-without-effect"),
        ("headroom.dev/fulfillment: balloon", "misspelt-annotation"),
        ("headroom.dev/filled-by: balloon", "unknown-annotation"),
        ("headrom.dev/fulfilment: balloon", "misspelt-annotation"),
        ("headroom.devfulfilment: balloon", "misspelt-annotation"),
        ("headroom.dev/fulfilment: pods", "invalid-annotation"),
        ("headroom.dev/priority: high", "invalid-annotation"),
        ("headroom.dev/priority: '1.5'", "invalid-annotation"),
        ("headroom.dev/timezone: Europe/Berlin", "annotation-without-effect"),
        ("headroom.dev/timezone: Berlin", "invalid-annotation"),
        ("example.com/anything: x", None),
    ],
)
def test_annotations_of_headroom(annotation: str, code: str | None) -> None:
    text = HEAD.replace("namespace: shop", f"annotations: {{{annotation}}}")
    text += "spec: {podTemplateRef: {name: t}, replicas: 1}\n"
    assert codes_of(text) == ([code] if code else [])


BUFFER = "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: b, namespace: shop}\nspec: "
POOL = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\nspec:\n"


@pytest.mark.parametrize(
    "spec",
    [
        "{podTemplateRef: {name: t}, replicas: three}",
        "{scalableRef: 7, replicas: 1}",
        "{podTemplateRef: {}, replicas: 1}",
    ],
)
def test_a_wrong_value_is_no_missing_value(spec: str) -> None:
    """Neither `neither replicas nor limits` nor `neither podTemplateRef nor scalableRef`: they are there, and wrong."""
    (finding,) = findings(BUFFER + spec + "\n")
    assert finding.code in {"wrong-type", "missing-field"}


def test_a_wrong_value_is_compared_with_no_other() -> None:
    """Neither the value in its place nor its absence makes a finding."""
    text = "apiVersion: autoscaling.x-k8s.io/v1alpha1\nkind: Buffer\nmetadata: {name: b, namespace: shop}\nspec:\n"
    text += "  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n"
    text += "  capacity: {replicas: {percent: {percent: 10, minCount: 5000, maxCount: none}}}\n"
    assert codes_of(text) == ["wrong-type"]


def test_where_a_rule_fails_on_what_is_missing_the_others_are_told() -> None:
    text = POOL + (
        "  template:\n"
        "    metadata: {labels: {kubernetes.io/hostname: a}}\n"
        "    spec:\n"
        "      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n"
        "      taints: [{effect: NoSchedule}]\n"
        "      requirements: []\n"
    )
    assert set(codes_of(text)) == {"missing-field", "restricted-label"}


def test_more_budgets_than_allowed_are_not_compared_with_each_other() -> None:
    """Each of ten thousand with each: that would take minutes."""
    budgets = ", ".join(f"{{nodes: '{number}', schedule: '@daily', duration: 1h}}" for number in range(10_000))
    assert codes_of(POOL + f"  disruption: {{budgets: [{budgets}]}}\n") == ["invalid-value"]


def test_a_document_without_a_name_is_told_as_one() -> None:
    """It was `CapacityBuffer/default`, as if it were called that."""
    (finding,) = findings(BUFFER.replace("name: b, ", "") + "{podTemplateRef: {name: t}, replicas: 1}\n")
    assert (str(finding.ref), finding.message) == ("CapacityBuffer without a name", "metadata.name is missing")
