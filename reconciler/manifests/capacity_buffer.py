"""CapacityBuffer (autoscaling.x-k8s.io v1alpha1 and v1beta1): rules and reading.

The rules are those of the CustomResourceDefinition that Karpenter and Cluster Autoscaler ship. A buffer that is admitted but
never has an effect is reported too.
"""

from __future__ import annotations

from datetime import timedelta

from reconciler.manifests.documents.document import Inspection, mapping_at
from reconciler.manifests.documents.structure import near_one
from reconciler.manifests.kind import Kind, Origin, conditions_of, created_of, labels_of
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
)
from reconciler.model.pods import GROUP_OF_WORKLOAD
from reconciler.model.quantity import amount_of, format_duration, parse_duration
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest

GROUP = "autoscaling.x-k8s.io"
CORE = "core"
REFILL, DEADLINE = "refillStrategy", "fillDeadlineSeconds"
PROPOSED_FIELDS = frozenset({f"spec.{REFILL}", f"spec.{DEADLINE}"})
"""Fields that the definitions of both autoscalers do not have yet. headroom applies annotations in their place where that is so."""


def check(inspection: Inspection) -> None:
    check_kind(inspection, ("spec", "scalableRef"), inspection.get("spec", "scalableRef", "apiGroup"))
    if inspection.get("spec", "limits") is None:
        check_size(inspection, "spec", "replicas")
    check_deadline(inspection)


def check_kind(inspection: Inspection, path: tuple[str, ...], group: object) -> None:
    """Reports a target whose kind is a slip of one that the group has."""
    kinds = [name for name, owner in GROUP_OF_WORKLOAD.items() if owner == group]
    kind = inspection.get(*path, "kind")
    meant = near_one(kind, kinds) if isinstance(kind, str) and kind not in kinds else None
    if meant is not None:
        hint = f'did you mean "{meant}"?'
        inspection.report(
            codes.UNKNOWN_KIND, (*path, "kind"), f"{group or 'the core API'} has no kind {kind}", hint=hint
        )


def check_size(inspection: Inspection, *path: str) -> None:
    """Reports a number of chunks that no cluster can have."""
    count = inspection.get(*path)
    if isinstance(count, int) and count > MOST_CHUNKS:
        inspection.report(codes.BUFFER_TOO_LARGE, path, f"{count:,} {TOO_MANY_CHUNKS}", hint=TOO_MANY_HINT)


def check_deadline(inspection: Inspection) -> None:
    """Reports a deadline without an effect."""
    if refill_of(inspection.body)[0] == ONE_SHOT:
        return
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
    kind = scalable.get("kind", "")
    target = ObjectRef(target_group(kind, scalable.get("apiGroup")), kind, ref.namespace, scalable.get("name", ""))
    return Buffer(
        ref=ref,
        position=origin.position,
        annotations=labels_of(manifest, "metadata", "annotations"),
        strategy=spec.get("provisioningStrategy") or ACTIVE_CAPACITY,
        target=target if scalable else None,
        pod_template=template,
        replicas=spec.get("replicas"),
        percentage=spec.get("percentage"),
        limits=amounts_of(spec.get("limits"), "spec.limits"),
        refill=refill,
        fill_deadline=deadline,
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
    if group == CORE and not GROUP_OF_WORKLOAD.get(kind):
        return ""
    return group or GROUP_OF_WORKLOAD.get(kind, "")


CAPACITY_BUFFER = Kind(
    group=GROUP,
    name="CapacityBuffer",
    versions=("v1beta1", "v1alpha1"),
    slot="buffers",
    schema="capacity_buffer",
    check=check,
    read=read,
)
