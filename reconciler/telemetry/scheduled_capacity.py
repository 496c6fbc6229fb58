"""The value of each schedule at the moment of a scrape. Wiring registers it with the metrics; Prometheus' client collects it.

The name and labels are those of the Karpenter design "Scheduled Capacity", so that queries of a HorizontalAutoscaler or KEDA work as
the proposal says.
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
    """schedules: returns those in force, called at every scrape. A value is computed again only once it has ended, or if the clock was
    set back to before its computation."""

    def __init__(self, schedules: Callable[[], tuple[Schedule, ...]], clock: Clock) -> None:
        self._schedules = schedules
        self._clock = clock
        self._known: dict[Schedule, _Known] = {}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        now = self._clock.now()
        known = {schedule: self._at(schedule, now) for schedule in self._schedules()}
        self._known = {schedule: found for schedule, found in known.items() if found is not None}
        family = GaugeMetricFamily(
            "karpenter_scheduled_capacity",
            "The value of a MetricsProducer's schedule now",
            labels=("name", "namespace"),
        )
        for _, outcome in self._known.values():
            family.add_metric((outcome.name, outcome.namespace), outcome.current_value)
        yield family

    def _at(self, schedule: Schedule, now: datetime) -> _Known | None:
        """None where headroom fails on this schedule, of which passes tell: all other metrics are served."""
        known = self._known.get(schedule)
        if known is not None:
            since, outcome = known
            if since <= now and (outcome.next_value_time is None or now < outcome.next_value_time):
                return known
        try:
            return now, state_at(schedule, now)
        except Exception:  # noqa: BLE001 - whatever the defect is
            return None
