"""The value of each schedule at the moment of a scrape. Wiring registers it with the metrics; Prometheus' client collects it.

The name and labels are those of the Karpenter design "Scheduled Capacity", so that queries of a HorizontalAutoscaler or KEDA work as
the proposal says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from reconciler.model.schedules import Schedule
from reconciler.ports import Clock
from reconciler.timetable.capacity_schedule import state_at


class ScheduledCapacity(Collector):
    """schedules: returns those in force, called at every scrape."""

    def __init__(self, schedules: Callable[[], tuple[Schedule, ...]], clock: Clock) -> None:
        self._schedules = schedules
        self._clock = clock

    def collect(self) -> Iterator[GaugeMetricFamily]:
        now = self._clock.now()
        family = GaugeMetricFamily(
            "karpenter_scheduled_capacity",
            "The value of a MetricsProducer's schedule now",
            labels=("name", "namespace"),
        )
        for schedule in self._schedules():
            # Where headroom fails on one, of which passes tell, all others are served.
            with suppress(Exception):
                outcome = state_at(schedule, now)
                family.add_metric((outcome.name, outcome.namespace), outcome.current_value)
        yield family
