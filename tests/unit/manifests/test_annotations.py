"""The annotations that people write, and the schedules that they name."""

from __future__ import annotations

import pytest

from reconciler.manifests.repository.declared import read
from tests.unit.manifests.reading import codes_of, findings, only

SPECS = {
    "autoscaling.x-k8s.io/v1 ProvisioningRequest": (
        "spec: {provisioningClassName: atomic-scale-up.kubernetes.io, podSets: [{podTemplateRef: {name: t}, count: 1}]}"
    ),
    "v1 PodTemplate": "template: {spec: {containers: [{name: c, image: i}]}}",
    "apps/v1 Deployment": (
        "spec: {selector: {matchLabels: {a: b}}, "
        "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}"
    ),
    "autoscaling.x-k8s.io/v1beta1 CapacityBuffer": "spec: {podTemplateRef: {name: t}, replicas: 1}",
    "autoscaling.x-k8s.io/v1alpha1 Buffer": "spec: {podTemplateRef: {name: t}, capacity: {replicas: {exactly: 1}}}",
    "autoscaling.x-k8s.io/v1alpha1 ProvisioningClass": "parameters: {ValidUntilSeconds: '60'}",
    "autoscaling.karpenter.sh/v1alpha1 MetricsProducer": "spec: {schedule: {defaultReplicas: 0, behaviors: []}}",
    "scheduling.k8s.io/v1 PriorityClass": "value: 5",
}
REQUEST, TEMPLATE, DEPLOYMENT, BUFFER, OLD_BUFFER, CLASS, SCHEDULE, PRIORITY = SPECS


def document(kind: str, annotation: str) -> str:
    version, _, name = kind.partition(" ")
    head = f"apiVersion: {version}\nkind: {name}\n"
    return f"{head}metadata:\n  name: b\n  annotations: {{headroom.dev/{annotation}}}\n{SPECS[kind]}\n"


@pytest.mark.parametrize(
    ("kind", "annotation"),
    [
        *((kind, "fulfilment: balloon") for kind in (REQUEST, TEMPLATE, DEPLOYMENT, CLASS, SCHEDULE, PRIORITY)),
        *((kind, "one-shot: 'true'") for kind in (REQUEST, TEMPLATE, DEPLOYMENT)),
        *((kind, "serves-requests: 'false'") for kind in (REQUEST, TEMPLATE, CLASS)),
        *((kind, "priority: '5'") for kind in (TEMPLATE, DEPLOYMENT, CLASS, SCHEDULE)),
        *((DEPLOYMENT, word) for word in ("suspend: 'true'", "prune: disabled", "ssa: Ignore", "drift: report")),
        (PRIORITY, "suspend: 'true'"),
        *((kind, "reserve: 'true'") for kind in (BUFFER, TEMPLATE, CLASS)),
        *((kind, "percent-of: namespace") for kind in (OLD_BUFFER, REQUEST, TEMPLATE)),
    ],
)
def test_an_annotation_that_does_nothing_on_this_kind_is_found(kind: str, annotation: str) -> None:
    text = document(kind, annotation)
    found = [finding for finding in findings(text) if finding.code == "annotation-without-effect"]
    name = annotation.partition(":")[0]
    assert [finding.path for finding in found] == [f"metadata.annotations['headroom.dev/{name}']"]


@pytest.mark.parametrize(
    ("kind", "annotation"),
    [
        *((kind, "fulfilment: placeholder") for kind in (BUFFER, OLD_BUFFER)),
        *((kind, "one-shot: 'true'") for kind in (BUFFER, OLD_BUFFER)),
        *((kind, "serves-requests: 'false'") for kind in (BUFFER, OLD_BUFFER)),
        *((kind, "priority: '5'") for kind in (BUFFER, OLD_BUFFER, REQUEST)),
        *((kind, "suspend: 'true'") for kind in (BUFFER, REQUEST, TEMPLATE, CLASS, SCHEDULE)),
        *((TEMPLATE, word) for word in ("prune: disabled", "ssa: Ignore", "drift: report")),
        (DEPLOYMENT, "requestedAt: now"),
        (REQUEST, "reserve: 'true'"),
    ],
)
def test_where_it_works_nothing_is_found(kind: str, annotation: str) -> None:
    assert "annotation-without-effect" not in codes_of(document(kind, annotation))


