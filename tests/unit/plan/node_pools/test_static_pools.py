"""Static NodePools that are to shrink: which pods keep their nodes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.findings import Finding
from reconciler.model.nodes import DO_NOT_DISRUPT, NodePool
from reconciler.model.pods import Pod, PodDisruptionBudget
from reconciler.model.requirements import LabelSelector
from reconciler.model.view import ClusterView
from reconciler.plan.bins import all_bins
from reconciler.plan.node_pools.static_pools import static_pool_findings
from tests.builders import node, node_pool, pod, shape
from tests.unit.plan.worlds import NOW

NODES = (node("a", pool="reports"), node("b", pool="reports"), node("c", pool="general"))
BUDGETS = (
    PodDisruptionBudget("shop", "queue", LabelSelector((("app", "queue"),)), allowed=0),
    PodDisruptionBudget("shop", "cache", LabelSelector((("app", "cache"),)), allowed=1),
)


def reports(replicas: int | None) -> NodePool:
    return replace(node_pool("reports"), replicas=replicas)


def kept(name: str, on: str, value: str = "true", *, owner_kind: str = "ReplicaSet") -> Pod:
    return replace(pod(name, node=on, owner_kind=owner_kind), annotations=((DO_NOT_DISRUPT, value),))


def found(replicas: int | None, *pods: Pod) -> tuple[Finding, ...]:
    view = ClusterView(nodes=NODES, pods=pods, pod_disruption_budgets=BUDGETS)
    return static_pool_findings([reports(replicas), node_pool("general")], all_bins(view), view, NOW)


def test_the_pods_that_keep_more_nodes_than_it_is_to_have_are_named_with_their_nodes() -> None:
    (finding,) = found(0, kept("nightly", "a"), pod("web", node="b"))
    assert finding.code == "static-pool-blocked"
    assert str(finding.ref) == "NodePool/reports"
    assert "has 2, of which 1 cannot go" in finding.message
    assert "shop/nightly on a (do-not-disrupt)" in finding.message


def test_of_many_pods_five_are_named_and_the_rest_counted() -> None:
    (finding,) = found(0, *(kept(f"job-{number}", "a") for number in range(7)))
    assert finding.message.endswith("shop/job-4 on a (do-not-disrupt) and 2 more")


@pytest.mark.parametrize(
    ("replicas", "pods"),
    [
        (1, (kept("nightly", "a"),)),  # the other node can go
        (2, (kept("one", "a"), kept("two", "b"))),  # none has to go
        (None, (kept("nightly", "a"),)),  # dynamic: Karpenter's own budgets and rules
        (0, (kept("elsewhere", "c"),)),
        (0, (pod("web", node="a"),)),
        (0, (kept("daemon", "a", owner_kind="DaemonSet"),)),
        (0, (kept("nightly", "a", "false"),)),
    ],
)
def test_nothing_is_said_where_nothing_is_in_the_way(replicas: int | None, pods: tuple[Pod, ...]) -> None:
    assert found(replicas, *pods) == ()


def test_a_duration_keeps_the_node_for_so_long() -> None:
    for minutes, findings in ((29, 1), (30, 0)):
        item = replace(kept("nightly", "a", "30m"), created=NOW - timedelta(minutes=minutes))
        assert len(found(0, item)) == findings


def test_a_spent_pod_disruption_budget_keeps_a_node_and_one_with_room_does_not() -> None:
    def of(app: str, namespace: str = "shop") -> Pod:
        return pod(app, namespace=namespace, node="a", pod_shape=shape(namespace=namespace, labels={"app": app}))

    (finding,) = found(0, of("queue"), of("cache"))
    assert finding.message.endswith("there: shop/queue on a (PodDisruptionBudget queue)")
    assert found(0, of("cache"), of("queue", namespace="other")) == ()
