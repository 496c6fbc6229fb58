"""What each schedule is worth at the very moment of a scrape. Registered with metrics by wiring; Prometheus' client collects.

The name and labels are those of the Karpenter design "Scheduled Capacity", so that a HorizontalAutoscaler's or KEDA's query finds what the proposal promised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from reconciler.model.changes import ScheduleOutcome
from reconciler.model.schedules import Schedule
from reconciler.ports import Clock
from reconciler.timetable.capacity_schedule import state_at

_Known = tuple[datetime, ScheduleOutcome]


class ScheduledCapacity(Collector):
    """schedules: those in force, asked for at every scrape. A value is worked out again only once it has ended, or when the
    clock stands before the moment for which it was worked out."""

    def __init__(self, schedules: Callable[[], tuple[Schedule, ...]], clock: Clock) -> None:
        self._schedules = schedules
        self._clock = clock
        self._known: dict[Schedule, _Known] = {}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        now = self._clock.now()
        self._known = {schedule: self._at(schedule, now) for schedule in self._schedules()}
        family = GaugeMetricFamily(
            "karpenter_scheduled_capacity",
            "The value of a MetricsProducer's schedule now",
            labels=("name", "namespace"),
        )
        for _, outcome in self._known.values():
            family.add_metric((outcome.name, outcome.namespace), outcome.current_value)
        yield family

    def _at(self, schedule: Schedule, now: datetime) -> _Known:
        known = self._known.get(schedule)
        if known is not None:
            since, outcome = known
            if since <= now and (outcome.next_value_time is None or now < outcome.next_value_time):
                return known
        return now, state_at(schedule, now)
