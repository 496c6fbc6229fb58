"""What every buffer and static NodePool asks for over a span of time, by the schedules that it follows. Used for reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from reconciler.demand.buffers import buffer_demands
from reconciler.demand.dialect import Dialect
from reconciler.demand.schedules import followed_buffer, pool_ref
from reconciler.model.buffers import Buffer
from reconciler.model.declared import Declared
from reconciler.model.following import Following, following_of
from reconciler.model.nodes import InstanceType, NodePool
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Schedule
from reconciler.model.timelines import DemandSpan
from reconciler.model.view import ClusterView
from reconciler.timetable.lead_time import spans_with_lead

_State = tuple[int | None, bool]
"""What the schedules say at an instant: replicas (None: its own number), and whether it exists."""
_Piece = tuple[datetime, datetime, _State]


def demand_spans(
    declared: Declared,
    view: ClusterView,
    start: datetime,
    end: datetime,
    *,
    dialect: Dialect,
    instance_types: Sequence[InstanceType] = (),
) -> tuple[DemandSpan, ...]:
    """By object, then by time; each object's spans fill [start, end), and neighbours differ in their replicas.

    declared: the repository over the cluster. Sizes are those of the present cluster: what a percentage is a percentage of
    cannot be foreseen. A buffer that is not ready and one whose schedule is not known have no spans.
    """
    schedules = {schedule.ref: schedule for schedule in declared.schedules}
    size = _sizes(declared, view, dialect, instance_types)
    found: list[DemandSpan] = []
    for buffer in declared.buffers:
        following = following_of(buffer.ref, buffer.annotations)
        pieces = _pieces(following, schedules, start, end)
        found += _joined(
            DemandSpan(buffer.ref, opens, closes, count, _why(following, state))
            for opens, closes, state in pieces
            if (count := size(buffer, following, state)) is not None
        )
    for pool in declared.node_pools:
        found += _joined(_of_pool(pool, schedules, start, end))
    return tuple(sorted(found, key=lambda span: (span.ref.kind, span.ref.namespace, span.ref.name, span.start)))


def _of_pool(
    pool: NodePool, schedules: Mapping[ObjectRef, Schedule], start: datetime, end: datetime
) -> Iterator[DemandSpan]:
    if pool.replicas is None:
        return
    ref = pool_ref(pool)
    following = following_of(ref, pool.annotations)
    for opens, closes, state in _pieces(following, schedules, start, end):
        replicas = pool.replicas if state[0] is None else state[0]
        yield DemandSpan(ref, opens, closes, replicas, _why(following, state))


def _pieces(
    following: Following | None,
    schedules: Mapping[ObjectRef, Schedule],
    start: datetime,
    end: datetime,
) -> list[_Piece]:
    """As long as nothing that the followed schedules say changes."""
    if following is None:
        return [(start, end, (None, True))]
    if any(ref not in schedules for ref in following.schedules):
        return []
    values = [
        None if ref is None else spans_with_lead(schedules[ref], following.lead, start, end)
        for ref in (following.replicas_from, following.active_during)
    ]
    moments = sorted({start, end} | {opens for spans in values if spans is not None for opens, _, _ in spans})
    pieces: list[_Piece] = []
    positions = [0, 0]
    for opens, closes in pairwise(moments):
        now: list[int | None] = [None, None]
        for index, spans in enumerate(values):
            if spans is None:
                continue
            while spans[positions[index]][1] <= opens:
                positions[index] += 1
            now[index] = spans[positions[index]][2]
        pieces.append((opens, closes, (now[0], now[1] is None or now[1] > 0)))
    return pieces


def _sizes(
    declared: Declared,
    view: ClusterView,
    dialect: Dialect,
    instance_types: Sequence[InstanceType],
) -> Callable[[Buffer, Following | None, _State], int | None]:
    """The size of a buffer when its schedules say so, worked out once for each different answer of theirs."""
    known: dict[tuple[ObjectRef, _State], int | None] = {}
    plain, _ = buffer_demands(declared, view, dialect=dialect, instance_types=instance_types)
    constant = {demand.ref: demand.desired for demand in plain}

    def size(buffer: Buffer, following: Following | None, state: _State) -> int | None:
        if following is None:
            return constant.get(buffer.ref)
        if not state[1]:
            return 0
        key = (buffer.ref, state)
        if key not in known:
            awake = followed_buffer(buffer, following, state[0], active=True)
            alone = replace(declared, buffers=(awake,))
            known[key] = buffer_demands(alone, view, dialect=dialect, instance_types=instance_types)[0][0].desired
        return known[key]

    return size


def _why(following: Following | None, state: _State) -> str:
    if following is None:
        return "by its own number"
    if not state[1]:
        return f"{following.active_during} is at 0"
    return " and ".join(str(ref) for ref in following.schedules)


def _joined(spans: Iterator[DemandSpan]) -> Iterator[DemandSpan]:
    last: DemandSpan | None = None
    for span in spans:
        if last is not None and last.replicas == span.replicas and last.end == span.start:
            last = replace(last, end=span.end)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last
