"""A year of disruption budgets: 200 NodePools, 4 reasons, 50 budgets each. Run as a process by the benchmarks.

python -m tests.perf.budget_year         # hour by hour, as a terminal shows it
python -m tests.perf.budget_year json    # each change, as JSON: 2.9 million rows
"""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime, timedelta

from reconciler.model.nodes import DisruptionBudget, NodeClaimTemplate, NodePool
from reconciler.model.schedules import BudgetPeriod
from reconciler.plan.node_pools.budget_timeline import budget_cells, pieces_over
from reconciler.plan.node_pools.disruption_budgets import PoolState
from reconciler.report.budgets import budget_spans_json

POOLS, BUDGETS, HOURS = 200, 50, 365 * 24
START = datetime(2026, 1, 1, tzinfo=UTC)
_REASONS = (None, ("Empty",), ("Drifted",), ("Underutilized", "Drifted"), ("Unhealthy",), ("Empty", "Unhealthy"))
_DAYS = ("*", "mon-fri", "sat,sun", "mon", "tue", "wed", "fri")


def pools() -> list[NodePool]:
    """Always the same: some 850 different windows, at quarters of an hour, in no order."""
    draw = random.Random(5)

    def budget() -> DisruptionBudget:
        schedule = f"{draw.choice((0, 15, 30, 45))} {draw.randrange(24)} * * {draw.choice(_DAYS)}"
        return DisruptionBudget(
            draw.choice(("0", "1", "5", "12", "10%", "20%", "50%")),
            draw.choice(_REASONS),
            schedule,
            timedelta(minutes=draw.choice((30, 60, 120, 240, 480))),
        )

    return [
        NodePool(f"pool-{index}", NodeClaimTemplate(), budgets=tuple(budget() for _ in range(BUDGETS)))
        for index in range(POOLS)
    ]


def by_hour(found: list[NodePool]) -> None:
    edges = [START + index * timedelta(hours=1) for index in range(HOURS + 1)]
    rows = budget_cells(found, _states(found), edges)
    assert len(rows) == POOLS * 4
    assert all(len(row.allowed) == HOURS for row in rows)


def as_json(found: list[NodePool]) -> None:
    year = BudgetPeriod(START, START + timedelta(hours=HOURS), tuple(found))
    parts = budget_spans_json(pieces_over([year], _states(found)), now=START)
    assert sum(map(len, parts)) > 10**9


def _states(found: list[NodePool]) -> dict[str, PoolState]:
    return {pool.name: PoolState(30, 1, 1) for pool in found}


if __name__ == "__main__":
    (as_json if sys.argv[1:] == ["json"] else by_hour)(pools())
