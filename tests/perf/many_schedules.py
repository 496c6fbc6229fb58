"""A thousand schedules of three behaviors each in ten zones, always the same, and every change of theirs in one year.

python -m tests.perf.many_schedules
"""

from __future__ import annotations

import random
from datetime import UTC, datetime

from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.timetable.capacity_schedule import changes

ZONES = (
    "UTC",
    "Africa/Cairo",
    "America/Los_Angeles",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/London",
)


def schedules(count: int) -> list[Schedule]:
    draw = random.Random(1)
    return [
        Schedule(
            ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "default", f"schedule-{index}"),
            default_replicas=1,
            behaviors=tuple(_behavior(draw) for _ in range(3)),
            timezone=ZONES[index % len(ZONES)],
        )
        for index in range(count)
    ]


def _behavior(draw: random.Random) -> Behavior:
    """On some weekdays, for some hours: about 200 changes a year."""
    weekdays = tuple(sorted(draw.sample(range(7), draw.randrange(2, 7))))
    begin = draw.randrange(12)
    end = begin + draw.randrange(1, 12)
    return Behavior(
        replicas=draw.randrange(1, 20),
        start=TimePattern(hours=(begin,), minutes=(draw.choice((0, 15, 30)),), weekdays=weekdays),
        end=TimePattern(hours=(end,), weekdays=weekdays),
        priority=draw.randrange(3),
    )


def main() -> None:
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    found = sum(len(changes(schedule, start, end)[0]) for schedule in schedules(1000))
    print(f"{found:,} changes")


if __name__ == "__main__":
    main()
