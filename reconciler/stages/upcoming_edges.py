"""When the next pass must be made even if nothing happens: schedules, or something that the last plan waits for, then ask for something
else."""

from __future__ import annotations

from datetime import datetime

from reconciler.demand.schedules import NextEdges
from reconciler.manifests.local_budgets import next_renewal
from reconciler.model.declared import Declared
from reconciler.model.schedules import Edge
from reconciler.outlook import Outlook
from reconciler.stages.state import PassState


class UpcomingEdges:
    """Keeps what the last pass knew about coming edges, even if one of its later stages failed."""

    def __init__(self) -> None:
        self.outlook: Outlook | None = None
        """None until a pass has got that far."""
        self._of_schedules = NextEdges()
        self._due: tuple[Edge, ...] = ()

    def remember(self, state: PassState) -> None:
        """Takes over what a pass knows so far. What it does not know yet stays as in the previous pass."""
        self.outlook = state.outlook or self.outlook
        self._due = self._due if state.plan is None else state.plan.edges

    def first(self, after: datetime, repository: Declared | None) -> Edge | None:
        """The first edge after an instant. repository: its documents as last read; budgets in local time must be compiled again by then."""
        of_schedules = None if self.outlook is None else self._of_schedules.first(self.outlook.facts.effective, after)
        edges = [] if of_schedules is None else [of_schedules]
        edges += [edge for edge in self._due if edge.at > after][:1]
        renewal = None if repository is None else next_renewal(repository, after)
        if renewal is not None:
            edges.append(Edge(renewal, "disruption budgets in local time are due to be compiled into UTC again"))
        return min(edges, key=lambda edge: edge.at, default=None)