def test_the_finding_says_where_it_works() -> None:
    (found,) = (item for item in findings(document(TEMPLATE, "fulfilment: balloon")) if "effect" in item.code)
    assert found.message == "headroom.dev/fulfilment has no effect on a PodTemplate: only buffers use it"
    assert found.hint == "write it on the buffer that is made of this PodTemplate, or remove it"
    (found,) = (item for item in findings(document(REQUEST, "one-shot: 'true'")) if "effect" in item.code)
    assert found.hint == "remove it"


def test_two_annotations_of_buffers_on_another_kind_do_not_rule_each_other_out() -> None:
    """There was a third finding, which spoke of the request as of a buffer."""
    found = [
        item
        for item in findings(document(REQUEST, "one-shot: 'true', headroom.dev/fulfilment: native"))
        if "effect" in item.code
    ]
    assert [item.message.rpartition(": ")[2] for item in found] == ["only buffers use it"] * 2
    both = document(BUFFER, "one-shot: 'true', headroom.dev/fulfilment: native")
    assert [item.hint for item in findings(both) if "effect" in item.code] == ["remove one of the two annotations"]


def test_on_pods_it_has_no_effect() -> None:
    text = """\
apiVersion: v1
kind: PodTemplate
metadata: {name: t}
template:
  metadata: {annotations: {headroom.dev/fulfilment: balloon}}
  spec: {containers: [{name: c, image: i}]}
"""
    found = only(text)
    assert (found.code, found.path) == (
        "annotation-without-effect",
        "template.metadata.annotations['headroom.dev/fulfilment']",
    )


@pytest.mark.parametrize(("name", "hint"), [("suspnd", 'did you mean "headroom.dev/suspend"?'), ("foo", "remove it")])
def test_the_prefix_alone_makes_no_annotation_similar(name: str, hint: str) -> None:
    """`headroom.dev/foo` was taken for `headroom.dev/drift`."""
    assert [finding.hint for finding in findings(document(BUFFER, f"{name}: 'true'"))] == [hint]


SHARE = "podTemplateRef: {name: t}, replicas: 0, percentage: 10"


def share(percent_of: str, spec: str = SHARE, more: str = "") -> str:
    head = document(BUFFER, f"percent-of: {percent_of!r}{more}").partition("spec:")[0]
    return f"{head}spec: {{{spec}}}\n"


RUNNING = "nodepool/general|namespace|cluster| cluster |selector:app=web|selector: app=web,tier in (a, b),!old"
NO_PODS = "|general|nodepool|nodepool/|nodepool/a/b|NodePool/general|namespace/shop|selector:|selector:a>1"


@pytest.mark.parametrize("percent_of", RUNNING.split("|"))
def test_a_share_of_running_pods(percent_of: str) -> None:
    assert codes_of(share(percent_of)) == []


@pytest.mark.parametrize("percent_of", NO_PODS.split("|"))
def test_a_share_of_what_are_no_pods_is_found(percent_of: str) -> None:
    found = only(share(percent_of))
    assert (found.code, found.path) == ("invalid-annotation", "metadata.annotations['headroom.dev/percent-of']")
    assert found.hint == (
        'write nodepool/NAME, namespace, cluster, or a selector of pods such as "selector:app=web,tier in (a,b)"'
    )


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("podTemplateRef: {name: t}, replicas: 2", "add percentage: 10, or remove the annotation"),
        (
            "scalableRef: {apiGroup: apps, kind: Deployment, name: w}, percentage: 10",
            "write podTemplateRef in place of scalableRef; a percentage of one workload needs no annotation",
        ),
    ],
)
def test_a_share_without_a_chunk_or_a_percentage_is_found(spec: str, hint: str) -> None:
    found = only(share("cluster", spec))
    assert (found.code, found.severity.value, found.hint) == ("invalid-annotation", "error", hint)
    assert found.path == "metadata.annotations['headroom.dev/percent-of']"


def test_the_api_server_wants_a_number_beside_the_percentage() -> None:
    found = only(share("cluster", "podTemplateRef: {name: t}, percentage: 10"))
    assert found.code == "template-without-size"
    assert found.hint.startswith("add replicas: 3, or limits; with a percentage of what runs replicas: 0")


def test_a_share_that_is_left_to_an_autoscaler_has_no_effect() -> None:
    found = only(share("cluster", more=", headroom.dev/fulfilment: native"))
    assert (found.code, found.hint) == ("annotation-without-effect", "remove one of the two annotations")
    assert codes_of(share("cluster", more=", headroom.dev/fulfilment: balloon")) == []


