"""Capacity schedules (seed 004) as typed values. Read by manifests, evaluated by timetable."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.refs import ObjectRef, SourcePosition

NO_PLACES = frozenset({"Factory", "localtime", "posixrules"})
"""Files that stand among the zones of some machines and name no place; no two machines need to mean the same by them."""


@dataclass(frozen=True, slots=True)
class TimePattern:
    """Lists of calendar fields; None: absent (minutes and hours then mean 0, the others match all). weekdays: 0 = Sunday."""

    minutes: tuple[int, ...] | None = None
    hours: tuple[int, ...] | None = None
    days: tuple[int, ...] | None = None
    months: tuple[int, ...] | None = None
    weekdays: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Behavior:
    """One window of a schedule: so many replicas from start to end. Where windows overlap, priority decides."""

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
