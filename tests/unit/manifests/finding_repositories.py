"""For each finding code about documents a repository of any number of them, each of which is found to have that problem.

A check that compares every document with every other one is noticed in such a repository: test_codes counts what is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

Files = Mapping[str, bytes]
PLACE = "§"
"""Stands for the number of the document."""

_BUFFER = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: web-§, namespace: shop%s}
spec: {%s}
"""
_OLD_BUFFER = """\
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata: {name: web-§, namespace: shop}
spec: {%s}
"""
_POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: pool-§%s}
spec:
  %s
  template:
    spec:
      nodeClassRef: {group: g, kind: K, name: default}
      requirements: [%s]
"""
_SCHEDULE = """\
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: hours-§, namespace: shop}
spec: {schedule: {timezone: %s, defaultReplicas: 1, behaviors: [%s]}}
"""
_REQUEST = """\
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: train-§, namespace: shop%s}
spec: {provisioningClassName: %s, %spodSets: [{count: 2, podTemplateRef: {name: shape-§}}]}
"""
_SHAPE = """\
apiVersion: v1
kind: PodTemplate
metadata: {name: shape-§, namespace: shop}
template: {spec: {containers: [{name: a, image: pause, resources: {requests: {cpu: 100m}}}]}}
"""
_OVERLAY = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: overlay-§}
spec: {requirements: [], %s}
"""
_TEMPLATE = "podTemplateRef: {name: shape-§}"
_WORKLOAD = "scalableRef: {apiGroup: apps, kind: Deployment, name: web-§}"
_CHECK = "check-capacity.autoscaling.x-k8s.io"
_ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"


def _annotated(name: str, value: str) -> str:
    return f", annotations: {{{name}: {value}}}"


def _buffer(spec: str, more: str = "") -> str:
    return _BUFFER % (more, spec)


def _pool(budgets: str = "", *, requirement: str = "", spec: str = "", more: str = "") -> str:
    return _POOL % (more, spec or f"disruption: {{budgets: [{budgets}]}}", requirement)


def _hours(*behaviors: str, zone: str = "UTC") -> str:
    return _SCHEDULE % (zone, ", ".join(behaviors))


def _request(name: str = _CHECK, parameters: str = "", more: str = "") -> str:
    return _REQUEST % (more, name, f"parameters: {{{parameters}}}, " if parameters else "")


