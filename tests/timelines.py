"""Timelines with something of everything in them, for tests of charts and pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reconciler.model.changes import BudgetOutcome
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.model.timelines import BudgetSpan, CapacityTimeline, DemandSpan, ScheduleTimeline
from reconciler.timetable.capacity_schedule import timeline
from reconciler.timetable.windows import instant_of, open_edges, ticks
from tests.builders import buffer_ref

NOW = datetime(2026, 3, 5, 16, 30, tzinfo=UTC)
END = NOW + timedelta(days=7)
WORKDAYS = (1, 2, 3, 4, 5)


def schedule_ref(name: str = "scheduling") -> ObjectRef:
    return ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "default", name)


def proposal(weekend: int = 1) -> Schedule:
    """The first example of Karpenter's design "Scheduled Capacity": 3 by day, 2 by night, 1 over the weekend."""
    day, night = TimePattern(weekdays=WORKDAYS, hours=(9,)), TimePattern(weekdays=WORKDAYS, hours=(17,))
    behaviors = (
        Behavior(weekend, TimePattern(weekdays=(5,), hours=(17,)), TimePattern(weekdays=(1,), hours=(9,))),
        Behavior(3, day, night),
        Behavior(2, night, day),
    )
    return Schedule(schedule_ref(), 2, behaviors, "America/Los_Angeles")


def schedule_timeline(schedule: Schedule, days: int = 7) -> ScheduleTimeline:
    return timeline(schedule, NOW, NOW + timedelta(days=days), NOW)


def budget_span(start: datetime, end: datetime, allowed: int | None, reason: str, pool: str = "general") -> BudgetSpan:
    why = "budgets[1] binds" if allowed else "budgets[0] binds: no node may go in working hours"
    return BudgetSpan(
        start, end, BudgetOutcome(pool, reason, allowed, allowed, 1, 2, 40, why if allowed is not None else "no budget")
    )


def budgets(pool: str = "general") -> tuple[BudgetSpan, ...]:
    """Underutilized 4 but for nine hours of each day, Empty unbounded, Drifted 12 all week."""
    spans = []
    at = NOW
    for day in range(1, 7):
        opens = NOW.replace(hour=8, minute=0) + timedelta(days=day)
        spans += [
            budget_span(at, opens, 4, "Underutilized", pool),
            budget_span(opens, opens + timedelta(hours=9), 0, "Underutilized", pool),
        ]
        at = opens + timedelta(hours=9)
    return (
        *spans,
        budget_span(at, END, 4, "Underutilized", pool),
        budget_span(NOW, END, None, "Empty", pool),
        budget_span(NOW, END, 12, "Drifted", pool),
    )


def capacity(peak: int = 9, weekend: int = 1) -> CapacityTimeline:
    """A buffer with a peak of one hour, one that stays as it is, the proposal's schedule, a NodePool's budgets."""
    web, cart = buffer_ref("web"), buffer_ref("cart")
    begins = datetime(2026, 3, 9, 13, tzinfo=UTC)
    return CapacityTimeline(
        start=NOW,
        end=END,
        demands=(
            DemandSpan(cart, NOW, END, 5, "5 requested"),
            DemandSpan(web, NOW, begins, 0, "MetricsProducer/shop/sale is at 0"),
            DemandSpan(web, begins, begins + timedelta(hours=1), peak, "MetricsProducer/shop/sale"),
            DemandSpan(web, begins + timedelta(hours=1), END, 0, "MetricsProducer/shop/sale is at 0"),
        ),
        schedules=(schedule_timeline(proposal(weekend)),),
        budgets=budgets(),
    )


def open_spans(
    schedule: str, duration: timedelta, start: datetime, end: datetime
) -> tuple[tuple[datetime, datetime], ...]:
    """The parts of [start, end) in which a window is open."""
    edges = [instant_of(edge) for edge in open_edges(schedule, duration, ticks(start), ticks(end)).tolist()]
    return tuple(zip(edges[::2], edges[1::2], strict=True))
