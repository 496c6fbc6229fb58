"""Where the embedded cluster's pods land, and where they may not."""

from __future__ import annotations

from collections import Counter

from tests.fakes.embedded import Sandbox, workload


def two_zones() -> Sandbox:
    """Two small nodes in zone-a and one in zone-b; each holds three pods of 500m."""
    sandbox = Sandbox()
    sandbox.add_node("a1", zones=["zone-a"])
    sandbox.add_node("a2", zones=["zone-a"])
    sandbox.add_node("b1", zones=["zone-b"])
    return sandbox


def bound(sandbox: Sandbox) -> Counter[str | None]:
    """Node → pods; None counts the pending ones."""
    return Counter(sandbox.where().values())


def test_pods_are_bound_to_the_emptiest_node_first() -> None:
    sandbox = two_zones()
    sandbox.cluster.apply(workload(replicas=3))
    assert bound(sandbox) == {"node-a1": 1, "node-a2": 1, "node-b1": 1}
    assert {pod.phase for pod in sandbox.cluster.view().pods} == {"Running"}


def test_what_does_not_fit_stays_pending_with_one_event_and_is_bound_when_there_is_room() -> None:
    sandbox = two_zones()
    sandbox.cluster.apply(workload(replicas=4, cpu="1500m"))
    assert bound(sandbox)[None] == 1
    assert sandbox.reasons() == ["FailedScheduling"]
    sandbox.add_node("b2")
    assert bound(sandbox)[None] == 0


def test_higher_priority_goes_first() -> None:
    sandbox = Sandbox()
    sandbox.cluster.apply(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    )
    sandbox.cluster.apply(workload("batch", cpu="1500m"))
    sandbox.cluster.apply(workload("web", cpu="1500m", priorityClassName="high"))
    sandbox.add_node("a")
    assert {name.partition("-")[0]: node for name, node in sandbox.where().items()} == {"batch": None, "web": "node-a"}


def test_gated_pods_and_those_of_another_scheduler_are_left_alone() -> None:
    sandbox = two_zones()
    sandbox.cluster.apply(workload("gated", schedulingGates=[{"name": "wait"}]))
    sandbox.cluster.apply(workload("other", schedulerName="other"))
    assert bound(sandbox) == {None: 2}
    assert sandbox.reasons() == []