DOCUMENTS: Mapping[str, str] = {
    "always-zero": _pool('{nodes: "0"}, {nodes: "20%", schedule: "0 22 * * mon-fri", duration: 8h}'),
    "annotation-without-effect": _buffer(f"{_WORKLOAD}, replicas: 3", _annotated("headroom.dev/lead-time", "10m")),
    "budget-never-binds": _pool('{nodes: "10%"}, {nodes: "20%", schedule: "0 22 * * *", duration: 6h}'),
    "budget-not-evaluated": _pool('{nodes: "0", schedule: "TZ=Europe/Berlin 0 9 * * 1", duration: 8h}'),
    "buffer-without-reference": _buffer("replicas: 3"),
    "buffer-without-size": _buffer(_WORKLOAD),
    "capacity-target-mismatch": _OLD_BUFFER
    % "targetRef: {apiVersion: karpenter.sh/v1, kind: NodePool, name: a}, capacity: {replicas: {exactly: 3}}",
    "chunk-too-large": _OLD_BUFFER
    % (
        "targetRef: {apiVersion: karpenter.sh/v1, kind: NodePool, name: a}, capacity: {nodeClass: {totalCpu: 4, totalMem: 16Gi,"
        " perChunkResources: {cpu: 8}}}"
    ),
    "day-or-weekday": _pool('{nodes: "1", schedule: "0 0 1 * mon", duration: 24h}'),
    "duplicate-key": _buffer("replicas: 3, replicas: 4"),
    "duplicate-object": "---\n".join([_buffer(f"{_TEMPLATE}, replicas: 1")] * 2),
    "end-never-comes": _hours("{replicas: 3, start: {hours: 9}, end: {days: 30, months: Feb}}"),
    "foreign-class": _request("queued-provisioning.gke.io"),
    "foreign-kind": _buffer("replicas: 3").replace("autoscaling.x-k8s.io/v1beta1", "hypershift.openshift.io/v1"),
    "half-consumption": _SHAPE.replace(
        "template: {", "template: {metadata: {annotations: {autoscaling.x-k8s.io/consume-provisioning-request: a}}, "
    ),
    "invalid-annotation": _buffer(
        f"{_TEMPLATE}, replicas: 1", _annotated("headroom.dev/lead-time", "10 minutes, headroom.dev/replicas-from: a")
    ),
    "invalid-parameter": _request(_ATOMIC, "ValidUntilSeconds: 10m"),
    "invalid-value": _pool(spec="disruption: {consolidateAfter: 1hr}"),
    "list-only": _hours("{replicas: 3, start: {weekdays: Mon-Fri, hours: 9}, end: {hours: 17}}"),
    "missing-field": _buffer("scalableRef: {name: web-§}, replicas: 2"),
    "negative-limit": _buffer(f"{_TEMPLATE}, limits: {{memory: -5Gi}}"),
    "nested-too-deep": "a: " + "[" * 70 + "\n",
    "never-ready": _pool(requirement="{key: karpenter.sh/capacity-type, operator: In, values: [sopt]}"),
    "no-budgets": _pool(),
    "not-an-object": "- §\n",
    "not-converted": _pool().replace("sh/v1", "sh/v1beta1").replace("spec:\n      node", "spec:\n      kubelet: {maxPods: 2}\n      node"),
    "not-in-repository": _buffer(f"{_TEMPLATE}, replicas: 1"),
    "not-json": _buffer("replicas: .inf"),
    "old-spelling": _pool("{nodes: 0, reasons: [drifted]}"),
    "one-capacity": _OLD_BUFFER
    % "targetRef: {apiVersion: apps/v1, kind: Deployment, name: a}, capacity: {replicas: {exactly: 3}, pods: {replicaNum: 2, podSpec: {}}}",
    "overlap-settled": _hours(
        "{replicas: 2, start: {hours: 6}, end: {hours: 20}}",
        "{replicas: 9, priority: 1, start: {days: 27, months: Nov, hours: 6}, end: {days: 27, months: Nov, hours: 20}}",
    ),
    "overlapping-behaviors": _hours(
        "{replicas: 1, start: {weekdays: Fri, hours: 17}, end: {weekdays: Mon, hours: 9}}",
        "{replicas: 2, start: {hours: 17}, end: {hours: 9}}",
    ),
    "parameter-not-allowed": _request("class-§", 'ValidUntilSeconds: "600"')
    + "---\n{apiVersion: autoscaling.x-k8s.io/v1alpha1, kind: ProvisioningClass, metadata: {name: class-§}, allowedParameters: [],"
    f" provisioningClassName: {_ATOMIC}}}\n",
    "price-and-adjustment": _OVERLAY % 'price: "0.3", priceAdjustment: -10%',
    "reasons-match-nothing": _pool('{nodes: "0", reasons: []}'),
    "removed-reason": _pool('{nodes: "1", reasons: [expired]}'),
    "requirement-values": _pool(requirement='{key: cores, operator: Gt, values: ["4", "8"]}'),
    "reserve-not-tolerated": _request(_ATOMIC, more=_annotated("headroom.dev/reserve", '"true"')) + "---\n" + _SHAPE,
    "resource-claims": _buffer(f"{_TEMPLATE}, replicas: 1")
    + "---\n"
    + _SHAPE.replace("{spec: {", "{spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}], "),
    "restricted-label": _pool(requirement="{key: kubernetes.io/hostname, operator: In, values: [node-1]}"),
    "schedule-never-hits": _pool('{nodes: "0", schedule: "0 0 30 2 *", duration: 24h}'),
    "schedule-without-duration": _pool('{nodes: "0", schedule: "0 9 * * mon-fri"}'),
    "server-field": _buffer(f"{_TEMPLATE}, replicas: 1", ', resourceVersion: "8"'),
    "several-clusters": _buffer(f"{_TEMPLATE}, replicas: 1"),
    "standard-resource": _OVERLAY % "capacity: {cpu: 8}",
    "start-never-comes": _hours("{replicas: 3, start: {days: 30, months: Feb}, end: {days: 1, months: Mar}}"),
    "static-by-schedule": _pool(more=_annotated("headroom.dev/replicas-from", "shop/hours-§")),
    "static-pool": _pool(spec="replicas: 3\n  weight: 10"),
    "template-and-scalable": _buffer(f"{_TEMPLATE}, {_WORKLOAD}, replicas: 1"),
    "template-not-rendered": _buffer(f"{_TEMPLATE}, replicas: 1").replace("web-§", "{{ .Release.Name }}-§"),
    "deadline-ignored": _buffer(f"{_WORKLOAD}, replicas: 3, fillDeadlineSeconds: 900"),
    "template-without-size": _buffer(f"{_TEMPLATE}, percentage: 10"),
    "too-many-aliases": "a: &a [x, *a]\n",
    "unbounded-outside-windows": _pool('{nodes: "0", schedule: "0 9 * * mon-fri", duration: 8h}'),
    "unhealthy-reason": _pool('{nodes: "1", reasons: [Unhealthy]}'),
    "misspelt-annotation": _buffer(f"{_TEMPLATE}, replicas: 1", _annotated("headroom.dev/lead-tmie", "10m")),
    "misspelt-field": _buffer(f"{_TEMPLATE}, replicas: 1, replicsa: 2"),
    "unknown-annotation": _buffer(f"{_TEMPLATE}, replicas: 1", _annotated("headroom.dev/kept-by", "native")),
    "unknown-capacity-type": _pool(requirement="{key: karpenter.sh/capacity-type, operator: In, values: [on-demand, sopt]}"),
    "unknown-field": _buffer(f"{_TEMPLATE}, replicas: 1, zebra: 2"),
    "unknown-kind": _buffer("replicas: 3").replace("kind: CapacityBuffer", "kind: CapacityBufer"),
    "unlikely-quantity": _SHAPE.replace("100m", "100M"),
    "unknown-parameter": _request(_ATOMIC, "ValidUntil: '600'"),
    "unknown-strategy": _buffer(f"{_TEMPLATE}, replicas: 1, provisioningStrategy: example.com/warm"),
    "unknown-time-zone": _hours(zone="Mars/Base"),
    "unknown-version": _buffer("replicas: 3").replace("v1beta1", "v9"),
    "unreachable-behavior": _hours(
        "{replicas: 2, start: {hours: 6}, end: {hours: 20}}", "{replicas: 9, start: {hours: 7}, end: {hours: 8}}"
    ),
    "wrong-type": _buffer(f"{_TEMPLATE}, replicas: many"),
    "yaml-syntax": "a: b: c\n",
}  # fmt: skip
"""The text of one document, or of the few that have the problem together."""


def repository(code: str, count: int) -> Files:
    """A file for each document; the documents of `several-clusters` are in a folder each."""
    folder = "clusters/c-§/" if code == "several-clusters" else ""
    return {
        f"{folder}{number:06}.yaml".replace(PLACE, f"{number:05}"): DOCUMENTS[code]
        .replace(PLACE, f"{number:05}")
        .encode()
        for number in range(count)
    }


def misspelt(count: int) -> Files:
    """As many PodTemplates as buffers, each of which misspells the name of one: a similar name is looked for among all."""
    text = _SHAPE + "---\n" + _buffer("podTemplateRef: {name: shaep-§}, replicas: 1")
    return {f"{number:06}.yaml": text.replace(PLACE, f"{number:05}").encode() for number in range(count)}


REPOSITORIES: Mapping[str, Callable[[int], Files]] = {
    **{code: partial(repository, code) for code in DOCUMENTS},
    "not-in-repository, similar names": misspelt,
}
