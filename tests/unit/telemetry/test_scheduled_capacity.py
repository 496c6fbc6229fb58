"""The metric of schedules is exact at the scrape, between passes too."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from reconciler.model.changes import ScheduleOutcome
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.telemetry.gauges import ScheduledCapacity
from reconciler.timetable.capacity_schedule import state_at
from tests.fakes.clock import ManualClock

TEN, ELEVEN = TimePattern(hours=(10,)), TimePattern(hours=(11,))
RUSH = Schedule(
    ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "shop", "rush"), 1, (Behavior(7, TEN, ELEVEN),)
)


class Scraped:
    def __init__(self, *schedules: Schedule) -> None:
        self.clock = ManualClock()
        self.schedules = schedules
        self._registry = CollectorRegistry()
        self._registry.register(ScheduledCapacity(lambda: self.schedules, self.clock))

    def lines(self) -> list[str]:
        text = generate_latest(self._registry).decode()
        return [line for line in text.splitlines() if not line.startswith("#")]


def test_its_name_and_labels_are_those_of_the_proposal() -> None:
    assert Scraped(RUSH).lines() == ['karpenter_scheduled_capacity{name="rush",namespace="shop"} 1.0']


def test_it_changes_at_the_edge_and_not_with_the_next_pass() -> None:
    scraped = Scraped(RUSH)
    values = []
    for step in (0, 3599, 1, 3599, 1, -1):  # the last is a clock that is set back
        scraped.clock.advance(timedelta(seconds=step))
        values.append(scraped.lines()[0].rpartition(" ")[2])
    assert values == ["1.0", "1.0", "7.0", "7.0", "1.0", "7.0"]


def test_a_schedule_that_is_gone_or_another_one_is_no_longer_told() -> None:
    scraped = Scraped(RUSH)
    assert scraped.lines()
    scraped.schedules = ()
    assert scraped.lines() == []


def test_a_schedule_that_headroom_fails_on_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(schedule: Schedule, now: datetime) -> ScheduleOutcome:
        if schedule.ref.name == "bad":
            raise ValueError("a planted fault")
        return state_at(schedule, now)

    monkeypatch.setattr("reconciler.telemetry.gauges.state_at", broken)
    bad = replace(RUSH, ref=RUSH.ref._replace(name="bad"))
    assert Scraped(RUSH, bad).lines() == ['karpenter_scheduled_capacity{name="rush",namespace="shop"} 1.0']
