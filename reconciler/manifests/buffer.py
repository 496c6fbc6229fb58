"""Buffer (autoscaling.x-k8s.io/v1alpha1), the kind of the "Buffers API" proposal: spellings, rules, reading.

The proposal has two spellings: that of its Go types (`capacity.replicas.percent`) and that of its examples
(`replicaBasedBufferSpec.replicasCountPercentage`, `keep-empty`). Both are read; what is applied has the Go types' spelling.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from reconciler.manifests.capacity_buffer import (
    GROUP,
    check_deadline,
    check_kind,
    check_size,
    refill_of,
    target_group,
)
from reconciler.manifests.documents.document import Document, Inspection, Marks, mapping_at
from reconciler.manifests.kind import Kind, Origin, conditions_of, created_of, labels_of
from reconciler.manifests.pods.pod_shape import converted, selector_of
from reconciler.manifests.pods.pod_spec_wire import LabelSelectorWire
from reconciler.manifests.pods.workload import check_pod_spec, virtual_shape
from reconciler.model import codes
from reconciler.model.buffers import ACTIVE_CAPACITY, Buffer, NodeClassCapacity, Recreation
from reconciler.model.errors import Invalid
from reconciler.model.quantity import CPU, MEMORY, Resources
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.view import Manifest

_CAPACITY: tuple[str, ...] = ("spec", "capacity")
_STRATEGIES = {"keep-empty": Recreation.KEEP_EMPTY, "keep-minimum": Recreation.KEEP_MINIMUM}
_NODE_CLASSES = frozenset({"NodePool", "CustomComputeClass", "ComputeClass"})
_NODE_CLASS = "NodeClass"
"""The suffix of the kinds of Karpenter's providers: EC2NodeClass, AKSNodeClass, KWOKNodeClass."""
_OLD_REPLICAS: tuple[str, ...] = ("spec", "replicaBasedBufferSpec")
_REPLICAS: tuple[str, ...] = (*_CAPACITY, "replicas")
_RENAMED = {
    ("spec", "nodeClassBufferSpec"): (*_CAPACITY, "nodeClass"),
    ("spec", "podBasedBufferSpec"): (*_CAPACITY, "pods"),
    _OLD_REPLICAS: _REPLICAS,
}
_OLD_FIELDS = frozenset(path[-1] for path in _RENAMED)
_RENAMED_REPLICAS = {
    "replicasCount": ("exactly",),
    "replicasCountPercentage": ("percent", "percent"),
    "minCount": ("percent", "minCount"),
    "maxCount": ("percent", "maxCount"),
}
"""The fields below the number of replicas in its old spelling."""


def correct(inspection: Inspection) -> None:
    spec = mapping_at(inspection.body, "spec")
    if inspection.written_path(_REPLICAS) == _OLD_REPLICAS:
        _correct_replicas(inspection)
    strategy = spec.get("recreationStrategy")
    if isinstance(strategy, str) and strategy in _STRATEGIES:
        spec["recreationStrategy"] = _STRATEGIES[strategy].value
        inspection.report(
            codes.OLD_SPELLING,
            ("spec", "recreationStrategy"),
            f"{strategy} is read as {_STRATEGIES[strategy].value}",
            hint=f"write {_STRATEGIES[strategy].value}",
        )


def _corrected(ref: ObjectRef, manifest: Manifest) -> dict[str, Any]:
    """The spec of a live object in the new spelling."""
    nowhere = Document("", manifest, SourcePosition("", 1), Marks())
    inspection = Inspection(nowhere, ref, {"spec": deepcopy(manifest["spec"])})
    for old, new in _RENAMED.items():
        inspection.rename(old, new)
    correct(inspection)
    spec: dict[str, Any] = inspection.body["spec"]
    return spec


def _correct_replicas(inspection: Inspection) -> None:
    written = inspection.get(*_REPLICAS)
    if not isinstance(written, dict):
        return
    replicas: dict[str, Any] = {}
    for key, value in written.items():
        *above, last = _RENAMED_REPLICAS.get(key, (key,))
        if above:
            inspection.moved((*_REPLICAS, *above), _OLD_REPLICAS)
        inspection.moved((*_REPLICAS, *above, last), (*_OLD_REPLICAS, key))
        (replicas.setdefault(above[0], {}) if above else replicas)[last] = value
    inspection.body["spec"]["capacity"]["replicas"] = replicas


def check(inspection: Inspection) -> None:
    spec = mapping_at(inspection.body, "spec")
    check_deadline(inspection)
    version = mapping_at(spec, "targetRef").get("apiVersion")
    check_kind(inspection, ("spec", "targetRef"), version and str(version).rpartition("/")[0])
    for path in (("spec", "replicas"), (*_CAPACITY, "replicas", "exactly"), (*_CAPACITY, "pods", "replicaNum")):
        check_size(inspection, *path)
    capacity = mapping_at(spec, "capacity")
    if "replicas" in capacity:
        _check_percent(inspection, mapping_at(capacity, "replicas", "percent"))
    if "nodeClass" in capacity:
        _check_node_class(inspection, capacity["nodeClass"])
    if "pods" in capacity:
        check_pod_spec(inspection, capacity["pods"]["podSpec"], (*_CAPACITY, "pods", "podSpec"))


