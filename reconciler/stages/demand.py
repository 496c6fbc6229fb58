"""Finds what is asked for at this instant: schedules first, then buffers, requests and pods that wait."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar

from reconciler.demand.combine import demands, settled, with_leaving
from reconciler.demand.dialect import Dialect
from reconciler.demand.fulfilment import with_default_fulfilment
from reconciler.demand.pods import leaving_balloons, without_balloons, without_waiting_balloons
from reconciler.demand.schedules import follow_schedules
from reconciler.demand.shares import with_shrink_after
from reconciler.model.buffers import SHRINK_AFTER, Fulfilment
from reconciler.model.pass_memory import PassMemory
from reconciler.model.provisioning_requests import RequestRules
from reconciler.outlook import Outlook
from reconciler.plan.objects.prune import let_down
from reconciler.stages.state import PassState


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
