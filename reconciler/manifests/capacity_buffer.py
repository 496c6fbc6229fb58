"""CapacityBuffer (autoscaling.x-k8s.io v1alpha1 and v1beta1): rules and reading.

The rules are those of the CustomResourceDefinition that Karpenter and Cluster Autoscaler ship. A buffer that is admitted but
never has an effect is reported too.
"""

from __future__ import annotations

from datetime import timedelta

from reconciler.manifests.documents.document import Inspection, mapping_at
from reconciler.manifests.documents.structure import near_one
from reconciler.manifests.kind import Kind, Origin, conditions_of, created_of, generation_of, labels_of
from reconciler.model import codes
from reconciler.model.buffers import (
    ACTIVE_CAPACITY,
    MOST_CHUNKS,
    ONE_SHOT,
    RECREATE,
    TOO_MANY_CHUNKS,
    TOO_MANY_HINT,
    Buffer,
)
from reconciler.model.errors import Invalid
from reconciler.model.marks import (
    FILL_DEADLINE_ANNOTATION,
    ONE_SHOT_ANNOTATION,
    PERCENT_OF_ANNOTATION,
    REPLICAS_FROM_ANNOTATION,
)
from reconciler.model.quantity import amount_of, format_duration, parse_duration
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest

GROUP = "autoscaling.x-k8s.io"
CORE = "core"
REFILL, DEADLINE = "refillStrategy", "fillDeadlineSeconds"
PROPOSED_FIELDS = frozenset({f"spec.{REFILL}", f"spec.{DEADLINE}"})
"""Fields that the definitions of both autoscalers do not have yet. headroom applies annotations in their place where that is so."""
_GROUPS_OF_KINDS = {
    "Deployment": "apps",
    "StatefulSet": "apps",
    "ReplicaSet": "apps",
    "Job": "batch",
    "CronJob": "batch",
}


def check(inspection: Inspection) -> None:
    spec = mapping_at(inspection.body, "spec")
    template, scalable = spec.get("podTemplateRef"), spec.get("scalableRef")
    annotations = mapping_at(inspection.body, "metadata", "annotations")
    sized_by_schedule, is_share = REPLICAS_FROM_ANNOTATION in annotations, PERCENT_OF_ANNOTATION in annotations
    if template is not None and scalable is not None:
        # x-kubernetes-validations of the CRD: !(has(self.podTemplateRef) && has(self.scalableRef))
        inspection.report(
            codes.TEMPLATE_AND_SCALABLE,
            ("spec",),
            "spec has both podTemplateRef and scalableRef",
            hint="keep scalableRef to follow a workload, or podTemplateRef for a shape of its own",
        )
    if template is not None and "replicas" not in spec and "limits" not in spec and not sized_by_schedule:
        # x-kubernetes-validations of the CRD: !has(self.podTemplateRef) || has(self.replicas) || has(self.limits)
        inspection.report(
            codes.TEMPLATE_WITHOUT_SIZE,
            ("spec",),
            "spec has podTemplateRef but neither replicas nor limits",
            hint="add replicas: 0, or the least that there must be: the API server refuses a percentage alone"
            if is_share
            else "add replicas: 3, or limits; a percentage needs a workload to be a percentage of",
        )
    if template is None and scalable is None:
        inspection.report(
            codes.BUFFER_WITHOUT_REFERENCE,
            ("spec",),
            "spec has neither podTemplateRef nor scalableRef, so the buffer never becomes ready",
            hint="add scalableRef to follow a workload, or podTemplateRef for a shape of its own",
        )
    if scalable is not None and not spec.keys() & {"replicas", "percentage", "limits"} and not sized_by_schedule:
        inspection.report(
            codes.BUFFER_WITHOUT_SIZE,
            ("spec",),
            "spec has none of replicas, percentage and limits: Karpenter keeps an empty buffer, Cluster Autoscaler"
            " reports it as not ready",
            hint="add replicas: 3, or percentage: 10",
        )
    check_kind(inspection, ("spec", "scalableRef"), mapping_at(spec, "scalableRef").get("apiGroup"))
    if is_share:
        _check_share(inspection, spec)
    check_limits(inspection, "the buffer stays empty", "replicas: 0 for a buffer that is to be empty")
    if "limits" not in spec:
        check_size(inspection, "spec", "replicas")
    check_strategy(inspection, "provisioningStrategy")
    check_refill(inspection)


