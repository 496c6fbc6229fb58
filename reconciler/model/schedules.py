"""Capacity schedules (Karpenter design "Scheduled Capacity") as typed values."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.refs import ObjectRef, SourcePosition

NO_PLACES = frozenset({"Factory", "localtime", "posixrules"})
"""Files in the zone database of some machines that name no place and differ between machines."""


@dataclass(frozen=True, slots=True)
class TimePattern:
    """Calendar fields as sorted numbers. None: absent; then minutes and hours are 0, and all others match. Weekday 0 is Sunday."""

    minutes: tuple[int, ...] | None = None
    hours: tuple[int, ...] | None = None
    days: tuple[int, ...] | None = None
    months: tuple[int, ...] | None = None
    weekdays: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Behavior:
    """`replicas` hold from each match of `start` until the next match of `end`; the highest priority wins."""

    replicas: int
    start: TimePattern
    end: TimePattern
    priority: int = 0
    position: SourcePosition | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """`MetricsProducer.spec.schedule`; timezone: an IANA name."""

    ref: ObjectRef
    default_replicas: int
    behaviors: tuple[Behavior, ...] = ()
    timezone: str = "UTC"
    position: SourcePosition | None = None
