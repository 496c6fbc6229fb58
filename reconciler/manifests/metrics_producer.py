"""MetricsProducer (autoscaling.karpenter.sh/v1alpha1), scheduled capacity: rules, reading, and the calendar fields.

The Karpenter design "Scheduled Capacity" avoids the syntax of crontabs, so it allows lists only. A range, a step or a wildcard is
refused, with a hint that shows the equivalent list.

Each behavior is read by itself. Overlaps and behaviors that never end need the calendar (`schedule_findings`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.manifests.documents.document import Inspection, mapping_at
from reconciler.manifests.documents.structure import nearest
from reconciler.manifests.kind import Kind, Origin
from reconciler.model import codes
from reconciler.model.errors import Invalid
from reconciler.model.findings import Code
from reconciler.model.refs import ObjectRef, Path
from reconciler.model.schedules import MONTHS, WEEKDAYS, Behavior, Schedule, TimePattern
from reconciler.model.view import Manifest

_BOUNDS: dict[str, tuple[int, int]] = {
    "minutes": (0, 59),
    "hours": (0, 23),
    "days": (1, 31),
    "months": (1, 12),
    "weekdays": (0, 6),
}
_NAMES: dict[str, tuple[str, ...]] = {"months": MONTHS, "weekdays": WEEKDAYS}
_OFFSETS = {"months": 1, "weekdays": 0}
_RANGE = re.compile(r"(\*|[A-Za-z0-9]{1,9}(?:\s*-\s*[A-Za-z0-9]{1,9})?)(?:/([0-9]{1,4}))?")
_OFFSET = re.compile(r"[+-][0-9]")
"""Of what is no time zone. UTC is not meant by UTC+1."""
_MOST_CHARACTERS = 500
"""The longest field. The numbers of all minutes take less."""
FIELDS = tuple(_BOUNDS)


@dataclass(frozen=True, slots=True)
class BadValue:
    """A value of a calendar field that cannot be read, with the code, message and hint of its finding."""

    message: str
    hint: str
    code: Code = codes.INVALID_VALUE


def read_field(name: str, value: Any) -> tuple[tuple[int, ...], tuple[BadValue, ...]]:
    """A field's values as sorted numbers, and those that cannot be read; each once. Weekday 0 is Sunday, month 1 January."""
    items = value if isinstance(value, list) else [value]
    if len(items) + sum(len(item) for item in items if isinstance(item, str)) > _MOST_CHARACTERS:
        return (), (BadValue(f"{name} has more than {_MOST_CHARACTERS} characters", _example(name)),)
    if not items:
        return (), (BadValue(f"{name} is an empty list", "leave it out, or list at least one value"),)
    values = list(dict.fromkeys(each for item in items for each in _values(name, item)))
    numbers = [each for each in values if isinstance(each, int)]
    return tuple(sorted(numbers)), tuple(each for each in values if isinstance(each, BadValue))


def _values(name: str, item: object) -> Iterator[int | BadValue]:
    if isinstance(item, bool) or not isinstance(item, int | str):
        yield BadValue(f"{name} must be numbers or text, not {_kind_of(item)}", _example(name), codes.WRONG_TYPE)
    else:
        for word in str(item).split(","):
            yield _number(name, word.strip())


def _kind_of(item: object) -> str:
    """A short name for a value that may be large."""
    return {dict: "a mapping", list: "a list", type(None): "null"}.get(type(item)) or repr(item)


def _number(name: str, word: str) -> int | BadValue:
    low, high = _BOUNDS[name]
    number = _plain_number(name, word)
    if number is None:
        return _not_a_value(name, word)
    if not low <= number <= high:
        hint = "write 0 for Sunday" if (name, number) == ("weekdays", 7) else _example(name)
        return BadValue(f"{name} go from {low} to {high}, not {number}", hint)
    return number


def _plain_number(name: str, word: str) -> int | None:
    if word.isascii() and word.isdigit():
        return int(word) if len(word) <= 4 else 10**4  # noqa: PLR2004 - whatever is longer is out of bounds all the same
    folded = word[:1].upper() + word[1:].lower()
    names = _NAMES.get(name, ())
    return names.index(folded) + _OFFSETS[name] if folded in names else None


def _not_a_value(name: str, word: str) -> BadValue:
    match = _RANGE.fullmatch(word)
    written = _expanded(name, match[1], match[2]) if match is not None and re.search(r"[*/-]", word) else None
    if written is not None:
        everything = word == "*" and name not in {"minutes", "hours"}
        hint = "leave it out to match every one" if everything else f'write "{written}"'
        return BadValue(f"{name} takes lists only, no ranges, steps or wildcards: {word!r}", hint, codes.LIST_ONLY)
    if not word:
        return BadValue(f"{name} has an empty value", "remove the comma too many, or leave the field out")
    names = _NAMES.get(name, ())
    short = word[:3].capitalize()
    hint = f"write {short}" if short in names else nearest(word, names) or _example(name)
    return BadValue(f"{word!r} is not one of the {name}", hint)


