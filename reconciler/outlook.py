"""What all capacity will be over a span of time: demands, schedules and budgets together.

Reports on pull requests and the daemon's page show it. A pass does not need it, so it is computed only when somebody asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.demand.dialect import Dialect
from reconciler.demand.timeline import demand_spans
from reconciler.model.declared import Declared
from reconciler.model.nodes import InstanceType
from reconciler.model.timelines import CapacityTimeline
from reconciler.model.view import ClusterView
from reconciler.plan.bins import all_bins
from reconciler.plan.node_pools.budget_timeline import budget_timeline
from reconciler.plan.node_pools.disruption_budgets import pool_states, with_new_nodes
from reconciler.timetable.capacity_schedule import timeline

WEEK = timedelta(days=7)
"""How far a report looks ahead."""


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What one pass knew. declared: what is in force, the repository over the cluster. now: the pass's instant."""

    now: datetime
    declared: Declared
    view: ClusterView
    dialect: Dialect
    instance_types: Sequence[InstanceType] = ()
    new_node_pools: Sequence[str] = ()
    """The NodePool of each node that the pass's plan makes, since budgets count them."""

    def ahead(self, now: datetime | None = None, span: timedelta = WEEK) -> CapacityTimeline:
        """The timeline from `now`, or from the pass's own instant. Sizes and nodes are those that the pass saw."""
        start = now or self.now
        end = start + span
        declared = self.declared
        pools = sorted(declared.node_pools, key=lambda pool: pool.name)
        return CapacityTimeline(
            start=start,
            end=end,
            demands=demand_spans(
                declared, self.view, start, end, dialect=self.dialect, instance_types=self.instance_types
            ),
            schedules=tuple(
                timeline(schedule, start, end, start)
                for schedule in sorted(declared.schedules, key=lambda schedule: schedule.ref)
            ),
            budgets=budget_timeline(
                pools, with_new_nodes(pool_states(all_bins(self.view, ())), self.new_node_pools), start, end
            ),
        )
