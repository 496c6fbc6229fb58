"""What a plan says of pods that kube-scheduler has chosen a node for."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.view import ClusterView
from reconciler.placement.nodes.machines import with_nominated
from reconciler.plan.findings import nominated_notes
from tests.builders import node, pod


def notes(*nominated: str) -> tuple[str, ...]:
    """Of one pod for each node that was chosen; only node a is there."""
    pods = tuple(replace(pod(f"web-{number}"), nominated_node=name) for number, name in enumerate(nominated))
    return nominated_notes(with_nominated(ClusterView(nodes=(node("a"),), pods=pods)))


def test_one_that_counts_on_its_node() -> None:
    (note,) = notes("a")
    assert note == (
        "Pod/shop/web-0 waits for room on a, which kube-scheduler has chosen for it (status.nominatedNodeName): it counts as "
        "running there, and no node is planned for it, as Karpenter makes none"
    )


def test_one_whose_node_is_gone() -> None:
    (note,) = notes("gone")
    assert note == (
        "Pod/shop/web-0 was to go to gone, which is gone or takes no pods (status.nominatedNodeName): it is placed like any other "
        "pod; Karpenter makes no node for it until kube-scheduler withdraws the nomination"
    )


def test_of_many_three_are_named() -> None:
    (note,) = notes(*"aaaaa")

    assert "Pod/shop/web-2 waits" in note
    assert "Pod/shop/web-3" not in note
    assert " and 2 more (status.nominatedNodeName): they count as running there" in note


def test_nothing_is_said_of_others() -> None:
    assert nominated_notes(ClusterView(pods=(pod("plain"), pod("bound", node="a")))) == ()
