"""The order of demands, and which pods are pending ones."""

from __future__ import annotations

from dataclasses import replace

from reconciler.demand.combine import demands
from reconciler.demand.dialect import Dialect
from reconciler.demand.pending import pending_demands
from reconciler.model.declared import Declared
from reconciler.model.view import ClusterView
from reconciler.model.workloads import PriorityClass
from tests.builders import buffer, deployment, pod, shape


def test_only_pods_that_wait_for_a_node_are_pending() -> None:
    view = ClusterView(
        pods=(
            pod("waits"),
            pod("runs", node="node-1"),
            pod("daemon", owner_kind="DaemonSet"),
            replace(pod("gated"), gated=True),
            replace(pod("leaves"), deleting=True),
        ),
    )
    (only,) = pending_demands(view, include_pending=False)
    assert str(only.ref) == "Pod/shop/waits"
    assert (only.desired, only.opens_nodes, only.is_pending_pod) == (1, False, True)


def test_new_nodes_are_planned_for_pending_pods_only_on_request() -> None:
    view = ClusterView(pods=(pod(),))
    assert [item.opens_nodes for item in pending_demands(view, include_pending=True)] == [True]


def test_pending_pods_come_first_then_priority_then_names() -> None:
    view = ClusterView(pods=(pod("b"), replace(pod("c"), priority=100), pod("a")))
    declared = Declared(
        buffers=(buffer("z", target="db"), buffer("y"), buffer("x")),
        workloads=(deployment(), deployment("db", pod_shape=replace(shape(), priority_class_name="gold"))),
        priority_classes=(PriorityClass("gold", 5),),
    )
    ordered, _ = demands(declared, view, dialect=Dialect.KARPENTER)
    assert [item.ref.name for item in ordered] == ["c", "a", "b", "z", "x", "y"]
