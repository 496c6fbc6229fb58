"""Computes what placement must know beforehand, and finds what is asked for at this instant.

- Pods for which kube-scheduler has chosen a node count as being there.
- Pods of nodes that are being deleted need another place, where nodes are planned for pods too.
- Nodes that expire soon or are to be replaced take no more chunks.
- Capacity that is booked stays where it is, and its nodes are not replaced meanwhile. So does what suspended buffers hold.
- Held nodes that are not ready for a moment, or are open to pods, keep their chunks and take no others.
- Offerings of which a launch has just failed are left alone for a while.

Demand is that of schedules first, then of buffers, requests and pods that wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar

from reconciler.demand.combine import demands, settled, with_leaving
from reconciler.demand.fulfilment import with_default_fulfilment
from reconciler.demand.kept_sizes import suspended_buffers
from reconciler.demand.pods import (
    leaving_balloons,
    leaving_demands,
    without_balloons,
    without_leaving,
    without_waiting_balloons,
)
from reconciler.demand.schedules import follow_schedules
from reconciler.demand.shares import with_shrink_after
from reconciler.demand.size import Dialect
from reconciler.model.buffers import SHRINK_AFTER, Fulfilment
from reconciler.model.pass_memory import PassMemory
from reconciler.model.provisioning_requests import RequestRules
from reconciler.model.schedules import Edge
from reconciler.outlook import Outlook
from reconciler.placement.memory import Memory
from reconciler.placement.nodes.machines import with_nominated
from reconciler.placement.problem import PlacementOptions
from reconciler.plan.bins import all_bins
from reconciler.plan.holding.consolidation import departures, opened, rooms
from reconciler.plan.holding.replacement import briefly_not_ready, leaving_bins, suspended_bins
from reconciler.plan.launching.back_offs import BackOffRules, launch_record
from reconciler.plan.objects.prune import let_down
from reconciler.plan.requests import attempts_since, booked_places
from reconciler.stages.state import PassState, Prepared


@dataclass(frozen=True, slots=True)
class Prepare:
    """options: as the settings have them. memory: the one that placement uses."""

    phase: ClassVar[str] = "view"

    options: PlacementOptions
    memory: Memory
    not_ready_grace: timedelta
    back_off: BackOffRules

    def run(self, state: PassState) -> PassState:
        seen = state.view
        view = self.memory.once("nominated", (seen,), lambda: with_nominated(seen))
        now = state.now - view.clock_skew  # objects are dated by the cluster's clock
        leaving = leaving_demands(view, now) if state.include_pending else ()
        launches = launch_record(view, now, state.instance_types, self.back_off)
        since = attempts_since(view)
        places = booked_places(view)
        suspended = suspended_bins(view, suspended_buffers(state.effective.buffers, view))
        leaving_now = leaving_bins(
            view, state.effective.node_pools, now, kept=places.kept | suspended.only, spared=suspended.some
        )
        departing = departures(view, now)
        bins = all_bins(view)
        # Once Karpenter evicts a node's pods, kube-scheduler binds them in the room that was made for them.
        evicts = any(pod.node_name is None for pod in view.pods) if departing else False
        going = {item.name for item in bins if item.is_going and evicts}
        kept_free = rooms(bins, (item for item in departing if item.node not in going), now)
        waiting = briefly_not_ready(bins, now, self.not_ready_grace, for_ever=suspended.only)
        options = replace(
            self.options,
            include_pending=state.include_pending,
            back_offs=launches.avoided(now, since=since),
            leaving=leaving_now.names.union((item.node for item in departing if item.is_under_way(now)), kept_free),
            booked=places.held,
            keeping=waiting.names | opened(bins, departing, now),
        )
        ends = (
            (waiting.until, "a node has not been ready for long enough"),
            (launches.next_end(now), "an offering that ran out may be tried again"),
            *((item.until, "chunks may come back to a node") for item in departing if item.is_under_way(now)),
            (leaving_now.next_expiry, "a held node nears its expiry, and its chunks leave"),
        )
        edges = [Edge(end + view.clock_skew, why) for end, why in ends if end is not None]
        prepared = Prepared(
            *(without_leaving(view, leaving), leaving, options, suspended.some),
            failed_in_attempts=launches.failed_since(since),
        )
        findings = (*state.findings, *leaving_now.findings)
        return replace(
            state,
            view=view,
            prepared=prepared,
            launches=launches,
            departures=departing,
            edges=(*state.edges, *edges),
            findings=findings,
        )


@dataclass(frozen=True, slots=True)
class FindDemand:
    phase: ClassVar[str] = "demand"

    dialect: Dialect
    requests: RequestRules
    fulfilment: Fulfilment = Fulfilment.PLACEHOLDER
    shrink_after: timedelta = SHRINK_AFTER
    memory: PassMemory = field(default_factory=PassMemory)

    def run(self, state: PassState) -> PassState:
        followed = follow_schedules(state.effective, state.repository, state.view.objects, state.now)
        effective = with_default_fulfilment(followed.effective, self.fulfilment)
        effective = with_shrink_after(effective, self.shrink_after)
        found, findings = demands(
            effective,
            state.view,
            dialect=self.dialect,
            include_pending=state.include_pending,
            instance_types=state.instance_types,
            now=state.cluster_now,
            requests=self.requests,
            memory=self.memory,
        )
        found = with_leaving(found, state.prepared.leaving)
        found = let_down(found, state.view, state.repository)
        if state.settled:
            found = settled(found, state.view)
        leaving = leaving_balloons(found)
        prepared = replace(state.prepared, room=without_balloons(state.prepared.room, leaving))
        state = replace(
            state,
            prepared=prepared,
            effective=effective,
            repository=followed.repository,
            demands=without_waiting_balloons(found, state.view, leaving),
            findings=(*state.findings, *followed.findings, *findings),
        )
        return replace(state, outlook=Outlook(state, self.dialect))
