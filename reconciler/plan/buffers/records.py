"""What the inventory remembers of buffers, and when each of them changes by the clock alone.

Of a one-shot buffer: that it was filled, what is left of it, what ended it. Of a share of running pods: its size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.autoscalers import CAPACITY_BUFFER_KIND
from reconciler.model.buffers import (
    ONE_SHOTS_KEY,
    SHARES_KEY,
    OneShot,
    OneShotPlace,
    RememberedShare,
    share_key,
)
from reconciler.model.changes import DemandOutcome
from reconciler.model.demand import Demand
from reconciler.model.pods import PodShape
from reconciler.model.quantity import Resources, time_text
from reconciler.model.refs import ObjectRef, by_key
from reconciler.model.remembered import records_of, remembered
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin
from reconciler.plan.facts import Facts


def remembered_buffers(
    facts: Facts, outcomes: Sequence[DemandOutcome], bins: Collection[Bin]
) -> tuple[dict[str, Any], tuple[Edge, ...]]:
    """What the inventory remembers, and when time alone changes a buffer. Nothing where no one-shot buffer or share is there, or was."""
    demands, view = facts.demands, facts.view
    if not any(
        demand.one_shot or demand.share is not None for demand in demands
    ) and view.inventory.records.keys().isdisjoint({ONE_SHOTS_KEY, SHARES_KEY}):
        return {}, ()
    once = one_shot_memory(outcomes, bins, view, facts.cluster_now)
    edges = (*one_shot_edges(outcomes, once, view), *share_edges(demands, view.clock_skew))
    return once | share_records(demands, view), edges


def one_shot_memory(
    outcomes: Iterable[DemandOutcome], bins: Collection[Bin], view: ClusterView, now: datetime
) -> dict[str, Any]:
    """JSON values, unchanged as long as nothing happens. At most one entry for each one-shot buffer.

    What is left only shrinks. A node that is being deleted takes its chunks with it at once. An incomplete view, or a node that is not
    Ready, does not tell what was used.
    """
    records = remembered(view.inventory.records, ONE_SHOTS_KEY, OneShot)
    if not view.complete:
        return records_of(ONE_SHOTS_KEY, records)
    asked = {uid: outcome for outcome in outcomes if (uid := _uid(view, outcome.demand.ref))}
    entries = {uid: records[uid] for uid, outcome in asked.items() if outcome.demand.desired is None and uid in records}
    once = {uid: outcome for uid, outcome in asked.items() if outcome.demand.one_shot and uid not in entries}
    held = _chunks(bins) if once else {}
    nodes = {
        item.node.name: item.node
        for item in bins
        if item.node is not None and not any(side.deleting for side in item.sides)
    }
    unused = _unused(view) if once else {}
    for uid, outcome in once.items():
        demand, before = outcome.demand, records.get(uid, OneShot())
        if demand.ended is not None:
            ended = (demand.ended.type, demand.ended.reason, demand.ended.message)
            entries[uid] = before.on({}).but(ended=ended)
            continue
        if any(name in nodes and not nodes[name].ready for name in before.places):
            entries[uid] = before
            continue
        chunks = held.get(demand.ref, {})
        names = {*chunks, *before.places} & nodes.keys()
        places = {name: OneShotPlace(chunks.get(name, 0), _room(unused[name], demand.shape)) for name in names}
        stands = outcome.on_existing - outcome.on_its_way
        time = time_text(now)
        if before.filled:
            entries[uid] = _after(before, places, demand.desired or 0)
        elif demand.desired:
            began = before.but(since=before.since or (time if demand.fill_deadline is not None else ""))
            full = stands == demand.desired
            entries |= {uid: began.on(places).but(filled=time) if full else began} if full or began.since else {}
    return records_of(ONE_SHOTS_KEY, entries)


def one_shot_edges(outcomes: Iterable[DemandOutcome], left: Mapping[str, Any], view: ClusterView) -> Iterator[Edge]:
    """When each of them gives up, by this machine's clock. left: the records as this pass leaves it."""
    records = remembered(left, ONE_SHOTS_KEY, OneShot)
    for outcome in outcomes:
        deadline, record = outcome.demand.fill_deadline, records.get(_uid(view, outcome.demand.ref))
        by = (
            None
            if deadline is None or record is None or outcome.demand.ended is not None
            else record.gives_up(deadline)
        )
        if by is not None:
            yield Edge(by + view.clock_skew, f"{outcome.demand.ref}: the deadline for its first fill")


