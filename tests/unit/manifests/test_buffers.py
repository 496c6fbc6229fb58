"""CapacityBuffers and Buffers: every spelling, every rule."""

from __future__ import annotations

import pytest

from reconciler.model.buffers import Buffer, Recreation
from reconciler.model.findings import Severity
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector, Operator, Requirement, Toleration
from tests.unit.manifests.reading import check, codes_of, declared, findings, found, only

CAPACITY_BUFFER = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: web, namespace: shop, annotations: {headroom.dev/fulfilment: native}}
spec:
"""
BUFFER = """\
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata: {name: web, namespace: shop}
spec:
"""
TARGET = "  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n"
POOL = "  targetRef: {apiVersion: karpenter.sh/v1, kind: NodePool, name: general}\n"


def buffer(text: str) -> Buffer:
    (read,) = declared(text).buffers
    return read


def test_a_capacity_buffer_over_a_workload() -> None:
    spec = "  scalableRef: {apiGroup: apps, kind: Deployment, name: web}\n  replicas: 2\n  percentage: 20\n"
    read = buffer(CAPACITY_BUFFER + spec)
    assert read.ref == ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")
    assert read.target == ObjectRef("apps", "Deployment", "shop", "web")
    assert (read.replicas, read.percentage, read.limits, read.pod_template) == (2, 20, None, None)
    assert read.annotation("headroom.dev/fulfilment") == "native"
    assert read.strategy == "buffer.x-k8s.io/active-capacity"


def test_a_capacity_buffer_over_a_template_keeps_limits_of_zero() -> None:
    read = buffer(CAPACITY_BUFFER + "  podTemplateRef: {name: small}\n  limits: {memory: 1Gi, cpu: 0}\n")
    assert read.pod_template == "small"
    assert read.limits == (("cpu", 0), ("memory", 2**30))


def test_well_known_kinds_need_no_group() -> None:
    read = buffer(CAPACITY_BUFFER + "  scalableRef: {kind: StatefulSet, name: db}\n  replicas: 1\n")
    assert read.target == ObjectRef("apps", "StatefulSet", "shop", "db")


def test_no_namespace_is_the_default_one() -> None:
    text = CAPACITY_BUFFER.replace(", namespace: shop", "") + "  podTemplateRef: {name: t}\n  replicas: 1\n"
    assert buffer(text).ref.namespace == "default"


def test_limits_may_cut_any_number_and_kinds_of_others_may_have_replicas() -> None:
    head = CAPACITY_BUFFER.removesuffix("spec:\n")
    limited = "spec: {podTemplateRef: {name: t}, replicas: 2147483647, limits: {cpu: 4}}\n"
    rollout = "spec: {scalableRef: {apiGroup: argoproj.io, kind: Rollout, name: d}, replicas: 1}\n"
    assert codes_of(head + limited) == codes_of(head + rollout) == []


def test_both_references_are_an_error_and_nothing_is_applied() -> None:
    text = CAPACITY_BUFFER + "  podTemplateRef: {name: t}\n  scalableRef: {kind: Deployment, name: d}\n  replicas: 1\n"
    assert only(text).code == "template-and-scalable"
    read = declared(text)
    assert (read.buffers, read.manifests) == ((), ())
    assert read.broken == {ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")}


def test_the_first_example_of_the_buffers_proposal() -> None:
    text = """\
apiversion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata:
  name: my-deployment-buffer
  namespace: my-namespace
spec:
  targetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: my-deployment
  type: buffer.x-k8s.io/active-capacity
  recreationStrategy: keep-empty
  replicaBasedBufferSpec:
    replicasCountPercentage: 10
    minCount: 1
"""
    read = buffer(text)
    assert (read.percentage, read.minimum_count, read.maximum_count) == (10, 1, None)
    assert read.recreation is Recreation.KEEP_EMPTY
    assert [(finding.code, finding.path) for finding in findings(text)] == [
        ("old-spelling", "apiversion"),
        ("old-spelling", "spec.recreationStrategy"),
        ("old-spelling", "spec.replicaBasedBufferSpec"),
    ]
    (manifest,) = declared(text).manifests
    assert manifest.manifest["apiVersion"] == "autoscaling.x-k8s.io/v1alpha1"
    assert manifest.manifest["spec"]["recreationStrategy"] == "KeepEmpty"
    assert manifest.manifest["spec"]["capacity"] == {"replicas": {"percent": {"percent": 10, "minCount": 1}}}


def test_the_second_example_of_the_buffers_proposal() -> None:
    text = (
        BUFFER
        + "  targetRef: {apiVersion: apps/v1, kind: CustomComputeClass, name: c}\n"
        + "  recreationStrategy: keep-minimum\n  nodeClassBufferSpec: {totalCpu: 40, totalMem: 5120Mi}\n"
    )
    read = buffer(text)
    assert read.node_class is not None
    assert read.node_class.total == Resources.parse({"cpu": 40, "memory": "5120Mi"})
    assert (read.node_class.chunk, read.recreation) == (None, Recreation.KEEP_MINIMUM)


def test_a_mistake_in_an_old_spelling_is_told_where_it_stands() -> None:
    text = BUFFER + TARGET + "  replicaBasedBufferSpec:\n    replicasCountPercentage: ten\n"
    wrong = next(finding for finding in findings(text) if finding.code == "wrong-type")
    assert wrong.path == "spec.replicaBasedBufferSpec.replicasCountPercentage"
    assert wrong.position is not None
    assert wrong.position.line == 7


def test_a_buffer_of_so_many_replicas() -> None:
    read = buffer(BUFFER + TARGET + "  capacity: {replicas: {exactly: 3}}\n")
    assert (read.replicas, read.percentage, read.target) == (3, None, ObjectRef("apps", "Deployment", "shop", "web"))


def test_a_buffer_of_pods_has_its_own_shape() -> None:
    spec = """\
  capacity:
    pods:
      replicaNum: 2
      podSpec:
        tolerations: [{operator: Exists}]
        volumes: [{name: d, persistentVolumeClaim: {claimName: disk}}]
        containers: [{name: c, resources: {limits: {cpu: 500m}}}]
