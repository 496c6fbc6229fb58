"""Annotations by which buffers and NodePools follow schedules: what is told before anything is applied."""

from __future__ import annotations

import pytest

from reconciler.manifests.declared import read

BUFFER = """\
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
TEMPLATE = """\
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
        (BUFFER, (f"{FROM}: office",)),  # the size comes from the schedule: no finding that it has none
        (BUFFER, (f"{FROM}: shop/office", f"{LEAD}: 10m")),
        (BUFFER, (f"{FROM}: office", f"{DURING}: season", f"{LEAD}: 168h")),
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
        (BUFFER, (f"{FROM}: other/office",), ("invalid-annotation", 7)),
        (POOL, (f"{FROM}: a/b/c",), ("invalid-annotation", 6)),
        (POOL, (f"{FROM}: office", f"{DURING}: office"), ("annotation-without-effect", 7)),
        (TEMPLATE, (f"{FROM}: office",), ("annotation-without-effect", 7)),
        (BY_NODE_CLASS, (f"{FROM}: office",), ("annotation-without-effect", 7)),
        (BY_NODE_CLASS, (f"{LEAD}: 10m",), ("annotation-without-effect", 7)),
        (BUFFER, (f"{FROM}: office", f"{LEAD}: 169h"), ("invalid-annotation", 8)),
        (BUFFER, (f"{FROM}: office", f"{LEAD}: soon"), ("invalid-annotation", 8)),
        (POOL.replace("  replicas: 0\n", ""), (f"{FROM}: office",), ("static-by-schedule", 6)),
        (POOL.replace("  replicas: 0\n", "  weight: 5\n"), (f"{FROM}: office",), ("static-pool", 8)),
        (BUFFER, (f"{DURING}: office",), ("template-without-size", 8)),
    ],
)
def test_what_does_nothing_or_leads_nowhere_is_told_at_its_line(
    document: str,
    annotations: tuple[str, ...],
    finding: tuple[str, int],
) -> None:
    assert finding in told(document, *annotations)


def test_a_schedule_that_the_repository_does_not_have_must_be_in_the_cluster() -> None:
    found = read({"a.yaml": BUFFER.replace("ANNOTATIONS", f"{FROM}: office").encode()}).findings
    messages = [item.message for item in found if "replicas-from" in item.path]
    assert messages == ["MetricsProducer/shop/office is not in this repository: it must be in the cluster already"]


def test_a_template_with_errors_is_in_the_repository_all_the_same() -> None:
    """It was said to be missing from the repository, beside its own error."""
    template = "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: web, namespace: shop}\ntemplate: {spec: {containers: []}}\n"
    buffer = BUFFER.replace("ANNOTATIONS", "{}") + "  replicas: 1\n"
    found = read({"buffer.yaml": buffer.encode(), "template.yaml": template.encode()}).findings
    assert [(item.code, item.ref and item.ref.kind) for item in found] == [("invalid-value", "PodTemplate")]
