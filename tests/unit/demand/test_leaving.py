"""Pods of nodes that are being deleted are placed anew in the what-if, as far as Karpenter would make room for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.demand.combine import demands, with_leaving
from reconciler.demand.dialect import Dialect
from reconciler.demand.pods import leaving_demands, without_leaving
from reconciler.model.declared import Declared
from reconciler.model.nodes import DISRUPTED_TAINT, DO_NOT_DISRUPT, NodeClaim
from reconciler.model.pods import Pod, PodDisruptionBudget
from reconciler.model.requirements import LabelSelector, Taint, Toleration
from reconciler.model.view import ClusterView
from tests.builders import buffer, deployment, node, pod, shape

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
GOING = replace(node("going"), deleting=True)
WEB = pod("web-1", node="going", pod_shape=shape(labels={"app": "web"}))


def names(*pods: Pod, budgets: tuple[PodDisruptionBudget, ...] = ()) -> list[str]:
    view = ClusterView(nodes=(GOING, node("staying")), pods=pods, pod_disruption_budgets=budgets)
    return [demand.ref.name for demand in leaving_demands(view, NOW)]


def test_pods_of_nodes_that_stay_are_where_they_run() -> None:
    assert names(WEB, replace(WEB, name="web-2", node_name="staying")) == ["web-1"]


@pytest.mark.parametrize(
    "change",
    [
        {"owner_kind": "DaemonSet"},
        {"owner_kind": "Node"},
        {"deleting": True},
        {"annotations": ((DO_NOT_DISRUPT, "true"),)},
        {"annotations": ((DO_NOT_DISRUPT, "1h"),), "created": NOW - timedelta(minutes=59)},
    ],
    ids=str,
)
def test_left_out_are_pods_that_end_or_that_nobody_evicts(change: Mapping[str, Any]) -> None:
    assert names(replace(WEB, **change)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"deleting": True, "owner_kind": "StatefulSet"},
        {"annotations": ((DO_NOT_DISRUPT, "1h"),), "created": NOW - timedelta(minutes=60)},
        {"annotations": ((DO_NOT_DISRUPT, "soon"),)},
    ],
    ids=str,
)
def test_counted_are_pods_that_are_made_anew_and_those_whose_protection_is_over(change: Mapping[str, Any]) -> None:
    """A StatefulSet makes the next one of a name only when the last is gone."""
    assert names(replace(WEB, **change)) == ["web-1"]


def test_budgets_that_allow_none_ever_keep_a_pod_and_those_spent_for_now_do_not() -> None:
    selector = LabelSelector((("app", "web"),))
    spent = PodDisruptionBudget("shop", "spent", selector, allowed=0)
    never = PodDisruptionBudget("shop", "never", selector, allowed=0, allows_none=True)
    elsewhere = replace(never, namespace="other")
    assert names(WEB, budgets=(spent, elsewhere)) == ["web-1"]
    assert names(WEB, budgets=(never,)) == []
    assert names(WEB, budgets=(spent, replace(spent, name="second"))) == []
    unmoved = replace(WEB, shape=replace(WEB.shape, tolerations=(Toleration(DISRUPTED_TAINT, "Exists"),)))
    assert names(unmoved, budgets=(never,)) == ["web-1"]


def test_a_node_goes_with_its_nodeclaim_and_when_it_is_being_disrupted() -> None:
    claim = NodeClaim("general-1", node_name="node-1", deleting=True)
    tainted = node("node-2", taints=(Taint(DISRUPTED_TAINT, "", "NoSchedule"),))
    pods = tuple(replace(WEB, name=f"web-{number}", node_name=f"node-{number}") for number in (1, 2, 3))
    view = ClusterView(nodes=(node("node-1"), tainted, node("node-3")), node_claims=(claim,), pods=pods)
    found = leaving_demands(view, NOW)
    assert [(demand.ref.name, demand.leaves) for demand in found] == [("web-1", "node-1"), ("web-2", "node-2")]
    assert [item.name for item in without_leaving(view, found).pods] == ["web-3"]


def test_an_ordinary_pass_leaves_them_where_they_run() -> None:
    view = ClusterView(nodes=(GOING,), pods=(WEB,))
    assert demands(Declared(), view, dialect=Dialect.KARPENTER)[0] == ()
    (asked,) = with_leaving((), leaving_demands(view, NOW))
    assert (str(asked.ref), asked.leaves, asked.opens_nodes) == ("Pod/shop/web-1", "going", True)


def test_they_come_after_pods_that_wait_and_before_what_is_declared() -> None:
    waiting = pod("waits")
    view = ClusterView(nodes=(GOING,), pods=(waiting, WEB))
    found, _ = demands(Declared(buffers=(buffer(),), workloads=(deployment(),)), view, dialect=Dialect.KARPENTER)
    names = [item.ref.name for item in with_leaving(found, leaving_demands(view, NOW))]
    assert names == ["waits", "web-1", "web"]