FOLLOWER = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata:
  name: web
  namespace: shop
  annotations:
    ANNOTATIONS
spec:
  podTemplateRef: {name: web}
"""
POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: reports
  annotations:
    ANNOTATIONS
spec:
  replicas: 0
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
"""
BY_NODE_CLASS = """\
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata:
  name: web
  namespace: shop
  annotations:
    ANNOTATIONS
spec:
  capacity: {nodeClass: {totalCpu: 4, totalMem: 8Gi}}
"""
TEMPLATE_OF_IT = """\
apiVersion: v1
kind: PodTemplate
metadata:
  name: web
  namespace: shop
  annotations:
    ANNOTATIONS
template:
  spec:
    containers: [{name: web, image: web}]
"""
FROM, DURING, LEAD = "headroom.dev/replicas-from", "headroom.dev/active-during", "headroom.dev/lead-time"


def told(document: str, *annotations: str) -> list[tuple[str, int]]:
    """Code and line of every finding but notes about what the repository does not have."""
    text = document.replace("ANNOTATIONS", "\n    ".join(annotations))
    found = read({"a.yaml": text.encode()}).findings
    return [
        (item.code, item.position.line)
        for item in found
        if item.position is not None and item.code != "not-in-repository"
    ]


@pytest.mark.parametrize(
    ("document", "annotations"),
    [
        (FOLLOWER, (f"{FROM}: office",)),  # the size comes from the schedule: no finding that it has none
        (FOLLOWER, (f"{FROM}: shop/office", f"{LEAD}: 10m")),
        (FOLLOWER, (f"{FROM}: office", f"{DURING}: season", f"{LEAD}: 168h")),
        (POOL, (f"{FROM}: shop/office", f"{LEAD}: 10m")),
        (POOL, (f"{FROM}: office",)),
        (BY_NODE_CLASS, (f"{DURING}: office",)),
    ],
)
def test_what_is_right_is_passed_over_in_silence(document: str, annotations: tuple[str, ...]) -> None:
    assert told(document, *annotations) == []


@pytest.mark.parametrize(
    ("document", "annotations", "finding"),
    [
        (FOLLOWER, (f"{FROM}: other/office",), ("invalid-annotation", 7)),
        (POOL, (f"{FROM}: a/b/c",), ("invalid-annotation", 6)),
        (POOL, (f"{FROM}: office", f"{DURING}: office"), ("annotation-without-effect", 7)),
        (TEMPLATE_OF_IT, (f"{FROM}: office",), ("annotation-without-effect", 7)),
        (BY_NODE_CLASS, (f"{FROM}: office",), ("annotation-without-effect", 7)),
        (BY_NODE_CLASS, (f"{LEAD}: 10m",), ("annotation-without-effect", 7)),
        (FOLLOWER, (f"{FROM}: office", f"{LEAD}: 169h"), ("invalid-annotation", 8)),
        (FOLLOWER, (f"{FROM}: office", f"{LEAD}: soon"), ("invalid-annotation", 8)),
        (POOL.replace("  replicas: 0\n", ""), (f"{FROM}: office",), ("static-by-schedule", 6)),
        (POOL.replace("  replicas: 0\n", "  weight: 5\n"), (f"{FROM}: office",), ("static-pool", 8)),
        (FOLLOWER, (f"{DURING}: office",), ("template-without-size", 8)),
    ],
)
def test_what_does_nothing_or_leads_nowhere_is_told_at_its_line(
    document: str, annotations: tuple[str, ...], finding: tuple[str, int]
) -> None:
    assert finding in told(document, *annotations)


def test_a_schedule_that_the_repository_does_not_have_must_be_in_the_cluster() -> None:
    found = read({"a.yaml": FOLLOWER.replace("ANNOTATIONS", f"{FROM}: office").encode()}).findings
    messages = [item.message for item in found if "replicas-from" in item.path]
    assert messages == ["MetricsProducer/shop/office is not in this repository: it must be in the cluster already"]


def test_a_template_with_errors_is_in_the_repository_all_the_same() -> None:
    """It was said to be missing from the repository, beside its own error."""
    template = "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: web, namespace: shop}\ntemplate: {spec: {containers: []}}\n"
    buffer = FOLLOWER.replace("ANNOTATIONS", "{}") + "  replicas: 1\n"
    found = read({"buffer.yaml": buffer.encode(), "template.yaml": template.encode()}).findings
    assert [(item.code, item.ref and item.ref.kind) for item in found] == [("invalid-value", "PodTemplate")]
