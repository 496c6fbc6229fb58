"""The annotations that people write, and the schedules that they name."""

from __future__ import annotations

from functools import partial

import pytest

from tests.manifests import node_pool
from tests.unit.manifests.reading import codes_of, declared, findings, only

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
    "karpenter.sh/v1 NodePool": node_pool(spec="replicas: 0").splitlines()[-1],
}
REQUEST, TEMPLATE, DEPLOYMENT, BUFFER, OLD_BUFFER, CLASS, SCHEDULE, PRIORITY, POOL = SPECS


def document(kind: str, *annotations: str, spec: str = "") -> str:
    """spec: in place of one that is right."""
    version, _, name = kind.partition(" ")
    written = ", ".join(f"headroom.dev/{each}" for each in annotations)
    head = f"apiVersion: {version}\nkind: {name}\nmetadata:\n  name: b\n  annotations: {{{written}}}\n"
    return head + (f"spec: {{{spec}}}\n" if spec else f"{SPECS[kind]}\n")


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
    both = ("one-shot: 'true'", "fulfilment: native")
    found = [item for item in findings(document(REQUEST, *both)) if "effect" in item.code]
    assert [item.message.rpartition(": ")[2] for item in found] == ["only buffers use it"] * 2
    found = [item for item in findings(document(BUFFER, *both)) if "effect" in item.code]
    assert [item.hint for item in found] == ["remove one of the two annotations"]


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


@pytest.mark.parametrize(
    ("owner", "is_one"), [("shop/headroom", 1), ("applyset-abc-v1", 1), ("headroom", 0), ("shop/", 0), ("/headroom", 0)]
)
def test_only_an_owner_can_be_adopted_from(owner: str, is_one: int) -> None:
    assert codes_of(document(BUFFER, f"adopt: {owner}")) == ["invalid-annotation"] * (1 - is_one)


SHARE = "podTemplateRef: {name: t}, replicas: 0, percentage: 10"


def share(percent_of: str, *more: str, spec: str = SHARE) -> str:
    return document(BUFFER, f"percent-of: {percent_of!r}", *more, spec=spec)


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
    found = only(share("cluster", spec=spec))
    assert (found.code, found.severity.value, found.hint) == ("invalid-annotation", "error", hint)
    assert found.path == "metadata.annotations['headroom.dev/percent-of']"


def test_the_api_server_wants_a_number_beside_the_percentage() -> None:
    found = only(share("cluster", spec="podTemplateRef: {name: t}, percentage: 10"))
    assert found.code == "template-without-size"
    assert found.hint.startswith("add replicas: 3, or limits; with a percentage of what runs replicas: 0")


def test_a_share_that_is_left_to_an_autoscaler_has_no_effect() -> None:
    found = only(share("cluster", "fulfilment: native"))
    assert (found.code, found.hint) == ("annotation-without-effect", "remove one of the two annotations")
    assert codes_of(share("cluster", "fulfilment: balloon")) == []


FROM, DURING, LEAD = "replicas-from", "active-during", "lead-time"
FOLLOWER = partial(document, BUFFER, spec="podTemplateRef: {name: t}")
STATIC_POOL = partial(document, POOL)
BY_NODE_CLASS = partial(document, OLD_BUFFER, spec="capacity: {nodeClass: {totalCpu: 4, totalMem: 8Gi}}")


@pytest.mark.parametrize(
    "text",
    [
        FOLLOWER(f"{FROM}: office"),  # the size comes from the schedule: no finding that it has none
        FOLLOWER(f"{FROM}: default/office", f"{LEAD}: 10m"),
        FOLLOWER(f"{FROM}: office", f"{DURING}: season", f"{LEAD}: 168h"),
        STATIC_POOL(f"{FROM}: shop/office", f"{LEAD}: 10m"),
        STATIC_POOL(f"{FROM}: office"),
        BY_NODE_CLASS(f"{DURING}: office"),
    ],
)
def test_what_is_right_is_passed_over_in_silence(text: str) -> None:
    assert codes_of(text) == []


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        (FOLLOWER(f"{FROM}: other/office"), "invalid-annotation", FROM),
        (STATIC_POOL(f"{FROM}: a/b/c"), "invalid-annotation", FROM),
        (STATIC_POOL(f"{FROM}: office", f"{DURING}: office"), "annotation-without-effect", DURING),
        (document(TEMPLATE, f"{FROM}: office"), "annotation-without-effect", FROM),
        (BY_NODE_CLASS(f"{FROM}: office"), "annotation-without-effect", FROM),
        (BY_NODE_CLASS(f"{LEAD}: 10m"), "annotation-without-effect", LEAD),
        (FOLLOWER(f"{FROM}: office", f"{LEAD}: 169h"), "invalid-annotation", LEAD),
        (FOLLOWER(f"{FROM}: office", f"{LEAD}: soon"), "invalid-annotation", LEAD),
        (document(BUFFER, "one-shot: 'true'", "fill-deadline: 0s"), "invalid-annotation", "fill-deadline"),
        (STATIC_POOL(f"{FROM}: office").replace("replicas: 0", ""), "static-by-schedule", FROM),
        (STATIC_POOL(f"{FROM}: office").replace("replicas: 0", "weight: 5"), "static-pool", "spec.weight"),
        (FOLLOWER(f"{DURING}: office"), "template-without-size", "spec"),
    ],
)
def test_what_does_nothing_or_leads_nowhere_is_told_where_it_stands(text: str, code: str, field: str) -> None:
    path = field if "spec" in field else f"metadata.annotations['headroom.dev/{field}']"
    assert (code, path) in [(item.code, item.path) for item in findings(text)]


def test_a_schedule_that_the_repository_does_not_have_must_be_in_the_cluster() -> None:
    found = declared(FOLLOWER(f"{FROM}: office")).findings
    messages = [item.message for item in found if FROM in item.path]
    assert messages == ["MetricsProducer/default/office is not in this repository: it must be in the cluster already"]


def test_a_template_with_errors_is_in_the_repository_all_the_same() -> None:
    """It was said to be missing from the repository, beside its own error."""
    template = "---\napiVersion: v1\nkind: PodTemplate\nmetadata: {name: t}\ntemplate: {spec: {containers: []}}\n"
    found = declared(document(BUFFER) + template).findings
    assert [(item.code, item.ref and item.ref.kind) for item in found] == [("invalid-value", "PodTemplate")]
