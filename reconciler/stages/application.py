"""Applies the writes, keeps the inventory around them, and records events about what was done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from reconciler.cluster.apply import carry_out
from reconciler.cluster.inventory import InventoryParent
from reconciler.model.changes import ChangeSet
from reconciler.model.errors import Stalled
from reconciler.model.request_records import REQUESTS_KEY
from reconciler.plan.launching.back_offs import without_launches
from reconciler.ports import Cluster, Event
from reconciler.stages.state import PassState
from reconciler.summary.events import events, request_events


@dataclass(frozen=True, slots=True)
class ApplyWrites:
    phase: ClassVar[str] = "apply"

    cluster: Cluster
    inventory: InventoryParent
    progress: Callable[[str], None]

    def run(self, state: PassState) -> PassState:
        if not self.inventory.belongs_to(state.view.inventory.path):
            raise Stalled(
                f"the inventory {self.inventory.words} is that of {state.view.inventory.path}, so nothing is written",
                reason="InventoryOfAnotherPath",
                hint="the finding inventory-of-another-path says what to do",
            )
        plan = state.required_plan
        never_asked_for = (result.write.ref.name for result in state.unrendered)
        done = carry_out(
            self.cluster,
            state.writes,
            parent=self.inventory,
            view=state.view,
            memory=without_launches(plan.memory, never_asked_for),
            first={REQUESTS_KEY: plan.memory[REQUESTS_KEY]} if REQUESTS_KEY in plan.memory else {},
            forget=without_launches,
            progress=lambda: self.progress(self.phase),
        )
        change_set = ChangeSet((*done.results, *state.unrendered))
        self._record(events(plan, change_set, state.trigger, state.view))
        self._record(request_events(plan, change_set, state.view.pods))
        return replace(state, change_set=change_set)

    def _record(self, told: Iterable[Event]) -> None:
        """Records the events. What was written is written, so a defect here must not make the pass look failed."""
        try:
            for event in told:
                self.cluster.record(event)
        except Exception as error:  # noqa: BLE001 - whatever the defect is, an event tells it
            message = f"headroom failed to record further events, which is a defect: {type(error).__name__}: {error}"
            self.cluster.record(Event(self.inventory.ref, "Warning", "EventsFailed", message))
