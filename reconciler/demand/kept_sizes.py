"""Buffers that keep what they hold: one-shot buffers, and suspended ones.

A one-shot buffer is filled once, what is left of it stays where it is, and nothing is added. It ends for good when pods have used all of
it, when its deadline comes first, or when its nodes go before any pod came. A suspended buffer keeps its size and the room that it holds,
and takes none beside that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.demand.resolve import READY, chunks_in_words, on_nodes
from reconciler.model.buffers import (
    BUFFER_FILLED,
    CAPACITY_LOST,
    DEADLINE_EXCEEDED,
    EXPIRED,
    FULFILLED,
    Buffer,
    Fulfilment,
    OneShot,
    ending,
)
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.marks import SUSPEND_ANNOTATION
from reconciler.model.quantity import format_duration
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView, LiveObject

SUSPENDED = "Suspended"
"""The condition."""


def once(
    demand: Demand, buffer: Buffer, uid: str, records: Mapping[str, OneShot], now: datetime | None = None
) -> Demand:
    """The demand of a buffer that may be one-shot. records: of those that the inventory knows, by uid. now: by the cluster's clock; None to
    ignore deadlines.

    Its chunks may stay on the nodes that they were on and nowhere else: room that became free elsewhere would be a refill.
    """
    if not buffer.is_one_shot or demand.fulfilment != Fulfilment.PLACEHOLDER:
        return demand
    record = records.get(uid, OneShot()) if uid else OneShot()
    if record.ended is not None:
        return _ended(demand, record.used, record.ended)
    asked = demand.desired
    if asked is None:
        return demand
    deadline = buffer.fill_deadline
    demand = replace(demand, one_shot=True, used=record.used, fill_deadline=deadline)
    by = None if deadline is None else record.gives_up(deadline)
    end = _end(record, asked, deadline if by is not None and now is not None and now >= by else None)
    if end is not None:
        return _ended(demand, record.used, end)
    time = f"until {by:%Y-%m-%d %H:%M:%S} UTC" if by is not None else deadline and format_duration(deadline)
    until = f", pods have {time} to use all of it" if time else ""
    if not record.filled:
        return replace(demand, explanation=(*demand.explanation, f"one-shot: to be filled once{until}"))
    left = min(record.left, asked)
    said = f"{left:,} left of the {asked:,} asked for"
    message = f"one-shot: filled at {record.filled}, {said}, not filled again{until}"
    groups = tuple(ChunkGroup(on_nodes(group.shape, record.nodes), left) for group in demand.groups) if left else ()
    return replace(_said(demand, message), desired=left, left_of=asked, groups=groups, opens_nodes=False)


def _end(known: OneShot, asked: int, passed: timedelta | None) -> Condition | None:
    """What ends it now. passed: its deadline, if that has passed."""
    lost = f"; {chunks_in_words(known.lost)} went with their nodes" if known.lost else ""
    if known.filled and not known.left and known.used:
        return ending(FULFILLED, BUFFER_FILLED, f"pods have used {chunks_in_words(known.used)}{lost}, none is left")
    if known.filled and not known.left and known.lost:
        return ending(EXPIRED, CAPACITY_LOST, f"{chunks_in_words(known.lost)} went with their nodes before pods came")
    if passed is not None:
        of = chunks_in_words(max(asked, known.used + known.left))
        message = f"pods have used {known.used:,} of {of} within {format_duration(passed)}{lost}: the rest is given up"
        return ending(EXPIRED, DEADLINE_EXCEEDED, message)
    return None


def _ended(demand: Demand, used: int, end: Condition) -> Demand:
    """A demand for nothing, for good. A buffer that is not ready stays so."""
    none = None if demand.desired is None else 0
    demand = replace(_said(demand, f"one-shot: {end.message}"), one_shot=True, used=used, ended=end)
    return replace(demand, desired=none, groups=(), opens_nodes=False, conditions=(*demand.conditions, end))


def _said(demand: Demand, message: str) -> Demand:
    ready = demand.desired is not None
    conditions = tuple(
        replace(item, message=message) if ready and item.type == READY else item for item in demand.conditions
    )
    return replace(demand, conditions=conditions, explanation=(*demand.explanation, message))


def is_suspended(buffer: Buffer, live: LiveObject | None) -> bool:
    """Whether the annotation is in Git, or on the object in the cluster."""
    annotations = {} if live is None else live.body.get("metadata", {}).get("annotations") or {}
    return "true" in {buffer.annotation(SUSPEND_ANNOTATION), annotations.get(SUSPEND_ANNOTATION)}


def suspended_buffers(buffers: Iterable[Buffer], view: ClusterView) -> frozenset[ObjectRef]:
    return frozenset(item.ref for item in buffers if is_suspended(item, view.objects.get(item.ref)))


def kept_size(live: LiveObject | None) -> int:
    """What it had before, whatever Git, its workload or a quota say since. Nothing without an object."""
    replicas = None if live is None else (live.body.get("status") or {}).get("replicas")
    return replicas if isinstance(replicas, int) else 0


def suspended(demand: Demand, view: ClusterView) -> Demand:
    """Its chunks may stay on the nodes that hold some of them and nowhere else. What headroom does not hold is only counted."""
    stays = "" if demand.desired is None else f"it stays at {chunks_in_words(demand.desired)}, and "
    message = f"{SUSPEND_ANNOTATION}: {stays}no other node is taken or made for it"
    condition = Condition(SUSPENDED, ConditionStatus.TRUE, SUSPENDED, message)
    if demand.holds_nodes and demand.groups:
        nodes = _nodes_that_hold(demand.ref, view)
        demand = demand.with_shapes(lambda group: on_nodes(group.shape, nodes))
    return replace(
        demand,
        suspended=True,
        opens_nodes=False,
        conditions=(*demand.conditions, condition),
        explanation=(*demand.explanation, message),
    )


def _nodes_that_hold(ref: ObjectRef, view: ClusterView) -> tuple[str, ...]:
    """Their names; of a node that has not registered yet, its NodeClaim's."""
    words = str(ref)
    return tuple(item.name for item in view.machines if words in item.held_for and words in item.holders)
