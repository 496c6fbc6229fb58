"""Computes what placement must know beforehand, and finds what is asked for at this instant.

- Pods for which kube-scheduler has chosen a node count as being there.
- Pods of nodes that are being deleted need another place, where nodes are planned for pods too.
- Nodes that expire soon or are to be replaced take no more chunks.
- Capacity that is booked stays where it is, and its nodes are not replaced meanwhile. So does what suspended buffers hold.
- Held nodes that are not ready for a moment keep their chunks and take no others.
- Offerings of which a launch has just failed are left alone for a while.

Demand is that of schedules first, then of buffers, requests and pods that wait.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar

from reconciler.demand.combine import (
    demands,
    leaving_balloons,
    leaving_demands,
    settled,
    with_leaving,
    without_balloons,
    without_leaving,
    without_waiting_balloons,
)
from reconciler.demand.fulfilment import with_default_fulfilment
from reconciler.demand.kept_sizes import suspended_buffers
from reconciler.demand.schedules import follow_schedules
from reconciler.model.buffers import Dialect
from reconciler.model.provisioning_requests import RequestRules
from reconciler.model.remembered import REQUESTS_KEY, PassCache
from reconciler.model.rules import BufferRules, PlacementRules
from reconciler.model.schedules import Edge
from reconciler.outlook import Outlook
from reconciler.placement.cache import Cache
from reconciler.placement.nodes.existing import with_nominated
from reconciler.placement.problem import PlacementOptions
from reconciler.plan.bins import all_bins
from reconciler.plan.holding.consolidation import departures, rooms
from reconciler.plan.holding.replacement import (
    briefly_not_ready,
    leaving_bins,
    missing_devices,
    suspended_bins,
    with_devices,
)
from reconciler.plan.launching.back_offs import launch_record
from reconciler.plan.launching.misfits import with_seen_rooms
from reconciler.plan.objects.prune import let_down
from reconciler.plan.requests import Bookings, bookings
from reconciler.stages.state import PassState, Prepared


@dataclass(frozen=True, slots=True)
class Prepare:
    """cache: the one that placement uses."""

    phase: ClassVar[str] = "view"

    rules: PlacementRules
    cache: Cache

    def run(self, state: PassState) -> PassState:
        seen = state.view
        view = self.cache.once("nominated", (seen,), lambda: with_nominated(seen)) if seen.pods else seen
        now = state.cluster_now
        state = replace(state, view=view)
        leaving = leaving_demands(view, now) if state.include_pending else ()
        launches = launch_record(view, now, self.rules, state.instance_types)
        sentences: tuple[str, ...] = ()
        if launches.rooms:
            instance_types, sentences = with_seen_rooms(state.instance_types, launches.rooms)
            state = replace(state, instance_types=instance_types)
        booked = bookings(view) if REQUESTS_KEY in view.inventory.records else Bookings()
        state = _until(state, (launches.next_end(now), "an offering that ran out may be tried again"))
        state = self._with_nodes(state, booked.kept) if view.machines else state
        view = state.view
        options = replace(
            state.prepared.options,
            instance_types=self.rules.instance_types,
            optimal=self.rules.is_optimal,
            include_pending=state.include_pending,
            back_offs=launches.avoided(now, since=booked.since),
            booked=booked.held,
        )
        prepared = replace(
            state.prepared,
            room=without_leaving(view, leaving),
            leaving=leaving,
            options=options,
            failed_in_attempts=launches.failed_since(booked.since),
        )
        return replace(
            state,
            prepared=prepared,
            launches=launches,
            notes=(*state.notes, *sentences),
        )

    def _with_nodes(self, state: PassState, booked: Collection[str]) -> PassState:
        """The state with the nodes that take no more chunks or keep theirs. booked: nodes that keep their chunks for a request."""
        view, now, pools = state.view, state.cluster_now, state.effective.node_pools
        suspended, only_suspended = suspended_bins(view, suspended_buffers(state.effective.buffers, view))
        leaving = leaving_bins(view, pools, now, kept=only_suspended.union(booked), spared=suspended)
        departing = departures(view, now)
        under_way = [item for item in departing if item.is_under_way(now)]
        bins, missing = all_bins(view), missing_devices(view, now)
        # Once Karpenter evicts a node's pods, kube-scheduler binds them in the room that was made for them.
        evicts = any(pod.node_name is None for pod in view.pods) if departing else False
        going = {item.name for item in bins if item.is_going and evicts}
        kept_free = rooms(bins, (item for item in departing if item.node not in going), now)
        waiting, until = briefly_not_ready(bins, missing, now, self.rules.not_ready_grace, for_ever=only_suspended)
        names = leaving.names.union((item.node for item in under_way), kept_free)
        state = _until(
            state,
            (until, "a node has not been ready for long enough"),
            *((item.until, "chunks may come back to a node") for item in under_way),
            (leaving.next_expiry, "a held node nears its expiry, and its chunks leave"),
        )
        prepared = Prepared(options=PlacementOptions(leaving=names, keeping=waiting), suspended=suspended)
        findings = (*state.findings, *leaving.findings)
        view = with_devices(view, waiting & missing.keys())
        return replace(
            state, view=view, prepared=prepared, departures=departing, findings=findings, missing_devices=missing
        )


def _until(state: PassState, *ends: tuple[datetime | None, str]) -> PassState:
    """The state with the instants of the cluster's clock at which something changes, and why."""
    edges = (Edge(end + state.view.clock_skew, why) for end, why in ends if end is not None)
    return replace(state, edges=(*state.edges, *edges))


@dataclass(frozen=True, slots=True)
class FindDemand:
    phase: ClassVar[str] = "demand"

    dialect: Dialect
    requests: RequestRules
    buffers: BufferRules = field(default_factory=BufferRules)
    cache: PassCache = field(default_factory=PassCache)

    def run(self, state: PassState) -> PassState:
        followed = follow_schedules(state.effective, state.repository, state.view.objects, state.now)
        effective = with_default_fulfilment(followed.effective, self.buffers.fulfilment)
        found, findings = demands(
            effective,
            state.view,
            dialect=self.dialect,
            include_pending=state.include_pending,
            instance_types=state.instance_types,
            now=state.cluster_now,
            requests=self.requests,
            shrink_after=self.buffers.shrink_after,
            cache=self.cache,
        )
        found = with_leaving(found, state.prepared.leaving)
        found = let_down(found, state.view, state.repository)
        if state.settled:
            found = settled(found, state.view)
        leaving = leaving_balloons(found)
        prepared = replace(state.prepared, room=without_balloons(state.prepared.room, leaving))
        shapeless = {str(demand.ref) for demand in found if demand.is_shapeless}
        if shapeless:  # what room is left beside their chunks is not known
            booked = (node for node, demand, _ in prepared.options.booked if demand in shapeless)
            full = prepared.options.keeping.union(state.view.holding(shapeless), booked)
            prepared = replace(prepared, options=replace(prepared.options, keeping=full))
        state = replace(
            state,
            prepared=prepared,
            effective=effective,
            repository=followed.repository,
            demands=without_waiting_balloons(found, state.view, leaving),
            findings=(*state.findings, *followed.findings, *findings),
        )
        return replace(state, outlook=Outlook(state, self.dialect))
