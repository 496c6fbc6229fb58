"""The `headroom.dev/` annotations that people write: their names and values, and the schedules that they name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from reconciler.manifests.budgets import TIME_ZONE
from reconciler.manifests.documents.document import Inspection, mapping_at
from reconciler.manifests.documents.structure import is_near, near_one, nearest
from reconciler.manifests.local_budgets import check_local_budgets
from reconciler.manifests.metrics_producer import is_time_zone
from reconciler.model import codes
from reconciler.model.buffers import BUFFER_KINDS, ONE_SHOT, PERCENT_OF_HINT, Fulfilment, is_percent_of
from reconciler.model.demand import is_priority
from reconciler.model.errors import Invalid
from reconciler.model.marks import (
    ACTIVE_DURING_ANNOTATION,
    ANNOTATION_PREFIX,
    APPLYSET_PREFIX,
    LEAD_TIME_ANNOTATION,
    ONE_SHOT_ANNOTATION,
    PERCENT_OF_ANNOTATION,
    REPLICAS_FROM_ANNOTATION,
)
from reconciler.model.pods import GROUP_OF_WORKLOAD
from reconciler.model.quantity import ANY_DURATION, format_duration, parse_duration
from reconciler.model.schedules import schedule_ref

_NODE_POOL = "NodePool"
_ANNOTATIONS = ("metadata", "annotations")
_FOLLOWERS = (REPLICAS_FROM_ANNOTATION, ACTIVE_DURING_ANNOTATION, LEAD_TIME_ANNOTATION)


def check_following(inspection: Inspection) -> None:
    """Reports malformed references, and annotations that the spec gives no effect."""
    written = mapping_at(inspection.body, *_ANNOTATIONS)
    for name in _FOLLOWERS:
        known, text = _KNOWN[name.removeprefix(ANNOTATION_PREFIX)], written.get(name)
        if not isinstance(text, str) or inspection.ref.kind not in (known.kinds or ()) or known.judge(text):
            continue  # absent, or already reported
        if name == LEAD_TIME_ANNOTATION:
            if len(written.keys() & set(_FOLLOWERS)) == 1:
                hint = f"add {REPLICAS_FROM_ANNOTATION} or {ACTIVE_DURING_ANNOTATION}, or remove it"
                _no_effect(inspection, name, f"{name} has no effect without a schedule to be ahead of", hint)
        elif schedule_ref(inspection.ref, text) is None:
            hint = f"write the name of a MetricsProducer in the namespace {inspection.ref.namespace}, and nothing else"
            if inspection.ref.kind == _NODE_POOL:
                hint = "write NAMESPACE/NAME of a MetricsProducer; NAME alone is one in the namespace default"
            message = f"{name} has the value {text!r}"
            inspection.report(codes.INVALID_ANNOTATION, (*_ANNOTATIONS, name), message, hint=hint)
    if REPLICAS_FROM_ANNOTATION in written:
        _check_target(inspection)


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


def _no_effect(inspection: Inspection, name: str, message: str, hint: str) -> None:
    inspection.report(codes.ANNOTATION_WITHOUT_EFFECT, (*_ANNOTATIONS, name), message, hint=hint)


_REQUEST = "ProvisioningRequest"
_WITH_PODS = frozenset({"PodTemplate", *GROUP_OF_WORKLOAD})
_Judge = Callable[[str], str]
"""What to write in place of an invalid value; "" for a valid one."""


@dataclass(frozen=True, slots=True)
class _Annotation:
    """kinds: on which it has an effect, named by `words`; None for every kind.

    only_applied: it has an effect only on objects that headroom applies, not on those it only reads.
    """

    judge: _Judge
    kinds: frozenset[str] | None = None
    words: str = ""
    only_applied: bool = False


def _valid_if(is_valid: Callable[[str], bool], hint: str) -> _Judge:
    return lambda value: "" if is_valid(value) else hint


def _one_of(*options: str) -> _Judge:
    return _valid_if(options.__contains__, f"write one of {', '.join(options)}")


def _duration(example: str, *, least: timedelta = timedelta(0), most: timedelta = timedelta.max) -> _Judge:
    def judge(value: str) -> str:
        try:
            duration = parse_duration(value)
        except Invalid as error:
            return f'write a duration such as "{example}"' if error.hint == ANY_DURATION else error.hint
        if least <= duration <= most:
            return ""
        bound = f"at least {format_duration(least)}" if duration < least else f"at most {format_duration(most)}"
        return f'write {bound}, such as "{example}"'

    return judge


def _is_owner(value: str) -> bool:
    """An inventory, or an ApplySet without one by its identity."""
    namespace, _, name = value.partition("/")
    return bool(namespace and name) or value.startswith(APPLYSET_PREFIX)


_ANY = _valid_if(bool, "write a value, or remove the annotation")
_YES_OR_NO = _one_of("true", "false")
_OF_BUFFERS = (BUFFER_KINDS, "buffers")
_SIZED = (BUFFER_KINDS | {_NODE_POOL}, "buffers and NodePools")
_OF_BUDGETS = (frozenset({_NODE_POOL}), "the disruption budgets of NodePools")
_KNOWN: dict[str, _Annotation] = {
    "active-during": _Annotation(_ANY, *_OF_BUFFERS),
    "adopt": _Annotation(
        _valid_if(_is_owner, "write NAMESPACE/NAME of the inventory that it belongs to"), only_applied=True
    ),
    "allow-windows": _Annotation(_ANY, *_OF_BUDGETS),
    "also-declared-by": _Annotation(_ANY),
    "applied-hash": _Annotation(_ANY),
    "drift": _Annotation(_one_of("correct", "report"), only_applied=True),
    "fill-deadline": _Annotation(_duration("15m", least=timedelta(seconds=1)), *_OF_BUFFERS),
    "fulfilment": _Annotation(_one_of(*(fulfilment.value for fulfilment in Fulfilment)), *_OF_BUFFERS),
    "inventory": _Annotation(_ANY),
    "lead-time": _Annotation(_duration("10m", most=timedelta(days=7)), *_SIZED),
    "one-shot": _Annotation(_YES_OR_NO, *_OF_BUFFERS),
    "percent-of": _Annotation(
        _valid_if(is_percent_of, PERCENT_OF_HINT), frozenset({"CapacityBuffer"}), "CapacityBuffers"
    ),
    "priority": _Annotation(
        _valid_if(is_priority, "write an integer, such as 10; higher goes first"),
        BUFFER_KINDS | {_REQUEST},
        "buffers and ProvisioningRequests",
    ),
    "prune": _Annotation(_one_of("disabled", "enabled", "true"), only_applied=True),
    "replicas-from": _Annotation(_ANY, *_SIZED),
    "requestedAt": _Annotation(_ANY),
    "reserve": _Annotation(_YES_OR_NO, frozenset({_REQUEST}), "ProvisioningRequests"),
    "serves-requests": _Annotation(_YES_OR_NO, *_OF_BUFFERS),
    "source": _Annotation(_ANY),
    "ssa": _Annotation(_one_of("Override", "Merge", "IfNotPresent", "Ignore"), only_applied=True),
    "suspend": _Annotation(_YES_OR_NO, only_applied=True),
    "timezone": _Annotation(_valid_if(is_time_zone, "write an IANA name such as Europe/Berlin"), *_OF_BUDGETS),
}
"""By name."""


def check_annotations(inspection: Inspection, *, applied: bool) -> None:
    """Reports unknown names, invalid values, and annotations that have no effect on this kind.

    applied: whether headroom applies objects of this kind, or only reads them.
    """
    for name, value in mapping_at(inspection.body, "metadata", "annotations").items():
        if not isinstance(value, str):
            continue
        path = ("metadata", "annotations", name)
        if not name.startswith(ANNOTATION_PREFIX):
            _check_foreign(inspection, path, name)
            continue
        short_name = name.removeprefix(ANNOTATION_PREFIX)
        annotation = _KNOWN.get(short_name)
        if annotation is None:
            meant = near_one(short_name, _KNOWN)
            inspection.report(
                codes.UNKNOWN_ANNOTATION if meant is None else codes.MISSPELT_ANNOTATION,
                path,
                f"{name} is not an annotation that headroom knows",
                hint=_similar_annotation(name) or "remove it" if meant is None else _did_you_mean(meant),
            )
        elif hint := annotation.judge(value):
            inspection.report(codes.INVALID_ANNOTATION, path, f"{name} has the value {value!r}", hint=hint)
        elif annotation.kinds is not None and inspection.ref.kind not in annotation.kinds:
            _report_kind(inspection, name, annotation)
        elif annotation.only_applied and not applied:
            message = f"{name} has no effect on a {inspection.ref.kind}: headroom reads it, and never writes it"
            _no_effect(inspection, name, message, "remove it")
    _check_labels(inspection)


def check_beside_spec(inspection: Inspection) -> None:
    """Reports annotations that the spec or another annotation rules out. The document's structure is valid."""
    if mapping_at(inspection.body, "metadata", "annotations"):
        _check_fulfilment(inspection)
        check_following(inspection)
        check_local_budgets(inspection)


