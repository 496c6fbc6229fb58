"""Rules for the annotations with which a buffer or NodePool follows a schedule."""

from __future__ import annotations

from datetime import timedelta

from reconciler.manifests import codes
from reconciler.manifests.inspection import Inspection, mapping_at
from reconciler.model.errors import Invalid
from reconciler.model.marks import ACTIVE_DURING_ANNOTATION, LEAD_TIME_ANNOTATION, REPLICAS_FROM_ANNOTATION
from reconciler.model.quantity import parse_duration
from reconciler.model.schedules import schedule_ref

LONGEST_LEAD = timedelta(days=7)
_BUFFERS = frozenset({"Buffer", "CapacityBuffer"})
_NODE_POOL = "NodePool"
_ANNOTATIONS = ("metadata", "annotations")
_FOLLOWERS = {
    REPLICAS_FROM_ANNOTATION: (_BUFFERS | {_NODE_POOL}, "buffers and NodePools"),
    ACTIVE_DURING_ANNOTATION: (_BUFFERS, "buffers"),
    LEAD_TIME_ANNOTATION: (_BUFFERS | {_NODE_POOL}, "buffers and NodePools"),
}


def check_following(inspection: Inspection) -> None:
    """Reports malformed references, and annotations that have no effect on this kind."""
    written = mapping_at(inspection.body, *_ANNOTATIONS)
    for name in (REPLICAS_FROM_ANNOTATION, ACTIVE_DURING_ANNOTATION, LEAD_TIME_ANNOTATION):
        if not isinstance(written.get(name), str):
            continue  # absent, or already reported as a value of the wrong type
        kinds, words = _FOLLOWERS[name]
        if inspection.ref.kind not in kinds:
            _no_effect(
                inspection, name, f"{name} has no effect on a {inspection.ref.kind}: only {words} use it", "remove it"
            )
        elif name == LEAD_TIME_ANNOTATION:
            _check_lead(inspection, str(written[name]), follows=len(_FOLLOWERS.keys() & written.keys()) > 1)
        elif schedule_ref(inspection.ref, str(written[name])) is None:
            _bad_name(inspection, name, str(written[name]))
    if REPLICAS_FROM_ANNOTATION in written:
        _check_target(inspection)


def _check_lead(inspection: Inspection, text: str, *, follows: bool) -> None:
    path = (*_ANNOTATIONS, LEAD_TIME_ANNOTATION)
    try:
        too_long = parse_duration(text) > LONGEST_LEAD
    except Invalid:
        return  # already reported with the values of all annotations
    if too_long:
        message = f"{LEAD_TIME_ANNOTATION} has the value {text!r}, more than a week"
        inspection.report(
            codes.INVALID_ANNOTATION, path, message, hint='write at most "168h"; minutes are usual: "10m"'
        )
    if not follows:
        _no_effect(
            inspection,
            LEAD_TIME_ANNOTATION,
            f"{LEAD_TIME_ANNOTATION} has no effect without a schedule to be ahead of",
            f"add {REPLICAS_FROM_ANNOTATION} or {ACTIVE_DURING_ANNOTATION}, or remove it",
        )


def _check_target(inspection: Inspection) -> None:
    spec = mapping_at(inspection.body, "spec")
    if "nodeClass" in mapping_at(spec, "capacity"):
        _no_effect(
            inspection,
            REPLICAS_FROM_ANNOTATION,
            f"{REPLICAS_FROM_ANNOTATION} has no effect on a buffer by nodeClass, whose size is a total, not a number of chunks",
            f"use {ACTIVE_DURING_ANNOTATION}, or capacity.pods",
        )
    if inspection.ref.kind == _NODE_POOL and "template" in spec and "replicas" not in spec:
        inspection.report(
            codes.STATIC_BY_SCHEDULE,
            (*_ANNOTATIONS, REPLICAS_FROM_ANNOTATION),
            f"{REPLICAS_FROM_ANNOTATION} makes this pool static: one that is dynamic in the cluster cannot become so",
            hint="write spec.replicas: 0 to say that it is static (the schedule's value counts), or remove the annotation",
        )


def _bad_name(inspection: Inspection, name: str, text: str) -> None:
    if inspection.ref.kind == _NODE_POOL:
        hint = "write NAMESPACE/NAME of a MetricsProducer; NAME alone is one in the namespace default"
    else:
        hint = f"write the name of a MetricsProducer in the namespace {inspection.ref.namespace}, and nothing else"
    inspection.report(codes.INVALID_ANNOTATION, (*_ANNOTATIONS, name), f"{name} has the value {text!r}", hint=hint)


def _no_effect(inspection: Inspection, name: str, message: str, hint: str) -> None:
    inspection.report(codes.ANNOTATION_WITHOUT_EFFECT, (*_ANNOTATIONS, name), message, hint=hint)