def _check_share(inspection: Inspection, spec: Manifest) -> None:
    """Reports a share of running pods without a chunk to count it in, or without a percentage."""
    path = ("metadata", "annotations", PERCENT_OF_ANNOTATION)
    if "podTemplateRef" not in spec:
        message = f"{PERCENT_OF_ANNOTATION} needs a podTemplateRef, whose pod is the chunk that the share is counted in"
        hint = "write podTemplateRef in place of scalableRef; a percentage of one workload needs no annotation"
        inspection.report(codes.INVALID_ANNOTATION, path, message, hint=hint)
    elif "percentage" not in spec:
        message = f"{PERCENT_OF_ANNOTATION} needs spec.percentage, which says how large the share is"
        inspection.report(codes.INVALID_ANNOTATION, path, message, hint="add percentage: 10, or remove the annotation")


def check_kind(inspection: Inspection, path: tuple[str, ...], group: object) -> None:
    """Reports a target whose kind is a slip of one that the group has."""
    kinds = [name for name, owner in _GROUPS_OF_KINDS.items() if owner == group]
    kind = inspection.get(*path, "kind")
    meant = near_one(kind, kinds) if isinstance(kind, str) and kind not in kinds else None
    if meant is not None:
        hint = f'did you mean "{meant}"?'
        inspection.report(codes.UNKNOWN_KIND, (*path, "kind"), f"{group} has no kind {kind}", hint=hint)


def check_size(inspection: Inspection, *path: str) -> None:
    """Reports a number of chunks that no cluster can have."""
    count = inspection.get(*path)
    if isinstance(count, int) and count > MOST_CHUNKS:
        inspection.report(codes.BUFFER_TOO_LARGE, path, f"{count:,} {TOO_MANY_CHUNKS}", hint=TOO_MANY_HINT)


def check_limits(inspection: Inspection, effect: str, otherwise: str) -> None:
    """The definitions admit limits below zero, and no controller says what becomes of them. otherwise: what to write instead."""
    for name, quantity in mapping_at(inspection.body, "spec", "limits").items():
        try:
            negative = amount_of(name, quantity) < 0
        except Invalid:
            continue  # told by its structure
        if negative:
            inspection.report(
                codes.NEGATIVE_LIMIT,
                ("spec", "limits", name),
                f"the limit {name} {quantity} is below zero, so {effect}",
                hint=f"write a limit above zero, or {otherwise}",
            )


def check_strategy(inspection: Inspection, key: str) -> None:
    """Reports a strategy at `spec.KEY` that headroom does not support. Absent and empty mean active capacity."""
    strategy = inspection.get("spec", key)
    if strategy and strategy != ACTIVE_CAPACITY:
        inspection.report(
            codes.UNKNOWN_STRATEGY,
            ("spec", key),
            f"strategy {strategy} is not supported: the buffer is left alone",
            hint=f"remove the field, or write {ACTIVE_CAPACITY}",
        )


def check_refill(inspection: Inspection) -> None:
    """Reports a refill strategy that headroom does not support, and a deadline without an effect."""
    spec, annotations = mapping_at(inspection.body, "spec"), mapping_at(inspection.body, "metadata", "annotations")
    strategy = spec.get(REFILL)
    if strategy not in {None, RECREATE, ONE_SHOT}:
        inspection.report(
            codes.UNKNOWN_STRATEGY,
            ("spec", REFILL),
            f"the refill strategy {strategy} is not supported: the buffer is left alone",
            hint=f"write {RECREATE} beside limits, or {ONE_SHOT} for a buffer that is filled once",
        )
    elif strategy != ONE_SHOT and annotations.get(ONE_SHOT_ANNOTATION) != "true":
        for path in (("spec", DEADLINE), ("metadata", "annotations", FILL_DEADLINE_ANNOTATION)):
            if inspection.get(*path) is not None:
                message = f"{path[-1]} is for buffers that are filled once, and this one is refilled: it has no effect"
                hint = f"write {REFILL}: {ONE_SHOT} beside it, or remove it"
                inspection.report(codes.DEADLINE_IGNORED, path, message, hint=hint)