def _check_foreign(inspection: Inspection, path: tuple[str, ...], name: str) -> None:
    """Reports an annotation that would be headroom's if its prefix were spelled right."""
    domain, slash, short_name = name.partition("/")
    if slash:
        meant = near_one(short_name, _KNOWN) if short_name not in _KNOWN else short_name
        is_slip = is_near(domain, ANNOTATION_PREFIX.rstrip("/"))
    else:
        meant = next((known for known in _KNOWN if is_near(name, ANNOTATION_PREFIX + known)), None)
        is_slip = meant is not None
    if is_slip:
        message = f"{name} is not an annotation that headroom knows"
        hint = f"headroom's annotations begin with {ANNOTATION_PREFIX}" if meant is None else _did_you_mean(meant)
        inspection.report(codes.MISSPELT_ANNOTATION, path, message, hint=hint)


def _did_you_mean(own: str) -> str:
    return f'did you mean "{ANNOTATION_PREFIX}{own}"?'


def _check_labels(inspection: Inspection) -> None:
    """Reports headroom's annotations among the labels, where they have no effect."""
    for name in mapping_at(inspection.body, "metadata", "labels"):
        if name.startswith(ANNOTATION_PREFIX) and name.removeprefix(ANNOTATION_PREFIX) in _KNOWN:
            message, path = f"{name} is an annotation, and has no effect as a label", ("metadata", "labels", name)
            inspection.report(codes.MISSPELT_ANNOTATION, path, message, hint="move it to metadata.annotations")