def _after(before: OneShot, now: Mapping[str, OneShotPlace], asked: int) -> OneShot:
    """What is left of the buffer, given where its chunks are now.

    Chunks are lost where pods came. Chunks that gave way to a booking or another buffer are not: that room comes back.
    """
    kept = {node: _kept(place, now[node]) for node, place in before.places.items() if node in now}
    there = sum(place.chunks for node, place in before.places.items() if node in now)
    unused = sum(place.chunks for place in kept.values())
    left = min(asked, unused)
    after = before.but(used=before.used + max(0, there - unused), lost=before.lost + before.left - there)
    if sum(place.chunks for place in now.values()) == left:
        return after.on(now)
    return after.on(_first(kept, left))


def _kept(before: OneShotPlace, now: OneShotPlace) -> OneShotPlace:
    gone, taken = before.chunks - now.chunks, before.room - now.room
    return OneShotPlace(before.chunks - max(0, min(gone, taken)), now.room)


def _first(places: Mapping[str, OneShotPlace], left: int) -> dict[str, OneShotPlace]:
    """At most as many chunks as are left, if fewer are asked for than there were."""
    found = {}
    for node, place in places.items():
        found[node] = OneShotPlace(min(place.chunks, left), place.room)
        left -= found[node].chunks
    return found


def _unused(view: ClusterView) -> dict[str, Resources]:
    """Free resources of each node beside the pods that run there; chunks do not count."""
    used = by_key((pod.node_name or "", pod.shape.requests) for pod in view.pods)
    return {node.name: node.allocatable - Resources.total(used.get(node.name, ())) for node in view.nodes}


def _room(unused: Resources, shape: PodShape | None) -> int:
    amounts = () if shape is None else tuple(shape.requests)
    return max(0, min((unused.get(name) // amount for name, amount in amounts if amount), default=0))


def _uid(view: ClusterView, ref: ObjectRef) -> str:
    live = view.objects.get(ref)
    return "" if live is None else live.uid


def _chunks(bins: Iterable[Bin]) -> dict[ObjectRef, dict[str, int]]:
    chunks: dict[ObjectRef, dict[str, int]] = {}
    for item in bins:
        for holding in item.chunks if item.node is not None else ():
            counts = chunks.setdefault(holding.demand, {})
            counts[item.name] = counts.get(item.name, 0) + holding.count
    return chunks


def share_records(demands: Iterable[Demand], view: ClusterView) -> dict[str, Any]:
    """JSON values, unchanged as long as no share changes. One entry for each such buffer; one that is not ready keeps what it had."""
    shares = remembered(view.inventory.records, SHARES_KEY, RememberedShare)
    entries = {}
    for demand in demands:
        key = share_key(demand.ref)
        if demand.share is not None:
            entries[key] = demand.share
        elif demand.ref.kind == CAPACITY_BUFFER_KIND and demand.desired is None and key in shares:
            entries[key] = shares[key]
    return records_of(SHARES_KEY, entries)


def share_edges(demands: Iterable[Demand], clock_skew: timedelta) -> tuple[Edge, ...]:
    """Instants by this machine's clock. clock_skew: that clock's time less the cluster's."""
    return tuple(
        Edge(demand.shrinks_at + clock_skew, f"{demand.ref}: its share of running pods has been less for long enough")
        for demand in demands
        if demand.shrinks_at is not None
    )