def _check_percent(inspection: Inspection, percent: Manifest) -> None:
    low, high = percent.get("minCount"), percent.get("maxCount")
    if low is not None and high is not None and low > high:
        inspection.report(
            codes.INVALID_VALUE,
            (*_CAPACITY, "replicas", "percent", "minCount"),
            f"minCount {low} is more than maxCount {high}",
            hint=f"write a minCount of at most {high}",
        )


def _check_node_class(inspection: Inspection, node_class: Manifest) -> None:
    path = (*_CAPACITY, "nodeClass")
    try:
        read_capacity = _node_class(node_class)
    except Invalid as error:
        inspection.report(codes.INVALID_VALUE, path, error.message, hint=error.hint)
        return
    chunk = read_capacity.chunk
    if chunk is None:
        return
    # The Buffers API proposal: a buffer whose per-chunk requests exceed its total should be denied admission.
    for name in (CPU, MEMORY):
        if chunk.get(name) > read_capacity.total.get(name):
            inspection.report(
                codes.CHUNK_TOO_LARGE,
                (*path, "perChunkResources", name),
                f"one chunk asks for more {name} than the buffer has in all",
                hint="make the chunk smaller or the total larger",
            )
    if not chunk.get(CPU) and not chunk.get(MEMORY):
        inspection.report(
            codes.INVALID_VALUE,
            (*path, "perChunkResources"),
            "a chunk must ask for some cpu or memory",
            hint="write perChunkResources: {cpu: 1, memory: 2Gi}",
        )


def _node_class(node_class: Manifest) -> NodeClassCapacity:
    chunk = node_class.get("perChunkResources")
    return NodeClassCapacity(
        total=Resources.parse({CPU: node_class["totalCpu"], MEMORY: node_class["totalMem"]}),
        chunk=Resources.parse(chunk) if chunk is not None else None,
        node_selector=labels_of(node_class, "nodeSelector"),
    )


def read(ref: ObjectRef, manifest: Manifest, origin: Origin) -> Buffer:
    """Reads either spelling, since a cluster may have a definition made from the proposal's examples."""
    spec = mapping_at(manifest, "spec")
    if spec.keys() & _OLD_FIELDS or spec.get("recreationStrategy") in _STRATEGIES:
        spec = _corrected(ref, manifest)
    capacity = mapping_at(spec, "capacity")
    replicas = mapping_at(capacity, "replicas")
    percent = mapping_at(replicas, "percent")
    pods = mapping_at(capacity, "pods")
    node_class = capacity.get("nodeClass")
    selector = spec.get("podSelector")
    declared = pods.get("replicaNum") if pods else replicas.get("exactly")
    refill, deadline = refill_of(manifest)
    return Buffer(
        ref=ref,
        position=origin.position,
        annotations=labels_of(manifest, "metadata", "annotations"),
        strategy=spec.get("type") or ACTIVE_CAPACITY,
        target=_target(ref, mapping_at(spec, "targetRef")),
        pod_shape=virtual_shape({"spec": pods["podSpec"]}, ref.namespace) if pods else None,
        replicas=spec.get("replicas", declared),
        percentage=percent.get("percent"),
        minimum_count=percent.get("minCount"),
        maximum_count=percent.get("maxCount"),
        node_class=_node_class(node_class) if node_class is not None else None,
        recreation=Recreation(spec.get("recreationStrategy") or Recreation.KEEP_EMPTY),
        pod_selector=None
        if selector is None
        else selector_of(converted(selector, LabelSelectorWire, "spec.podSelector")),
        refill=refill,
        fill_deadline=deadline,
        created=created_of(manifest),
        status_conditions=conditions_of(manifest),
    )


def _target(ref: ObjectRef, target: Manifest) -> ObjectRef | None:
    if not target:
        return None
    version = target.get("apiVersion") or ""
    group = version.rpartition("/")[0] if version else target.get("apiGroup")
    kind = target.get("kind", "")
    is_node_class = kind in _NODE_CLASSES or kind.endswith(_NODE_CLASS)
    namespace = "" if is_node_class else ref.namespace
    return ObjectRef(target_group(kind, group), kind, namespace, target.get("name", ""))


BUFFER = Kind(
    group=GROUP,
    name="Buffer",
    versions=("v1alpha1",),
    slot="buffers",
    schema="buffer",
    renamed=_RENAMED,
    correct=correct,
    check=check,
    read=read,
)