"""
    read = buffer(BUFFER + spec)
    assert read.replicas == 2
    assert read.pod_shape is not None
    assert read.pod_shape.requests.quantities() == {"cpu": "500m", "pods": "1"}
    assert (read.pod_shape.tolerations, read.pod_shape.volume_claims) == ((Toleration(operator="Exists"),), ("disk",))
    assert codes_of(BUFFER + spec) == []


def test_a_buffer_on_a_node_pool_with_chunks_and_a_selector() -> None:
    capacity = "nodeClass: {totalCpu: 8, totalMem: 16Gi, perChunkResources: {cpu: 2}, nodeSelector: {zone: a}}"
    read = buffer(BUFFER + POOL + f"  capacity: {{{capacity}}}\n  podSelector: {{matchLabels: {{app: web}}}}\n")
    assert read.target == ObjectRef("karpenter.sh", "NodePool", "", "general")
    assert read.node_class is not None
    assert read.node_class.chunk == Resources.parse({"cpu": 2})
    assert read.node_class.node_selector == (("zone", "a"),)
    assert read.pod_selector == LabelSelector((("app", "web"),))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{matchExpressions: [{key: app, operator: In, values: [web, api]}]}",
         LabelSelector((), (Requirement("app", Operator.IN, ("web", "api")),))),
        ("{matchExpressions: [{key: old, operator: DoesNotExist}]}",
         LabelSelector((), (Requirement("old", Operator.DOES_NOT_EXIST),))),
        ("{}", LabelSelector()),
    ],
)  # fmt: skip
def test_the_pods_of_a_dedicated_buffer_are_selected_as_anywhere(written: str, expected: LabelSelector) -> None:
    capacity = "nodeClass: {totalCpu: 8, totalMem: 16Gi}"
    text = BUFFER + POOL + f"  capacity: {{{capacity}}}\n  podSelector: {written}\n"
    assert buffer(text).pod_selector == expected
    assert "unknown-field" not in codes_of(text), "nothing is dropped"


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("{matchLabel: {app: web}}", "spec.podSelector.matchLabel"),
        ("{matchExpressions: [{key: app, operator: In, value: [web]}]}", "spec.podSelector.matchExpressions[0].value"),
        ("{matchExpressions: [{key: app, operator: In}]}", "spec.podSelector.matchExpressions[0]"),
        ("{matchExpressions: [{key: app, operator: Exists, values: [x]}]}", "spec.podSelector.matchExpressions[0]"),
    ],
)
def test_a_selector_that_would_select_other_pods_is_an_error(written: str, path: str) -> None:
    """Without the misspelt part, all pods of the namespace would fill the buffer."""
    text = BUFFER + POOL + f"  capacity: {{nodeClass: {{totalCpu: 8, totalMem: 16Gi}}}}\n  podSelector: {written}\n"
    assert ("invalid-value", path, Severity.ERROR) in [(item.code, item.path, item.severity) for item in findings(text)]
    assert declared(text).buffers == ()


@pytest.mark.parametrize(
    ("group", "kind", "expected"),
    [
        ("core", "ReplicationController", ""),
        ("", "ReplicationController", ""),
        ("core", "Deployment", "core"),
        ("", "Deployment", "apps"),
        ("apps.kruise.io", "StatefulSet", "apps.kruise.io"),
    ],
)
def test_the_group_of_a_target(group: str, kind: str, expected: str) -> None:
    spec = f"  scalableRef: {{apiGroup: '{group}', kind: {kind}, name: w}}\n  replicas: 1\n"
    target = buffer(CAPACITY_BUFFER + spec).target
    assert target is not None
    assert target.group == expected


@pytest.mark.parametrize("kind", ["EC2NodeClass", "ComputeClass", "NodePool"])
def test_node_classes_have_no_namespace(kind: str) -> None:
    target = f"  targetRef: {{apiVersion: example.com/v1, kind: {kind}, name: x}}\n"
    read = buffer(BUFFER + target + "  capacity: {nodeClass: {totalCpu: 8, totalMem: 16Gi}}\n")
    assert read.target == ObjectRef("example.com", kind, "", "x")


NOTHING = CAPACITY_BUFFER + "  podTemplateRef: {name: t}\n"
ON_POOL = BUFFER + POOL
OF_TARGET = BUFFER + TARGET
SHAPE = """\
apiVersion: v1
kind: PodTemplate
metadata: {name: t, namespace: shop}
template: {spec: {containers: [{name: c, resources: {requests: {REQUEST}}}]}}
"""


@found(
    ("no reference", CAPACITY_BUFFER + "  replicas: 2\n", "buffer-without-reference", "spec", ""),
    ("no size", CAPACITY_BUFFER + "  scalableRef: {apiGroup: apps, kind: Deployment, name: d}\n", "buffer-without-size", "spec", ""),
    ("a limit below zero", NOTHING + "  limits: {memory: -5Gi}\n", "negative-limit", "spec.limits.memory", ""),
    ("a limit that is a number below zero", NOTHING + "  limits: {cpu: -1}\n", "negative-limit", "spec.limits.cpu", ""),
    ("another's strategy", NOTHING + "  replicas: 1\n  provisioningStrategy: example.com/x\n", "unknown-strategy",
     "spec.provisioningStrategy", ""),
    ("a deadline of what is refilled", NOTHING + "  replicas: 1\n  fillDeadlineSeconds: 900\n", "deadline-ignored",
     "spec.fillDeadlineSeconds", ""),
    ("more chunks than any cluster has", NOTHING + "  replicas: 150001\n", "buffer-too-large", "spec.replicas", "write the number"),
    ("a misspelt kind", CAPACITY_BUFFER + "  scalableRef: {apiGroup: apps, kind: Deploymnet, name: d}\n  replicas: 1\n",
     "unknown-kind", "spec.scalableRef.kind", 'did you mean "Deployment"?'),
    ("millions of CPU", SHAPE.replace("REQUEST", "cpu: 750M"), "unlikely-quantity", "", "more than any machine has"),
    ("a thousandth of a byte", SHAPE.replace("REQUEST", "memory: 1m"), "unlikely-quantity", "", "too little for a process"),
    ("no capacity", OF_TARGET + "  capacity: {}\n", "one-capacity", "spec.capacity", ""),
    ("two capacities", OF_TARGET + "  capacity: {replicas: {exactly: 1}, nodeClass: {totalCpu: 1, totalMem: 1}}\n", "one-capacity",
     "spec.capacity", ""),
    ("no number of replicas", OF_TARGET + "  capacity: {replicas: {}}\n", "one-capacity", "spec.capacity.replicas", ""),
    ("replicas of nothing", BUFFER + "  capacity: {replicas: {exactly: 1}}\n", "capacity-target-mismatch",
     "spec.capacity.replicas", ""),
    ("replicas of a pool", ON_POOL + "  capacity: {replicas: {exactly: 1}}\n", "capacity-target-mismatch",
     "spec.capacity.replicas", ""),
    ("a total on a workload", OF_TARGET + "  capacity: {nodeClass: {totalCpu: 1, totalMem: 1Gi}}\n", "capacity-target-mismatch",
     "spec.capacity.nodeClass", ""),
    ("a chunk above the total", ON_POOL + "  capacity: {nodeClass: {totalCpu: 1, totalMem: 1Gi, perChunkResources: {cpu: 2}}}\n",
     "chunk-too-large", "spec.capacity.nodeClass.perChunkResources.cpu", ""),
    ("a chunk of nothing", ON_POOL + "  capacity: {nodeClass: {totalCpu: 1, totalMem: 1Gi, perChunkResources: {}}}\n",
     "invalid-value", "spec.capacity.nodeClass.perChunkResources", ""),
    ("a least number above the greatest", OF_TARGET + "  capacity: {replicas: {percent: {percent: 10, minCount: 3, maxCount: 2}}}\n",
     "invalid-value", "spec.capacity.replicas.percent.minCount", ""),
    ("a pod of no containers", BUFFER + "  capacity: {pods: {replicaNum: 1, podSpec: {containers: []}}}\n", "invalid-value",
     "spec.capacity.pods.podSpec.containers", ""),
    ("another strategy", OF_TARGET + "  capacity: {replicas: {exactly: 1}}\n  recreationStrategy: Keep\n", "invalid-value",
     "spec.recreationStrategy", ""),
)  # fmt: skip
def test_what_a_buffer_cannot_be_or_does_not_do(text: str, code: str, path: str, words: str) -> None:
    check(text, code, path, words)
