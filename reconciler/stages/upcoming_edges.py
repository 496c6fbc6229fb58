"""When the next pass must be made whatever happens: what is declared, or due by the last plan, then asks for something else."""

from __future__ import annotations

from datetime import datetime

from reconciler.demand.schedules import NextEdges
from reconciler.manifests.local_budgets import next_renewal
from reconciler.model.declared import Declared
from reconciler.model.edges import Edge
from reconciler.outlook import Outlook
from reconciler.stages.state import PassState


class UpcomingEdges:
    """Keeps what the last pass knew of the time to come, also where a later stage of it failed."""

    def __init__(self) -> None:
        self.outlook: Outlook | None = None
        """None before a pass has got that far."""
        self._of_schedules = NextEdges()
        self._due: tuple[Edge, ...] = ()

    def remember(self, state: PassState) -> None:
        """What a pass knows so far. What it does not know yet stays as the pass before had it."""
        self.outlook = state.outlook or self.outlook
        self._due = self._due if state.plan is None else state.plan.edges

    def first(self, after: datetime, repository: Declared | None) -> Edge | None:
        """The first after an instant. repository: its documents as last read; their budgets in local time are compiled for a while."""
        of_schedules = None if self.outlook is None else self._of_schedules.first(self.outlook.declared, after)
        edges = [] if of_schedules is None else [of_schedules]
        edges += [edge for edge in self._due if edge.at > after][:1]
        renewal = None if repository is None else next_renewal(repository, after)
        if renewal is not None:
            edges.append(Edge(renewal, "disruption budgets in local time are due to be compiled into UTC again"))
        return min(edges, key=lambda edge: edge.at, default=None)
