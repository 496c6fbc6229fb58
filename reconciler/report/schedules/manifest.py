"""A schedule as the YAML of its MetricsProducer, with lists and names as in the Karpenter design "Scheduled Capacity".

Written from the parsed schedule, so that the page's small parser can read it whatever YAML features the file uses. The
file's comments are lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from reconciler.model.refs import DEFAULT_NAMESPACE
from reconciler.model.schedules import Schedule, TimePattern

_WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def schedule_document(schedule: Schedule) -> str:
    lines = [
        "apiVersion: autoscaling.karpenter.sh/v1alpha1",
        "kind: MetricsProducer",
        "metadata:",
        f"  name: {_text(schedule.ref.name)}",
    ]
    if schedule.ref.namespace != DEFAULT_NAMESPACE:
        lines.append(f"  namespace: {_text(schedule.ref.namespace)}")
    lines += [
        "spec:",
        "  schedule:",
        f"    timezone: {schedule.timezone}",
        f"    defaultReplicas: {schedule.default_replicas}",
    ]
    if not schedule.behaviors:
        lines.append("    behaviors: []")
    else:
        lines.append("    behaviors:")
    for behavior in schedule.behaviors:
        lines.append(f"      - replicas: {behavior.replicas}")
        if behavior.priority:
            lines.append(f"        priority: {behavior.priority}")
        lines += _pattern("start", behavior.start)
        lines += _pattern("end", behavior.end)
    return "\n".join(lines) + "\n"


def _text(name: str) -> str:
    """Quotes a name that YAML would read as a number or a keyword."""
    plain = name.replace("-", "").replace(".", "")
    return name if plain.isalpha() and plain.lower() not in {"true", "false", "null"} else json.dumps(name)


def _pattern(name: str, pattern: TimePattern) -> Iterator[str]:
    fields = {
        "weekdays": pattern.weekdays and [_WEEKDAYS[number] for number in _monday_first(pattern.weekdays)],
        "days": pattern.days,
        "months": pattern.months and [_MONTHS[number - 1] for number in pattern.months],
        "hours": pattern.hours,
        "minutes": pattern.minutes,
    }
    written = {field: values for field, values in fields.items() if values}
    if not written:
        yield f"        {name}: {{}}"
        return
    yield f"        {name}:"
    for field, values in written.items():
        words = ",".join(str(value) for value in values)
        # Some parsers would read 1,2 as one number.
        yield f"          {field}: {words if len(values) == 1 or field in {'weekdays', 'months'} else json.dumps(words)}"


def _monday_first(weekdays: tuple[int, ...]) -> list[int]:
    return sorted(weekdays, key=lambda number: (number - 1) % 7)
