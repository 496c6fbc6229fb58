"""How full each buffer is, where its chunks are, how long it has been short, and how long it took to fill: now and over the last days.

The days are kept in memory, which is bounded: what is older is told more coarsely, then forgotten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from prometheus_client.core import GaugeMetricFamily

from reconciler.model.buffers import BUFFER_KINDS, Fulfilment
from reconciler.model.changes import DemandOutcome, Plan
from reconciler.model.quantity import CPU, MEMORY
from reconciler.model.refs import ObjectRef
from reconciler.model.timelines import BufferPast, FillPoint, Refill

OBJECT_LABELS = ("kind", "namespace", "name")


class Shortages:
    """Since when buffers are short, kept from pass to pass. For shortages from before the daemon's start, the object says so."""

    def __init__(self) -> None:
        self._since: dict[ObjectRef, datetime] = {}

    def take(self, outcomes: Iterable[DemandOutcome], now: datetime) -> list[tuple[ObjectRef, timedelta]]:
        """Buffer and duration of every shortage that ended with this pass. A buffer that asks for nothing is not short."""
        ended: list[tuple[ObjectRef, timedelta]] = []
        short: dict[ObjectRef, datetime] = {}
        for outcome in buffers_of(outcomes):
            ref = outcome.demand.ref
            if is_short(outcome):
                short[ref] = self._since.get(ref) or outcome.short_since or now
            elif ref in self._since and outcome.demand.desired:
                ended.append((ref, now - self._since[ref]))
        self._since = short
        return ended

    def age(self, ref: ObjectRef, now: datetime) -> float:
        """For how long it has been short, in seconds; 0 while it is full."""
        since = self._since.get(ref)
        return 0.0 if since is None else max(0.0, (now - since).total_seconds())


def buffers_of(outcomes: Iterable[DemandOutcome]) -> list[DemandOutcome]:
    return [outcome for outcome in outcomes if outcome.demand.ref.kind in BUFFER_KINDS]


def is_short(outcome: DemandOutcome) -> bool:
    """Whether some of its chunks have no room on ready nodes. A suspended buffer is not short, since it is to get none."""
    return bool(outcome.demand.desired) and not outcome.demand.suspended and outcome.is_full is False


def _part_that_is_there(outcome: DemandOutcome) -> float | None:
    """The share of its chunks with room; None if its size is unknown, or an autoscaler keeps it and has written nothing."""
    desired, is_full = outcome.demand.desired, outcome.is_full
    if desired is None or (is_full is None and outcome.demand.fulfilment == Fulfilment.NATIVE):
        return None
    return 1.0 if is_full or not desired else outcome.ready / desired


def labelled(
    name: str, text: str, labels: Iterable[str], samples: Iterable[tuple[tuple[str, ...], float]]
) -> GaugeMetricFamily:
    """A gauge with a value for each of several labels' values."""
    family = GaugeMetricFamily(name, text, labels=tuple(labels))
    for values, value in samples:
        family.add_metric(values, value)
    return family


def buffer_gauges(
    outcomes: Iterable[DemandOutcome], shortages: Shortages, now: datetime
) -> Iterator[GaugeMetricFamily]:
    """The gauges of buffers. now: the instant that ages refer to."""
    buffers = buffers_of(outcomes)
    parts = [(labels_of(outcome), _part_that_is_there(outcome)) for outcome in buffers]
    places = [
        ((*labels_of(outcome), place), float(count))
        for outcome in buffers
        for place, count in (
            ("ready", outcome.ready),
            ("not_ready", outcome.not_ready),
            ("coming", outcome.on_its_way),
            ("new", outcome.on_new),
            ("none", outcome.unplaced),
        )
    ]
    ages = [(labels_of(outcome), shortages.age(outcome.demand.ref, now)) for outcome in buffers]
    yield labelled(
        "headroom_buffer_fill_ratio",
        "Part of a buffer's chunks that have room on ready nodes",
        OBJECT_LABELS,
        ((labels, part) for labels, part in parts if part is not None),
    )
    yield labelled("headroom_buffer_chunks", "Chunks of a buffer by where they are", (*OBJECT_LABELS, "place"), places)
    text = "For how long a buffer has not been full; 0 while it is, or is suspended"
    yield labelled("headroom_buffer_shortage_age_seconds", text, OBJECT_LABELS, ages)


def proposal_gauges(outcomes: Iterable[DemandOutcome]) -> Iterator[GaugeMetricFamily]:
    """Capacity that exists or is on its way, whoever keeps it, under the names of the Karpenter RFC "CapacityBuffer"."""
    for name, text, resource, unit in (
        ("karpenter_buffer_capacity_cpu_cores", "CPU kept ready for a buffer", CPU, 1000),
        ("karpenter_buffer_capacity_memory_bytes", "Memory kept ready for a buffer", MEMORY, 1),
    ):
        kept = ((labels_of(outcome), _kept(outcome, resource) / unit) for outcome in buffers_of(outcomes))
        yield labelled(name, text, OBJECT_LABELS, kept)


def _kept(outcome: DemandOutcome, resource: str) -> int:
    """How much of a resource is kept. All chunks of a buffer are equal."""
    shape = next((group.shape for group in outcome.demand.groups), outcome.demand.shape)
    return 0 if shape is None else shape.requests.get(resource) * outcome.on_existing


def labels_of(outcome: DemandOutcome) -> tuple[str, str, str]:
    ref = outcome.demand.ref
    return (ref.kind, ref.namespace, ref.name)


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
