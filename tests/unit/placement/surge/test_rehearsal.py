"""What is said of full buffers whose pods come in another order than they were planned in."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from reconciler.model.attachments import PersistentVolume, Storage, VolumeClaim
from reconciler.model.nodes import HOSTNAME_LABEL, NODEPOOL_LABEL, SCARCE_TAINTS
from reconciler.model.placement import Placement, Wait
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.placement.checker.pod_orders import rehearsal_violations
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.placement.surge.rehearsal import Rehearsal
from tests.builders import buffer_ref, demand, instance_type, node, node_pool, one_of, pod, shape, term

BATCH_ONLY = shape("3", labels={"app": "batch"}, node_selector={NODEPOOL_LABEL: "batch"})
ANYWHERE = shape("3", labels={"app": "web"})


def two_pools(*, busy: bool = False) -> Problem:
    """A node of each NodePool with room for one pod. busy: the node of general is the fuller one already."""
    nodes = (node("general-1"), node("batch-1", pool="batch"))
    pods = (pod("busy", node="general-1", pod_shape=shape("500m")),) if busy else ()
    return Problem(
        ClusterView(nodes=nodes, pods=pods, namespaces={"shop": {}}),
        demands=(demand("web", count=1, pod_shape=ANYWHERE), demand("batch", count=1, pod_shape=BATCH_ONLY)),
    )


def rehearsed(problem: Problem, *, scarce: tuple[str, ...] = ()) -> tuple[Wait, ...]:
    placement = place(problem)
    assert placement.missing == 0
    return Rehearsal(problem, placement, names=(), scarce=dict.fromkeys(scarce, 1)).waits()


def test_pods_that_could_go_anywhere_take_the_room_of_those_that_cannot() -> None:
    (wait,) = rehearsed(two_pools(busy=True))
    assert (
        wait.words
        == "1 of 1 may have to wait when web is scaled up before batch: pods of web take room that pods of batch need"
    )
    assert [(item.demand.name, item.node) for item in wait.bindings] == [("web", "batch-1"), ("batch", "")]
    other = ObjectRef("autoscaling.x-k8s.io", "Buffer", "shop", "batch")
    assert "when Buffer/shop/batch is scaled up before batch" in replace(wait, before=other).words


def test_volumes_keep_pods_where_they_can_be_used_and_the_checker_agrees() -> None:
    problem = two_pools(busy=True)
    storage = Storage(
        (PersistentVolume("disk", (NodeSelectorTerm((one_of(NODEPOOL_LABEL, "batch"),)),)),),
        (VolumeClaim("shop", "data", volume="disk", bound=True),),
    )
    batch = demand("batch", count=1, pod_shape=replace(BATCH_ONLY, node_selector=(), volume_claims=("data",)))
    problem = replace(problem, view=replace(problem.view, storage=storage), demands=(problem.demands[0], batch))
    placement = place(problem)
    rehearsal = Rehearsal(problem, placement, names=())
    waits = rehearsal.waits()
    assert [wait.demand.name for wait in waits] == ["batch"]
    shown = (rehearsal.nodes, rehearsal.running, waits, rehearsal.orders())
    assert list(rehearsal_violations(problem, placement, *shown)) == []


def test_ties_are_broken_as_is_worst() -> None:
    """Both nodes are the same to web, and kube-scheduler takes either."""
    assert [wait.demand.name for wait in rehearsed(two_pools())] == ["batch"]


def test_a_taint_on_the_scarce_room_sends_the_others_elsewhere_first() -> None:
    assert rehearsed(two_pools(busy=True), scarce=("batch-1",)) == ()


def test_a_second_taint_makes_a_node_the_last_that_others_take() -> None:
    """web's two pods have a node of their own, one that batch needs, and one with a taint that nobody else comes to."""
    problem = two_pools()
    problem = replace(
        problem,
        view=replace(problem.view, nodes=(*problem.view.nodes, node("general-2"))),
        demands=(demand("web", count=2, pod_shape=ANYWHERE), problem.demands[1]),
    )
    placement = place(problem)

    def waiting(**scarce: int) -> list[str]:
        marks = {name.replace("_", "-"): count for name, count in scarce.items()}
        return [item.demand.name for item in Rehearsal(problem, placement, (), marks).waits()]

    assert waiting(general_2=1, batch_1=1) == ["batch"]
    assert waiting(general_2=1, batch_1=2) == []


def test_a_taint_that_is_on_a_node_already_counts_only_where_it_is_asked_for() -> None:
    problem = two_pools(busy=True)
    nodes = tuple(replace(item, taints=SCARCE_TAINTS[:1]) for item in problem.view.nodes if item.name == "batch-1")
    marked = replace(problem, view=replace(problem.view, nodes=(problem.view.nodes[0], *nodes)))
    assert len(rehearsed(marked)) == 1


def apart_from_itself(app: str) -> PodShape:
    return shape("1", labels={"app": app}, pod_anti_affinity=(term(HOSTNAME_LABEL, app),))


def test_pods_that_wait_for_others_are_tried_again() -> None:
    """The first comes too early for the pod that it wants to be with; the buffers' room is enough all the same."""
    beside_web = term(HOSTNAME_LABEL)
    beside = shape("1", labels={"app": "side"}, pod_affinity=(beside_web,))
    web = shape("1", labels={"app": "web"})
    problem = Problem(
        ClusterView(nodes=(node("general-1"),), namespaces={"shop": {}}),
        demands=(demand("a-web", count=1, pod_shape=web), demand("side", count=1, pod_shape=beside)),
    )
    waits = rehearsed(problem)
    assert [(wait.demand.name, wait.alone) for wait in waits] == [("side", True)], "alone it never comes beside web"
    assert "even when nothing but side is scaled up" in waits[0].words


def test_one_buffer_on_nodes_of_its_own_is_firm() -> None:
    """Of planned nodes too, each taken for the cheapest that it may become."""
    problem = Problem(
        ClusterView(namespaces={"shop": {}}),
        node_pools=(node_pool(),),
        instance_types=(instance_type(),),
        demands=(demand("web", count=5, pod_shape=apart_from_itself("web")),),
    )
    placement = place(problem)
    assert len(placement.planned) == 5
    assert Rehearsal(problem, placement, names=[f"new-{number}" for number in range(5)]).waits() == ()


def test_nothing_is_promised_where_nothing_has_room() -> None:
    problem = two_pools()
    assert Rehearsal(problem, Placement(), names=()).waits() == ()


def test_the_order_of_demands_changes_nothing() -> None:
    problem = two_pools(busy=True)
    turned = replace(problem, demands=tuple(reversed(problem.demands)))
    assert rehearsed(turned) == rehearsed(problem)
    assert rehearsed(problem)[0].demand == buffer_ref("batch")


def test_compiled_loops_search_through_thousands_of_orders_in_a_small_cluster_too() -> None:
    """As they are written they took some 2 s of CPU in each pass over three nodes."""
    several = (demand("web", count=13, pod_shape=shape("200m", labels={"app": "web"})), two_pools().demands[1])
    with patch("reconciler.placement.surge.rehearsal.compiled_walk") as compiled:
        rehearsed(two_pools())
        assert not compiled.called, "for two pods they are not worth loading"
        rehearsed(replace(two_pools(), demands=several))
        assert compiled.called
