"""Nodes that chunks must leave before Karpenter takes them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.nodes import DO_NOT_DISRUPT, DisruptionBudget
from reconciler.model.pods import PodDisruptionBudget
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.plan.holding.replacement import EXPIRY_LEAD, leaving_bins
from tests.builders import node_pool, pod, selects, shape
from tests.unit.plan.worlds import A_PERSONS, HELD, NOW, pairs, pool_node, together, with_node

DAY = timedelta(hours=24)


def leaving_names(*args: Any, **options: Any) -> frozenset[str]:
    return leaving_bins(*args, **options).names


@pytest.mark.parametrize(
    ("age", "expire_after", "leaves"),
    [
        (DAY - EXPIRY_LEAD, DAY, True),
        (DAY - EXPIRY_LEAD - timedelta(seconds=1), DAY, False),
        (DAY * 30, None, False),
        # A short life has a short lead: otherwise a new node would be on its way out at once.
        (timedelta(minutes=5), timedelta(minutes=10), False),
        (timedelta(minutes=8), timedelta(minutes=10), True),
    ],
)
def test_a_node_is_left_before_it_expires(age: timedelta, expire_after: timedelta | None, leaves: bool) -> None:  # noqa: FBT001 - a case
    view = with_node("node-1", created=NOW - age, expire_after=expire_after)
    assert leaving_names(view, [node_pool()], NOW) == (frozenset({"node-1"}) if leaves else frozenset())


def drifted(name: str, annotations: dict[str, str] | None = None, age: int = 1) -> ClusterView:
    return with_node(name, annotations, conditions={"Drifted": "True"}, created=NOW - timedelta(hours=age))


def budget(nodes: str) -> DisruptionBudget:
    return DisruptionBudget(nodes, ("Drifted",))


def test_drifted_held_nodes_are_left_oldest_first_within_the_budget() -> None:
    view = together(
        drifted("node-1", HELD, 1), drifted("node-2", HELD, 3), drifted("node-3", HELD, 2), with_node("node-4", HELD)
    )
    pool = node_pool(budgets=(budget("2"),))
    assert leaving_names(view, [pool], NOW) == {"node-2", "node-3"}
    assert leaving_names(view, [replace(pool, budgets=())], NOW) == {"node-1", "node-2", "node-3"}
    assert leaving_names(view, [replace(pool, budgets=(budget("0"),))], NOW) == frozenset()


def test_those_released_and_not_yet_taken_use_up_the_budget() -> None:
    pool = node_pool(budgets=(budget("1"),))
    assert leaving_names(together(drifted("node-1", HELD), drifted("node-2")), [pool], NOW) == {"node-2"}
    taken = drifted("node-2")
    taint = Taint("karpenter.sh/disrupted", "", "NoSchedule")
    taken = replace(taken, nodes=(pool_node("node-2", taints=[taint]),))
    assert leaving_names(together(drifted("node-1", HELD), taken), [pool], NOW) == frozenset()
    assert leaving_names(drifted("node-1", HELD), [pool], NOW) == {"node-1"}


def blocked(name: str, by: str, **fields: Any) -> ClusterView:
    """A drifted node that headroom does not hold, and that Karpenter cannot disrupt at present."""
    if by == "a person's annotation":
        return with_node(name, A_PERSONS, conditions={"Drifted": "True"}, **fields)
    annotations = {DO_NOT_DISRUPT: "true"} if by == "do-not-disrupt" else {}
    runs = pod("db-0", node=name, pod_shape=shape(labels={"app": "db"}), annotations=pairs(annotations))
    budgets = (PodDisruptionBudget("shop", "db", selects("db"), allowed=0),) if by == "a budget" else ()
    view = with_node(name, conditions={"Drifted": "True"}, **fields)
    return replace(view, pods=(runs,), pod_disruption_budgets=budgets)


@pytest.mark.parametrize("by", ["a person's annotation", "do-not-disrupt", "a budget"])
def test_a_drifted_node_that_karpenter_cannot_take_now_takes_no_turn(by: str) -> None:
    stuck = blocked("node-2", by)
    both = replace(together(drifted("node-1", HELD), stuck), pod_disruption_budgets=stuck.pod_disruption_budgets)
    pool = node_pool(budgets=(budget("1"),))
    assert leaving_names(both, [pool], NOW) == {"node-1", "node-2"}
    if by == "a person's annotation":
        return
    # With terminationGracePeriod Karpenter takes the node all the same, so that it is first.
    forced = blocked("node-2", by, termination_grace_period=timedelta(hours=1))
    both = replace(together(drifted("node-1", HELD), forced), pod_disruption_budgets=forced.pod_disruption_budgets)
    assert leaving_names(both, [pool], NOW) == {"node-2"}


def test_what_waits_says_for_what_and_since_when() -> None:
    held = with_node("node-1", HELD, conditions={"Drifted": "True"}, changed={"Drifted": NOW - timedelta(hours=3)})
    pool = node_pool(budgets=(budget("1"),))
    (finding,) = leaving_bins(together(held, drifted("node-2")), [pool], NOW).findings
    assert finding.code == "drift-waits"
    assert finding.message == (
        "1 held node that has drifted waits for the Drifted budget: node-1 (since 2026-11-21 09:00 UTC). "
        "It allows 1 now (the only budget binds: 1 node at most); before it goes node-2"
    )
    closed = replace(pool, budgets=(budget("0"),))
    (finding,) = leaving_bins(held, [closed], NOW).findings
    assert "It allows 0 now (the only budget binds: no node at all)" in finding.message
    assert leaving_bins(held, [pool], NOW).findings == ()


def old(name: str, hours: int) -> ClusterView:
    return with_node(name, HELD, created=NOW - timedelta(hours=hours), expire_after=DAY)


def test_of_many_that_expire_together_a_quarter_is_left_at_a_time_the_oldest_first() -> None:
    view = together(*(old(f"node-{hours}", hours) for hours in range(24, 32)))
    assert leaving_names(view, [node_pool()], NOW) == {"node-31", "node-30"}


def test_one_that_is_still_on_its_way_is_never_left() -> None:
    view = with_node("node-1", HELD, created=NOW - 2 * DAY, expire_after=DAY)
    coming = replace(view, nodes=(), node_claims=tuple(replace(item, node_name=None) for item in view.node_claims))
    assert leaving_names(view, [node_pool()], NOW) == {"node-1"}
    assert leaving_names(coming, [node_pool()], NOW) == frozenset()