def _expanded(name: str, part: str, step: str | None) -> str | None:
    """The list that a cron range or step stands for; None where it is no valid one either."""
    low, high = _BOUNDS[name]
    if part == "*":
        first, last = low, high
    else:
        ends = [_plain_number(name, end.strip()) for end in part.split("-")]
        if None in ends:
            return None
        first = ends[0] or 0
        last = (ends[-1] or 0) if len(ends) > 1 else high
    if not (low <= first <= high and low <= last <= high) or step == "0":
        return None
    # Cron has no range from Friday to Monday, but its meaning is clear.
    numbers = [*range(first, last + 1)] if first <= last else [*range(first, high + 1), *range(low, last + 1)]
    chosen = numbers[:: int(step)] if step else numbers
    names = _NAMES.get(name)
    return ",".join(names[number - _OFFSETS[name]] if names else str(number) for number in chosen)


def _example(name: str) -> str:
    low, high = _BOUNDS[name]
    names = _NAMES.get(name)
    return (
        f'write it like "{names[1]},{names[2]}", or {low} to {high}' if names else f"write numbers from {low} to {high}"
    )


GROUP = "autoscaling.karpenter.sh"
DEFAULT_ZONE = "UTC"
_SCHEDULE: Path = ("spec", "schedule")


def check(inspection: Inspection) -> None:
    """Runs even on documents that violate the schema, and skips what the schema has reported."""
    schedule = mapping_at(inspection.body, "spec", "schedule")
    zone = schedule.get("timezone", DEFAULT_ZONE)
    if isinstance(zone, str) and zone and not is_time_zone(zone):
        inspection.report(
            codes.UNKNOWN_TIME_ZONE, (*_SCHEDULE, "timezone"), f"{zone!r} is not a time zone", hint=time_zone_hint(zone)
        )
    behaviors = schedule.get("behaviors")
    for index, behavior in enumerate(behaviors if isinstance(behaviors, list) else []):
        for end in ("start", "end"):
            _check_pattern(inspection, mapping_at(behavior, end), (*_SCHEDULE, "behaviors", index, end))


def _check_pattern(inspection: Inspection, pattern: Mapping[str, Any], path: Path) -> None:
    for name in FIELDS:
        for bad in read_field(name, pattern[name])[1] if name in pattern else ():
            inspection.report(bad.code, (*path, name), bad.message, hint=bad.hint)


def _pattern(pattern: Mapping[str, Any]) -> TimePattern:
    """The typed pattern. Raises `Invalid` for the first value that cannot be read."""
    fields = {}
    for name in FIELDS:
        if name in pattern:
            fields[name], bad = read_field(name, pattern[name])
            if bad:
                raise Invalid(bad[0].message, hint=bad[0].hint)
    return TimePattern(**fields)


def is_time_zone(name: str) -> bool:
    """Whether the time zone data has an IANA zone of this name."""
    from reconciler.zone_data import zone_names

    return name in zone_names()


def time_zone_hint(name: str) -> str:
    """What to write instead of an unknown zone: a similar name from the time zone data."""
    from reconciler.zone_data import zone_data, zone_names

    names = sorted(zone_names())
    meant = "" if _OFFSET.search(name) else nearest(name, names) or _zone_of_city(name, names)
    hint = meant or "write an IANA name such as Europe/Berlin"
    data = f"time zone data is {zone_data()}"
    return f"{hint} The {data}" if hint.endswith("?") else f"{hint}; the {data}"


def _zone_of_city(name: str, zones: Iterable[str]) -> str:
    """The zone that ends in this name, as Europe/Berlin does in `berlin`."""
    city = name.replace(" ", "_").lower()
    matching = [zone for zone in zones if zone.rpartition("/")[2].lower() == city]
    return f'did you mean "{min(matching, key=lambda zone: (len(zone), zone))}"?' if matching else ""


def read(ref: ObjectRef, manifest: Manifest, origin: Origin) -> Schedule:
    schedule = mapping_at(manifest, "spec", "schedule")
    zone = schedule.get("timezone", DEFAULT_ZONE)
    if not is_time_zone(zone):  # files have been checked, but an object in the cluster may have any text
        raise Invalid(f"{zone!r} is not a time zone", hint=time_zone_hint(zone))
    behaviors = tuple(
        Behavior(
            replicas=behavior["replicas"],
            start=_pattern(behavior["start"]),
            end=_pattern(behavior["end"]),
            priority=behavior.get("priority", 0),
            position=origin.place((*_SCHEDULE, "behaviors", index)),
        )
        for index, behavior in enumerate(schedule.get("behaviors", []))
    )
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
