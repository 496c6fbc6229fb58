"""Suspended buffers: each keeps its size and the room that it holds, and takes none beside that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconciler.demand.chunk import chunks_in_words, on_nodes
from reconciler.model.buffers import Buffer
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.demand import Demand
from reconciler.model.marks import SUSPEND_ANNOTATION
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView, LiveObject

SUSPENDED = "Suspended"
"""The condition."""


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
