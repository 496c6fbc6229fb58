"""What the inventory is to remember of one-shot buffers: that they were filled, and what is left of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from reconciler.model.changes import DemandOutcome
from reconciler.model.one_shots import ONE_SHOTS_KEY, FilledOnce, remembered_one_shots
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin


def one_shot_memory(
    outcomes: Iterable[DemandOutcome], bins: Iterable[Bin], view: ClusterView, now: datetime
) -> dict[str, Any]:
    """JSON values, the same bytes as long as nothing happens; as many entries as there are one-shot buffers at most.

    What is left only shrinks. A view with gaps, or a node that is not Ready, says nothing of what was used.
    """
    known = remembered_one_shots(view.inventory.memory)
    if not view.complete:
        return _memory(known)
    places = _nodes(bins)
    ready = {node.name for node in view.nodes if node.ready}
    there = {node.name for node in view.nodes}
    entries: dict[str, FilledOnce] = {}
    for outcome in outcomes:
        uid = _uid(view, outcome.demand.ref) if outcome.demand.one_shot else ""
        if not uid:
            continue
        before, stands = known.get(uid), outcome.on_existing - outcome.on_its_way
        nodes = places.get(outcome.demand.ref, ())
        if before is None:
            if outcome.demand.desired and stands == outcome.demand.desired:
                filled = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                entries[uid] = FilledOnce(stands, nodes, filled)
        elif any(name in there and name not in ready for name in before.nodes):
            entries[uid] = before
        else:
            entries[uid] = FilledOnce(min(before.left, stands), nodes, before.filled)
    unready = {
        uid: before
        for outcome in outcomes
        if outcome.demand.desired is None and (before := known.get(uid := _uid(view, outcome.demand.ref))) is not None
    }
    return _memory(unready | entries)


def _memory(entries: dict[str, FilledOnce]) -> dict[str, Any]:
    return {ONE_SHOTS_KEY: {uid: item.as_json() for uid, item in sorted(entries.items())}} if entries else {}


def _uid(view: ClusterView, ref: ObjectRef) -> str:
    live = view.objects.get(ref)
    return "" if live is None else str((live.body.get("metadata") or {}).get("uid", ""))


def _nodes(bins: Iterable[Bin]) -> dict[ObjectRef, tuple[str, ...]]:
    """The nodes that hold chunks of each demand, by name."""
    found: dict[ObjectRef, set[str]] = {}
    for item in bins:
        for holding in item.chunks:
            if item.node is not None:
                found.setdefault(holding.demand, set()).add(item.node.name)
    return {ref: tuple(sorted(names)) for ref, names in found.items()}
