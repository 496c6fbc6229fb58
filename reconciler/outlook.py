"""What all capacity will be over a span of time: demands, schedules and budgets together.

Reports on pull requests and the daemon's page show it. A pass does not need it, so it is computed only when somebody asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.demand.timeline import demand_spans
from reconciler.model.buffers import Dialect
from reconciler.model.timelines import CapacityTimeline
from reconciler.plan.bins import all_bins
from reconciler.plan.facts import Facts
from reconciler.plan.node_pools.budget_timeline import budget_timeline
from reconciler.plan.node_pools.disruption_budgets import pool_states, with_new_nodes
from reconciler.timetable.capacity_schedule import timeline

WEEK = timedelta(days=7)
"""How far a report looks ahead."""


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What one pass knew."""

    facts: Facts
    dialect: Dialect
    new_node_pools: Sequence[str] = ()
    """The NodePool of each node that the pass's plan makes, since budgets count them."""

    def ahead(self, now: datetime | None = None, span: timedelta = WEEK) -> CapacityTimeline:
        """The timeline from `now`, or from the pass's own instant. Sizes and nodes are those that the pass saw."""
        facts, declared = self.facts, self.facts.effective
        start = now or facts.now
        end = start + span
        pools = sorted(declared.node_pools, key=lambda pool: pool.name)
        return CapacityTimeline(
            start=start,
            end=end,
            demands=demand_spans(
                declared, facts.view, start, end, dialect=self.dialect, instance_types=facts.instance_types
            ),
            schedules=tuple(
                timeline(schedule, start, end, start)
                for schedule in sorted(declared.schedules, key=lambda schedule: schedule.ref)
            ),
            budgets=budget_timeline(
                pools, with_new_nodes(pool_states(all_bins(facts.view, ())), self.new_node_pools), start, end
            ),
        )
