"""The `headroom.dev/` annotations that people write: their names and values."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.manifests import codes
from reconciler.manifests.following import check_following
from reconciler.manifests.inspection import Inspection, mapping_at
from reconciler.manifests.local_budgets import check_local_budgets
from reconciler.manifests.metrics_producer import is_time_zone
from reconciler.manifests.structure import nearest
from reconciler.model.buffers import Fulfilment
from reconciler.model.durations import ANY_DURATION, parse_duration
from reconciler.model.errors import Invalid
from reconciler.model.precedence import is_priority

PREFIX = "headroom.dev/"


def _one_of(*options: str) -> tuple[Callable[[str], bool], str]:
    return (lambda value: value in options), f"write one of {', '.join(options)}"


def _duration_hint(value: str) -> str:
    try:
        parse_duration(value)
    except Invalid as error:
        return "" if error.hint == ANY_DURATION else error.hint
    return ""


def _is_duration(value: str) -> bool:
    try:
        parse_duration(value)
    except Invalid:
        return False
    return True


_ANY: tuple[Callable[[str], bool], str] = (bool, "write a value, or remove the annotation")
_KNOWN: dict[str, tuple[Callable[[str], bool], str]] = {
    "active-during": _ANY,
    "allow-windows": _ANY,
    "applied-hash": _ANY,
    "drift": _one_of("correct", "report"),
    "fulfilment": _one_of(*(fulfilment.value for fulfilment in Fulfilment)),
    "lead-time": (_is_duration, 'write a duration such as "10m"'),
    "one-shot": _one_of("true", "false"),
    "priority": (is_priority, "write an integer, such as 10; the higher goes first"),
    "prune": _one_of("disabled", "enabled", "true"),
    "replicas-from": _ANY,
    "requestedAt": _ANY,
    "source": _ANY,
    "ssa": _one_of("Override", "Merge", "IfNotPresent", "Ignore"),
    "suspend": _one_of("true", "false"),
    "timezone": (is_time_zone, "write an IANA name such as Europe/Berlin"),
}
"""By name: whether a value is valid, and the hint where it is not."""


def check_annotations(inspection: Inspection) -> None:
    """Reports names that headroom does not know and values that it cannot use."""
    for name, value in mapping_at(inspection.body, "metadata", "annotations").items():
        if not name.startswith(PREFIX) or not isinstance(value, str):
            continue
        path = ("metadata", "annotations", name)
        known = _KNOWN.get(name.removeprefix(PREFIX))
        if known is None:
            inspection.report(
                codes.UNKNOWN_ANNOTATION,
                path,
                f"{name} is not an annotation that headroom knows",
                hint=nearest(name, [PREFIX + each for each in _KNOWN]) or "remove it",
            )
        elif not known[0](value):
            hint = _duration_hint(value) if known[0] is _is_duration else ""
            inspection.report(codes.INVALID_ANNOTATION, path, f"{name} has the value {value!r}", hint=hint or known[1])
    check_following(inspection)
    check_local_budgets(inspection)