def _similar_annotation(name: str) -> str:
    """`did you mean "headroom.dev/suspend"?`, or "". The prefix, which all of them share, is not compared."""
    short_name = name.removeprefix(ANNOTATION_PREFIX)
    return nearest(name, [ANNOTATION_PREFIX + each for each in _KNOWN if nearest(short_name, [each])])


def _report_kind(inspection: Inspection, name: str, annotation: _Annotation) -> None:
    kind, hint = inspection.ref.kind, "remove it"
    if kind in _WITH_PODS and annotation.kinds is not None and annotation.kinds & BUFFER_KINDS:
        hint = f"write it on the buffer that is made of this {kind}, or remove it"
    elif kind == "MetricsProducer" and name == TIME_ZONE:
        hint = "remove it; a schedule's zone is spec.schedule.timezone"
    message = f"{name} has no effect on a {kind}: only {annotation.words} use it"
    _no_effect(inspection, name, message, hint)


def _check_fulfilment(inspection: Inspection) -> None:
    """Reports a fulfilment that this kind of buffer or another annotation rules out."""
    annotations = mapping_at(inspection.body, "metadata", "annotations")
    asked = annotations.get(f"{ANNOTATION_PREFIX}fulfilment")
    if asked == Fulfilment.NATIVE and inspection.ref.kind == "Buffer":
        _no_effect(
            inspection,
            f"{ANNOTATION_PREFIX}fulfilment",
            "no autoscaler serves the kind Buffer, so headroom keeps it",
            "declare a CapacityBuffer, or remove the annotation",
        )
    if inspection.ref.kind not in BUFFER_KINDS:
        return
    if PERCENT_OF_ANNOTATION in annotations and asked == Fulfilment.NATIVE:
        _no_effect(
            inspection,
            PERCENT_OF_ANNOTATION,
            f"{PERCENT_OF_ANNOTATION} is for buffers that headroom keeps: the autoscaler that this one is left to does not know it",
            "remove one of the two annotations",
        )
    # An autoscaler may know the field, but not the annotation.
    words = f"is for buffers that headroom keeps with placeholders, and this one asks for {asked}"
    if annotations.get(ONE_SHOT_ANNOTATION) == "true" and asked in {Fulfilment.NATIVE, Fulfilment.BALLOON}:
        message = f"{ONE_SHOT_ANNOTATION} {words}"
        _no_effect(inspection, ONE_SHOT_ANNOTATION, message, "remove one of the two annotations")
    elif asked == Fulfilment.BALLOON and inspection.get("spec", "refillStrategy") == ONE_SHOT:
        message, hint = (
            f"refillStrategy: {ONE_SHOT} {words}",
            f"write fulfilment: {Fulfilment.PLACEHOLDER}, or remove the field",
        )
        inspection.report(codes.ANNOTATION_WITHOUT_EFFECT, ("spec", "refillStrategy"), message, hint=hint)
