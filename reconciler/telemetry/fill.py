"""The fill of buffers and the cost of nodes over the last days, in memory. It is bounded: what is older is told more coarsely, then forgotten."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.model.changes import Plan
from reconciler.model.refs import ObjectRef
from reconciler.model.timelines import BufferPast, FillPoint, Refill
from reconciler.telemetry.buffers import buffers_of

MOST_POINTS = 1000
FINEST, COARSEST = timedelta(seconds=15), timedelta(minutes=15)
"""The least time between two points, for a young daemon and for one that has run for days. A thousand of the latter are ten days."""
MOST_CHANGES = 200
MOST_REFILLS = 10
"""Of one buffer."""


@dataclass(slots=True)
class _Buffer:
    points: deque[FillPoint] = field(default_factory=lambda: deque(maxlen=MOST_CHANGES))
    refills: deque[Refill] = field(default_factory=lambda: deque(maxlen=MOST_REFILLS))


class FillHistory:
    """Not thread-safe: `LastPass` holds a lock."""

    def __init__(self) -> None:
        self._points: list[FillPoint] = []
        self._step = FINEST
        self._buffers: dict[ObjectRef, _Buffer] = {}

    def observe(self, plan: Plan, ended: Iterable[tuple[ObjectRef, timedelta]], now: datetime) -> None:
        """Takes over a pass. ended: the shortages that ended with it."""
        buffers: dict[ObjectRef, _Buffer] = {}
        wanted = ready = 0
        for outcome in buffers_of(plan.demands):
            demand = outcome.demand
            known = buffers[demand.ref] = self._buffers.get(demand.ref) or _Buffer()
            asked = 0 if demand.suspended else demand.desired or 0
            there = min(asked, asked if outcome.is_full else outcome.ready)
            wanted, ready = wanted + asked, ready + there
            last = known.points[-1] if known.points else None
            if last is None or (last.wanted, last.ready) != (asked, there):
                known.points.append(FillPoint(now, asked, there))
        for ref, duration in ended:
            if ref in buffers:
                buffers[ref].refills.appendleft(Refill(now, duration.total_seconds()))
        self._buffers = buffers
        self._add(FillPoint(now, wanted, ready, plan.cost.per_hour_before))

    def _add(self, point: FillPoint) -> None:
        if self._points and point.since < self._points[-1].since + self._step:
            self._points[-1] = _joined(self._points[-1], point)
            return
        self._points.append(point)
        if len(self._points) <= MOST_POINTS:
            return
        if self._step < COARSEST:
            self._step *= 2
            pairs = zip(self._points[::2], self._points[1::2], strict=False)
            self._points = [*(_joined(*pair) for pair in pairs), *self._points[len(self._points) // 2 * 2 :]]
        else:
            del self._points[0]

    def points(self) -> tuple[FillPoint, ...]:
        """Of all buffers together, the oldest first."""
        return tuple(self._points)

    def by_buffer(self) -> dict[str, tuple[FillPoint, ...]]:
        return {str(ref): tuple(known.points) for ref, known in self._buffers.items()}

    def of(self, buffer: str) -> BufferPast:
        """buffer: its name, as in `CapacityBuffer/shop/web`."""
        known = next((found for ref, found in self._buffers.items() if str(ref) == buffer), None)
        return BufferPast() if known is None else BufferPast(tuple(known.points), tuple(known.refills))


def _joined(first: FillPoint, second: FillPoint) -> FillPoint:
    """One point for both, with the larger shortage of the two, so that none is averaged away."""
    worst = first if first.wanted - first.ready > second.wanted - second.ready else second
    return FillPoint(first.since, worst.wanted, worst.ready, second.price)
