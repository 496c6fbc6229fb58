"""A one-shot buffer after it was filled: what is left of it stays where it is, and nothing is added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.demand.chunk import on_nodes
from reconciler.demand.resolve import READY
from reconciler.model.buffers import Buffer, Fulfilment
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.one_shots import ONE_SHOT_ANNOTATION, FilledOnce
from reconciler.model.view import LiveObject


def is_one_shot(buffer: Buffer) -> bool:
    return buffer.annotation(ONE_SHOT_ANNOTATION) == "true"


def uid_of(live: LiveObject | None) -> str:
    return "" if live is None else str((live.body.get("metadata") or {}).get("uid", ""))


def once(demand: Demand, buffer: Buffer, uid: str, filled: Mapping[str, FilledOnce]) -> Demand:
    """The demand of a buffer that may be one-shot. filled: those that were, by uid.

    Its chunks may stay on the nodes that they were on and nowhere else: room that became free elsewhere would be a refill.
    """
    if not is_one_shot(buffer) or demand.fulfilment != Fulfilment.PLACEHOLDER or demand.desired is None:
        return demand
    marked = replace(demand, one_shot=True)
    known = filled.get(uid) if uid else None
    if known is None:
        return replace(marked, explanation=(*demand.explanation, f"{ONE_SHOT_ANNOTATION}: to be filled once"))
    left = min(known.left, demand.desired)
    said = f"{left:,} left of the {demand.desired:,} asked for"
    message = f"{ONE_SHOT_ANNOTATION}: filled at {known.filled}, {said}, not filled again"
    conditions = tuple(replace(item, message=message) if item.type == READY else item for item in demand.conditions)
    groups = tuple(ChunkGroup(on_nodes(group.shape, known.nodes), left) for group in demand.groups) if left else ()
    return replace(
        marked,
        desired=left,
        left_of=demand.desired,
        groups=groups,
        opens_nodes=False,
        conditions=conditions,
        explanation=(*demand.explanation, message),
    )
