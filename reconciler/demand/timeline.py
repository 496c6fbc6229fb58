"""What every buffer and static NodePool asks for over a span of time, by the schedules that it follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest

from reconciler.demand.buffers import buffer_demands
from reconciler.demand.schedules import changes_with, followed_buffer
from reconciler.model.buffers import Buffer, Dialect
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.nodes import InstanceType, NodePool, node_pool_ref
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Following, Schedule, following_of
from reconciler.model.timelines import DemandSpan, aligned, joined
from reconciler.model.view import ClusterView
from reconciler.timetable.capacity_schedule import spans_with_lead

State = tuple[int | None, bool]
"""What the schedules say at an instant: replicas (None: its own number), and whether it exists."""
Piece = tuple[datetime, datetime, State]
_Sizes = dict[tuple[ObjectRef, State], tuple[int | None, str]]
"""Chunks (None: not ready), and in words why this many."""


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

    declared: the repository merged over the cluster. Percentages and quotas are those of the present cluster, since what
    they will be cannot be foreseen. What follows a schedule that is unknown keeps the size that it has.
    """
    schedules = {schedule.ref: schedule for schedule in declared.schedules}
    followings = {buffer.ref: changes_with(buffer, view.objects.get(buffer.ref)) for buffer in declared.buffers}
    always: list[Piece] = [(start, end, (None, True))]
    pieces = {ref: followed_pieces(following, schedules, start, end) or always for ref, following in followings.items()}
    sizes: _Sizes = {}
    for awake in _rounds(declared.buffers, followings, pieces):
        parts = tuple(buffer for buffer, _ in awake.values())
        answers, _ = buffer_demands(
            replace(declared, buffers=parts), view, dialect=dialect, instance_types=instance_types
        )
        sizes |= {
            (demand.ref, awake[demand.ref][1]): (demand.desired, _reason(demand, followings[demand.ref]))
            for demand in answers
        }
    spans: list[DemandSpan] = []
    for buffer in declared.buffers:
        spans += [
            DemandSpan(buffer.ref, opens, closes, count, why)
            for opens, closes, state in pieces[buffer.ref]
            for count, why in [sizes[buffer.ref, state] if state[1] else (0, _why(followings[buffer.ref], state))]
        ]
    for pool in declared.node_pools:
        spans += _of_pool(pool, schedules, start, end)
    spans = joined(spans, lambda span: (span.ref, span.replicas))
    return tuple(sorted(spans, key=lambda span: (span.ref.kind, span.ref.namespace, span.ref.name, span.start)))


def _of_pool(
    pool: NodePool, schedules: Mapping[ObjectRef, Schedule], start: datetime, end: datetime
) -> Iterator[DemandSpan]:
    if pool.replicas is None:
        return
    ref = node_pool_ref(pool.name)
    following = following_of(ref, pool.annotations)
    always: list[Piece] = [(start, end, (None, True))]
    for opens, closes, state in followed_pieces(following, schedules, start, end) or always:
        replicas = pool.replicas if state[0] is None else state[0]
        yield DemandSpan(ref, opens, closes, replicas, _why(following, state))


def followed_pieces(
    following: Following | None, schedules: Mapping[ObjectRef, Schedule], start: datetime, end: datetime
) -> list[Piece]:
    """Spans within which no followed schedule changes; none if one of them is unknown."""
    if following is None:
        return [(start, end, (None, True))]
    if any(ref not in schedules for ref in following.schedules):
        return []
    values: list[Sequence[tuple[datetime, datetime, int | None]]] = [
        [(start, end, None)] if ref is None else spans_with_lead(schedules[ref], following.lead, start, end)
        for ref in (following.replicas_from, following.active_during)
    ]
    return [
        (opens, closes, (replicas, active is None or active > 0))
        for opens, closes, (replicas, active) in aligned(*values)
    ]


def _rounds(
    buffers: Sequence[Buffer],
    followings: Mapping[ObjectRef, Following | None],
    pieces: Mapping[ObjectRef, Sequence[Piece]],
) -> Iterator[dict[ObjectRef, tuple[Buffer, State]]]:
    """One state of each buffer by round, until every state in which a buffer exists has been in a round. Sizing all buffers of a round at
    once takes few rounds for many buffers.
    """
    waiting = [dict.fromkeys(state for _, _, state in pieces[buffer.ref] if state[1]) for buffer in buffers]
    for states in zip_longest(*waiting):
        awake: dict[ObjectRef, tuple[Buffer, State]] = {}
        for buffer, state in zip(buffers, states, strict=True):
            following = followings[buffer.ref]
            if state is not None:
                sized = buffer if following is None else followed_buffer(buffer, following, state[0])
                awake[buffer.ref] = (sized, state)
        yield awake


def _reason(demand: Demand, following: Following | None) -> str:
    """What made the size, limits among them, and the schedule that says whether the buffer exists."""
    facts = list(demand.explanation)
    if (
        following is not None
        and following.active_during is not None
        and following.replicas_from != following.active_during
    ):
        facts.append(f"while {following.active_during} is above 0")
    return "; ".join(facts)


def _why(following: Following | None, state: State) -> str:
    if following is None:
        return "spec.replicas"
    if not state[1]:
        return f"{following.active_during} is at 0"
    return " and ".join(str(ref) for ref in following.schedules)
