"""MetricsProducer (autoscaling.karpenter.sh/v1alpha1), scheduled capacity: rules and reading.

Here each behavior is read by itself. Overlaps and behaviors that never end need the calendar (`schedule_findings`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from reconciler.manifests import codes
from reconciler.manifests.document import Path
from reconciler.manifests.inspection import Inspection, mapping_at
from reconciler.manifests.kind import Kind, Origin
from reconciler.manifests.structure import nearest
from reconciler.manifests.time_pattern import FIELDS, BadField, bad_values, pattern_of
from reconciler.model.errors import Invalid
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import NO_PLACES, Behavior, Schedule
from reconciler.model.view import Manifest

GROUP = "autoscaling.karpenter.sh"
DEFAULT_ZONE = "UTC"
_SCHEDULE: Path = ("spec", "schedule")


def check(inspection: Inspection) -> None:
    """Runs even on documents that violate the schema, and skips what the schema has reported."""
    schedule = mapping_at(inspection.body, "spec", "schedule")
    zone = schedule.get("timezone", DEFAULT_ZONE)
    if isinstance(zone, str) and zone and not is_time_zone(zone):
        inspection.report(
            codes.UNKNOWN_TIME_ZONE,
            (*_SCHEDULE, "timezone"),
            f"{zone!r} is not a time zone",
            hint=time_zone_hint(zone),
        )
    behaviors = schedule.get("behaviors")
    for index, behavior in enumerate(behaviors if isinstance(behaviors, list) else []):
        for end in ("start", "end"):
            _check_pattern(inspection, mapping_at(behavior, end), (*_SCHEDULE, "behaviors", index, end))


def _check_pattern(inspection: Inspection, pattern: Mapping[str, Any], path: Path) -> None:
    for name in FIELDS:
        for error in bad_values(name, pattern[name]) if name in pattern else ():
            inspection.report(error.code, (*path, name), error.message, hint=error.hint)


_COPIES = ("posix/", "right/")
"""Folders in which some machines have a second copy of every zone, without and with leap seconds."""


@lru_cache(maxsize=1024)
def is_time_zone(name: str) -> bool:
    """Whether the time zone data has an IANA zone of this name."""
    from reconciler.zone_data import time_zone

    if name in NO_PLACES or name.startswith(_COPIES):
        return False
    try:
        time_zone(name)
    except Invalid:
        return False
    return True


def time_zone_hint(name: str) -> str:
    """What to write instead of an unknown zone: a similar name from the time zone data."""
    from reconciler.zone_data import zone_data, zone_names

    names = sorted(zone_names() - NO_PLACES)
    hint = nearest(name, names) or _zone_of_city(name, names) or "write an IANA name such as Europe/Berlin"
    data = f"time zone data is {zone_data()}"
    return f"{hint} The {data}" if hint.endswith("?") else f"{hint}; the {data}"


def _zone_of_city(name: str, zones: Iterable[str]) -> str:
    """The zone that ends in this name, as Europe/Berlin does in `berlin`."""
    city = name.replace(" ", "_").lower()
    found = [zone for zone in zones if zone.rpartition("/")[2].lower() == city]
    return f'did you mean "{min(found, key=lambda zone: (len(zone), zone))}"?' if found else ""


def read(ref: ObjectRef, manifest: Manifest, origin: Origin) -> Schedule:
    schedule = mapping_at(manifest, "spec", "schedule")
    zone = schedule.get("timezone", DEFAULT_ZONE)
    if not is_time_zone(zone):  # files have been checked, but an object in the cluster may have any text
        raise Invalid(f"{zone!r} is not a time zone", hint=time_zone_hint(zone))
    try:
        behaviors = tuple(
            Behavior(
                replicas=behavior["replicas"],
                start=pattern_of(behavior["start"]),
                end=pattern_of(behavior["end"]),
                priority=behavior.get("priority", 0),
                position=origin.place((*_SCHEDULE, "behaviors", index)),
            )
            for index, behavior in enumerate(schedule.get("behaviors", []))
        )
    except BadField as error:
        raise Invalid(error.message, hint=error.hint) from error
    return Schedule(
        ref=ref,
        default_replicas=schedule["defaultReplicas"],
        behaviors=behaviors,
        timezone=zone,
        position=origin.position,
    )


METRICS_PRODUCER = Kind(
    group=GROUP,
    name="MetricsProducer",
    versions=("v1alpha1",),
    slot="schedules",
    schema="metrics_producer",
    check=check,
    checks_anything=True,
    read=read,
)
