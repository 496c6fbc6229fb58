"""All capacity as lanes, each with the values of one object over time; two revisions compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from reconciler.model.timelines import CapacityTimeline
from reconciler.report.drawing.value_lanes import ValueSpan, allowed_spans, merged

ASKED, WORTH, ALLOWED = "Asked for", "Schedules", "Disruptions allowed"
"""The groups of lanes, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Lane:
    """group: one of the above. spans: they fill the timeline, and neighbours differ in value."""

    group: str
    name: str
    spans: tuple[ValueSpan, ...]

    @property
    def now(self) -> int | None:
        return self.spans[0].value

    @property
    def is_constant(self) -> bool:
        return len(self.spans) == 1

    def at(self, instant: datetime) -> int | None:
        return next(span.value for span in reversed(self.spans) if span.start <= instant)


@dataclass(frozen=True, slots=True)
class LaneChange:
    """One lane in two revisions; None if that revision has none, and `missing` says why. Equal lanes are not a change."""

    before: Lane | None
    after: Lane | None
    missing: str = "absent"

    @property
    def either(self) -> Lane:
        lane = self.after or self.before
        assert lane is not None
        return lane


def lanes(timeline: CapacityTimeline) -> tuple[Lane, ...]:
    """Every buffer that is ready and static NodePool, every schedule, every NodePool and reason."""
    return tuple(lane for lane in _lanes(timeline) if lane.spans)


def _lanes(timeline: CapacityTimeline) -> Iterator[Lane]:
    for ref, demands in groupby(timeline.demands, key=lambda span: span.ref):
        yield Lane(
            ASKED,
            str(ref),
            _joined(
                [
                    ValueSpan(item.start, item.end, item.replicas, item.why)
                    for item in demands
                    if item.replicas is not None
                ]
            ),
        )
    for schedule in timeline.schedules:
        spans = [ValueSpan(item.start, item.end, item.value) for item in schedule.spans]
        yield Lane(WORTH, str(schedule.schedule.ref), _joined(spans))
    for (pool, reason), budgets in groupby(
        timeline.budgets, key=lambda span: (span.outcome.node_pool, span.outcome.reason)
    ):
        yield Lane(ALLOWED, _budget_name(pool, reason), _joined(allowed_spans(list(budgets))))


def _joined(spans: Sequence[ValueSpan]) -> tuple[ValueSpan, ...]:
    """The spans with neighbours of equal value joined, with the first one's reason."""
    found: list[ValueSpan] = []
    for span in merged(spans):
        if found and found[-1].value == span.value:
            found[-1] = ValueSpan(found[-1].start, span.end, span.value, found[-1].why)
        else:
            found.append(span)
    return tuple(found)


def shared_out(groups: Sequence[str], most: int) -> list[int]:
    """Which of many to show, as ascending indexes: the same number of each group, as far as it has that many."""
    ranks: dict[str, int] = {}
    rank_of = []
    for group in groups:
        rank_of.append(ranks.get(group, 0))
        ranks[group] = rank_of[-1] + 1
    return sorted(sorted(range(len(groups)), key=lambda index: (rank_of[index], index))[:most])


def lane_changes(base: CapacityTimeline, head: CapacityTimeline) -> tuple[LaneChange, ...]:
    """Lanes that differ at some time of both timelines, or are in only one. In the head's order, removed ones last.

    Budgets are not compared where one side alone has no node of the NodePool: 10% of no nodes is 0.
    """
    before = {(lane.group, lane.name): lane for lane in lanes(base)}
    after = {(lane.group, lane.name): lane for lane in lanes(head)}
    unready = {(ASKED, str(span.ref)) for side in (base, head) for span in side.demands if span.replicas is None}
    changes = [
        LaneChange(before.get(key), after.get(key), "not ready" if key in unready else "absent")
        for key in (*after, *(key for key in before if key not in after))
    ]
    idle = _without_nodes(base) ^ _without_nodes(head)
    order = (ASKED, WORTH, ALLOWED)
    start, end = max(base.start, head.start), min(base.end, head.end)
    found = [
        item
        for item in changes
        if item.before is None
        or item.after is None
        or ((item.either.group, item.either.name) not in idle and _differ(item.before, item.after, start, end))
    ]
    return tuple(sorted(found, key=lambda item: order.index(item.either.group)))


def _without_nodes(timeline: CapacityTimeline) -> set[tuple[str, str]]:
    return {
        (ALLOWED, _budget_name(span.outcome.node_pool, span.outcome.reason))
        for span in timeline.budgets
        if not span.outcome.total
    }


def _budget_name(pool: str, reason: str) -> str:
    return f"NodePool/{pool} {reason}"


def _differ(before: Lane, after: Lane, start: datetime, end: datetime) -> bool:
    """Whether their values differ at any time of [start, end), wherever their first spans begin."""

    def worth(lane: Lane) -> list[tuple[datetime, int | None]]:
        return [(max(span.start, start), span.value) for span in lane.spans if span.end > start and span.start < end]

    return worth(before) != worth(after)
