"""For each finding code a repository of any number of documents, each of which is found to have that problem.

A check that compares every document with every other one is noticed in such a repository: `python -m tests.perf.finding_growth` measures
CPU, and a quick test counts what is executed. A code without a repository stands in `WITHOUT`, with the reason.
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
    "template-not-rendered": _buffer(f"{_TEMPLATE}, replicas: 1").replace("web-§", '"{{ .Release.Name }}-§"'),
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

WITHOUT: Mapping[str, str] = {
    "file-too-large": "one finding for each file, whose content is not read",
    "left-out": "one finding for each file, whose content is not read",
    "not-utf8": "one finding for each file, whose content is not read",
    "not-read": "a defect of headroom, which no document is known to show",
    "old-zone-data": "one finding for a repository, if the data on this machine is old",
    "too-many-budgets": "each takes 0.1 s to compile for a year, whatever stands beside it: tests.perf.local_budgets measures that",
    "other-kinds": "one finding for a repository",
    "too-many-documents": "one finding for each file and for the repository",
    "immutable-field": "needs the object in the cluster: see PLANNED",
    "field-not-served": "needs a cluster whose definitions lack a field: it is asked once for each set of fields",
    "reference-lost": "needs a cluster with the buffer: each document is compared with one object",
    "not-served": "needs a cluster that lacks the kind: see WITHOUT_PLAN",
}
"""Codes of documents for which no repository is generated, and why."""


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

# What only a pass finds: the documents are planned against an embedded cluster, which may have objects of its own.

_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-§, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web-§}}
  template:
    metadata: {labels: {app: web-§}}
    spec: {containers: [{name: a, image: pause, resources: {requests: {cpu: 100m}}}]}
"""
_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: worker-§, namespace: shop%s}
spec: {containers: [{name: a, image: pause}]}
"""
_NODE = """\
apiVersion: v1
kind: Node
metadata: {name: node-§, labels: {kubernetes.io/hostname: %s}}
status: {allocatable: {cpu: "1", memory: 1Gi, pods: "10"}, conditions: [{type: Ready, status: "True"}]}
"""
_CONSUMED = "autoscaling.x-k8s.io/consume-provisioning-request: train"
_DRIFTED = _pool('{nodes: "1"}', more=_annotated("headroom.dev/drift", "report"))

PLANNED: Mapping[str, tuple[str, str]] = {
    "buffer-too-large": (_buffer(f"{_WORKLOAD}, percentage: 1000000000"), _DEPLOYMENT),
    "dialects-differ": (_buffer(f"{_WORKLOAD}, percentage: 10, limits: {{cpu: 4}}"), _DEPLOYMENT.replace("replicas: 3", "replicas: 0")),
    "half-consumption": ("", _POD % f", annotations: {{{_CONSUMED}}}"),
    "immutable-field": (_request(), _request().replace("count: 2", "count: 3")),
    "limits-match-nothing": (_buffer(f"{_TEMPLATE}, limits: {{example.com/gpu: 4}}") + "---\n" + _SHAPE, ""),
    "percentage-ignored": (_buffer(f"{_TEMPLATE}, replicas: 3, percentage: 10") + "---\n" + _SHAPE, ""),
    "pool-not-there": ('apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: pool-§}\nspec: {disruption: {budgets: [{nodes: "1"}]}}\n', ""),
    "request-not-found": (
        "",
        _POD % f", annotations: {{{_CONSUMED}-§, autoscaling.x-k8s.io/provisioning-class-name: {_CHECK}}}",
    ),
    "schedule-not-found": (_buffer(_WORKLOAD, _annotated("headroom.dev/replicas-from", "hours-§")), ""),
    "static-pool-change": (_pool(spec="replicas: 3"), _pool('{nodes: "1"}')),
    "target-in-wrong-group": (_buffer("scalableRef: {apiGroup: batch, kind: Deployment, name: web-§}, replicas: 3"), ""),
    "target-not-found": (_buffer(f"{_WORKLOAD}, replicas: 3"), ""),
    "shared-hostname": ("", _NODE % "the-same"),
}  # fmt: skip
"""By code: a document of the repository, and one of the cluster."""

WITHOUT_PLAN: Mapping[str, str] = {
    "buffer-leaves-no-room": "one finding for a buffer on nodes of a NodePool at its limit; tests.perf.placement measures placement at limits",
    "chunk-too-large": "found by manifests",
    "buffer-without-reference": "found by manifests",
    "template-and-scalable": "found by manifests",
    "unknown-strategy": "found by manifests",
    "clock-skew": "one finding for a cluster",
    "clock-unknown": "one finding for a cluster",
    "drift-waits": "one finding for a NodePool with held nodes that have drifted",
    "inventory-is-new": "one finding for a cluster",
    "inventory-of-another-path": "one finding for a repository",
    "pods-before-answer": "needs a check that was answered: judged once for each request",
    "owned-elsewhere": "needs objects of another inventory: judged one by one in plan/objects/objects.py",
    "drifted": "the embedded cluster keeps no field managers of what was never applied",
    "placement-rejected": "a defect of headroom, which no repository is known to show",
    "pods-may-wait": "a few findings for a buffer, from a bounded number of orders: tests.perf.surge_time measures them",
    "pool-becomes-partial": "needs NodePools that were applied: judged one by one in plan/objects/objects.py",
    "pool-not-pruned": "needs NodePools that were applied and then removed: judged one by one in plan/objects/prune.py",
    "pool-over-limit": "found by `diff` only, pool by pool",
    "served-twice": "needs an autoscaler's status on each buffer",
    "set-aside": "a defect of headroom: tests/unit/stages/test_set_aside.py plants it",
    "size-not-known": "needs workloads whose size the cluster does not tell",
    "static-pool-blocked": "needs static NodePools with nodes whose pods block them",
    "status-of-another": "needs an autoscaler's status on each buffer",
    "target-in-another-group": "needs a node class of a NodePool in another group",
    "target-without-pods": "needs a custom kind with a scale subresource, which the embedded cluster lacks",
    "template-failed": "one finding for each template, of which there are few",
    "template-not-used": "one finding for each file that is no template's name",
    "unread-file": "one finding for a snapshot",
    "not-served": "the embedded cluster serves every kind",
}
"""Codes of passes for which no cluster is generated, and why."""
