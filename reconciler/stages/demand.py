"""Finds what is asked for at this instant: schedules first, then buffers, requests and pods that wait."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from reconciler.demand.combine import demands
from reconciler.demand.dialect import Dialect
from reconciler.demand.schedules import follow_schedules
from reconciler.model.provisioning_requests import RequestRules
from reconciler.outlook import Outlook
from reconciler.stages.state import PassState


@dataclass(frozen=True, slots=True)
class FindDemand:
    phase: ClassVar[str] = "demand"

    dialect: Dialect
    requests: RequestRules

    def run(self, state: PassState) -> PassState:
        followed = follow_schedules(state.effective, state.repository, state.view.objects, state.now)
        found, findings = demands(
            followed.effective,
            state.view,
            dialect=self.dialect,
            include_pending=state.include_pending,
            leaving=state.prepared.leaving,
            instance_types=state.instance_types,
            now=state.now - state.view.clock_skew,
            requests=self.requests,
        )
        return replace(
            state,
            effective=followed.effective,
            repository=followed.repository,
            outlook=Outlook(state.now, followed.effective, state.view, self.dialect, state.instance_types),
            demands=found,
            findings=(*state.findings, *followed.findings, *findings),
        )
