"""How many nodes of a pool may be disrupted now."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.nodes import DisruptionBudget
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.plan.bins import all_bins
from reconciler.plan.node_pools.disruption_budgets import PoolState, allowed, pool_state
from tests.builders import node, node_pool
from tests.unit.plan.worlds import NOW, claim, pool_node


@pytest.mark.parametrize(
    ("budgets", "total", "count"),
    [
        (None, 10, 1),
        (None, 11, 2),
        ((), 10, None),
        ((DisruptionBudget("5"),), 10, 5),
        ((DisruptionBudget("0"),), 10, 0),
        ((DisruptionBudget("50%"), DisruptionBudget("2", ("Empty",))), 10, 2),
        ((DisruptionBudget("50%"), DisruptionBudget("2", ("Drifted",))), 10, 5),
        ((DisruptionBudget("2", ("Drifted",)),), 10, None),
        ((DisruptionBudget("2", ()),), 10, None),
        ((DisruptionBudget("many"),), 10, 0),
        ((DisruptionBudget("-1"),), 10, 0),
    ],
)
def test_the_least_budget_that_names_the_reason_counts(
    budgets: tuple[DisruptionBudget, ...] | None, total: int, count: int | None
) -> None:
    assert allowed(node_pool(budgets=budgets), "Empty", PoolState(total, 0, 0), NOW) == count


def test_disrupting_and_not_ready_nodes_use_up_every_budget() -> None:
    pool = node_pool(budgets=(DisruptionBudget("5"),))
    assert allowed(pool, "Empty", PoolState(10, disrupting=2, not_ready=1), NOW) == 2
    assert allowed(pool, "Empty", PoolState(10, disrupting=4, not_ready=3), NOW) == 0


def test_a_budget_with_a_schedule_counts_while_its_window_is_open() -> None:
    nightly = DisruptionBudget("0", schedule="0 0 * * *", duration=timedelta(hours=1))
    pool = node_pool(budgets=(nightly, DisruptionBudget("5")))
    midnight = NOW.replace(hour=0)
    assert allowed(pool, "Empty", PoolState(10, 0, 0), NOW) == 5
    assert allowed(pool, "Empty", PoolState(10, 0, 0), midnight) == 0
    assert allowed(pool, "Empty", PoolState(10, 0, 0), midnight + timedelta(minutes=59, seconds=59)) == 0
    assert allowed(pool, "Empty", PoolState(10, 0, 0), midnight + timedelta(hours=1)) == 5


def test_which_nodes_count() -> None:
    disrupted = Taint("karpenter.sh/disrupted", "", "NoSchedule")
    view = ClusterView(
        nodes=(
            pool_node("a"),
            pool_node("b", ready=False),
            pool_node("c", taints=[disrupted], ready=False),
            pool_node("d"),
            pool_node("e"),
            node("f", labels={"karpenter.sh/initialized": "false"}),
            pool_node("g", pool="other"),
            pool_node("unmanaged"),
        ),
        node_claims=(
            *(claim(f"claim-{name}", node_name=name) for name in "abcf"),
            claim("claim-d", node_name="d", deleting=True),
            claim("claim-e", node_name="e", deleting=True, conditions={"InstanceTerminating": "True"}),
            claim("claim-g", node_name="g", pool="other"),
            claim("on-its-way", node_name=None),
        ),
    )
    assert pool_state("general", all_bins(view)) == PoolState(total=4, disrupting=2, not_ready=1)