def refill_of(manifest: Manifest) -> tuple[str, timedelta | None]:
    """The refill strategy and the deadline for the first fill, from the fields or else from headroom's annotations. Raises `Invalid`."""
    spec, annotations = mapping_at(manifest, "spec"), mapping_at(manifest, "metadata", "annotations")
    is_marked = annotations.get(ONE_SHOT_ANNOTATION) == "true"
    seconds, written = spec.get(DEADLINE), annotations.get(FILL_DEADLINE_ANNOTATION)
    deadline = None if written is None else parse_duration(str(written))
    return spec.get(REFILL) or (ONE_SHOT if is_marked else RECREATE), (
        timedelta(seconds=seconds) if isinstance(seconds, int) else deadline
    )


def with_annotations(manifest: Manifest) -> Manifest:
    """The document as a cluster takes it whose definition lacks the proposed fields: annotations say the same."""
    spec = mapping_at(manifest, "spec")
    refill, deadline = refill_of(manifest)
    said = {ONE_SHOT_ANNOTATION: "true"} if refill == ONE_SHOT else {}
    if deadline is not None:
        said[FILL_DEADLINE_ANNOTATION] = format_duration(deadline)
    metadata = mapping_at(manifest, "metadata")
    annotations = {**mapping_at(metadata, "annotations"), **said}
    return {
        **manifest,
        "metadata": {**metadata, **({"annotations": annotations} if annotations else {})},
        "spec": {name: value for name, value in spec.items() if name not in {REFILL, DEADLINE}},
    }


def read(ref: ObjectRef, manifest: Manifest, origin: Origin) -> Buffer:
    spec = mapping_at(manifest, "spec")
    refill, deadline = refill_of(manifest)
    template = mapping_at(spec, "podTemplateRef").get("name")
    scalable = mapping_at(spec, "scalableRef")
    return Buffer(
        ref=ref,
        position=origin.position,
        annotations=labels_of(manifest, "metadata", "annotations"),
        strategy=spec.get("provisioningStrategy") or ACTIVE_CAPACITY,
        target=_target(ref, scalable) if scalable else None,
        pod_template=template,
        replicas=spec.get("replicas"),
        percentage=spec.get("percentage"),
        limits=amounts_of(spec.get("limits"), "spec.limits"),
        refill=refill,
        fill_deadline=deadline,
        generation=generation_of(manifest),
        created=created_of(manifest),
        status_conditions=conditions_of(manifest),
    )


def amounts_of(quantities: Manifest | None, place: str) -> tuple[tuple[str, int], ...] | None:
    """A sorted resource list. Zeroes are kept, since they are limits too; None stays None. Raises `Invalid`."""
    if quantities is None:
        return None
    amounts: list[tuple[str, int]] = []
    for name, quantity in sorted(quantities.items()):
        try:
            amounts.append((name, amount_of(name, quantity)))
        except Invalid as error:
            raise Invalid(f"{place}.{name}: {error.message}", hint=error.hint) from error
    return tuple(amounts)


def target_group(kind: str, group: str | None) -> str:
    """The API group of a target, which people leave out for the well-known kinds.

    Cluster Autoscaler calls the core group `core`; in the API its name is empty.
    """
    if group == CORE and kind not in _GROUPS_OF_KINDS:
        return ""
    return group or _GROUPS_OF_KINDS.get(kind, "")


def _target(ref: ObjectRef, scalable: Manifest) -> ObjectRef:
    kind = scalable.get("kind", "")
    return ObjectRef(target_group(kind, scalable.get("apiGroup")), kind, ref.namespace, scalable.get("name", ""))


CAPACITY_BUFFER = Kind(
    group=GROUP,
    name="CapacityBuffer",
    versions=("v1beta1", "v1alpha1"),
    slot="buffers",
    schema="capacity_buffer",
    check=check,
    read=read,
)
