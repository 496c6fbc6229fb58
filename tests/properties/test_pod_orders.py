"""The checker, which shares nothing with kube-scheduler's model, agrees with it about orders of pods, and objects where the model is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings

from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import HOSTNAME_LABEL, Node
from reconciler.model.placement import Binding
from reconciler.model.pods import HostPort, PodShape
from reconciler.model.requirements import Toleration
from reconciler.model.view import ClusterView
from reconciler.placement.checker.pod_orders import order_violations, rehearsal_violations
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.placement.scheduler.model import PodKind, SchedulerModel
from reconciler.placement.surge.rehearsal import Rehearsal
from tests.builders import buffer_ref, node, shape
from tests.properties.scheduling_worlds import SchedulingWorld, scheduling_worlds
from tests.properties.surge_worlds import surge_world
from tests.properties.test_surge import names_of
from tests.properties.wide_worlds import NAMESPACES


@settings(max_examples=40, deadline=None)
@given(world=scheduling_worlds())
def test_the_nodes_that_take_a_pod_are_those_of_the_model(world: SchedulingWorld) -> None:
    """As each pod comes. So it is bound where the checker allows it, and waits only where no node does.

    Each node is a host of its own to the checker, as to placing (docs/placement.md), also one without that label."""
    assume(all(item.label(HOSTNAME_LABEL) for item in world.nodes))
    model = SchedulerModel(world.nodes, world.pods, world.kinds, NAMESPACES)
    view = ClusterView(nodes=world.nodes, pods=world.pods, namespaces=NAMESPACES)
    refs = [buffer_ref(f"kind-{number}") for number in range(len(world.kinds))]
    groups = [(ChunkGroup(item.shape, 1),) for item in world.kinds]
    problem = Problem(view, demands=tuple(Demand(ref, group, 1) for ref, group in zip(refs, groups, strict=True)))
    came: list[Binding] = []
    for kind in world.order:
        waits = Binding(refs[kind], 0, "")
        count = model.able(kind)
        able = {model.nodes[row].name for row in model._arrays.scratch[0][:count]}
        assert set(order_violations(problem, world.nodes, world.pods, [*came, waits])) == {
            f"{refs[kind]}: a pod waits, and {name} takes it" for name in able
        }
        row = int(model.schedule([kind])[0])
        came += [replace(waits, node=model.nodes[row].name)] if row >= 0 else []
    assert list(order_violations(problem, world.nodes, world.pods, came)) == []


@settings(max_examples=40, deadline=None)
@given(world=scheduling_worlds())
def test_who_always_finds_room_never_waits(world: SchedulingWorld) -> None:
    model = SchedulerModel(world.nodes, world.pods, world.kinds, NAMESPACES)
    sure = model.always_bound(np.bincount(world.order, minlength=len(world.kinds)))
    rows = model.schedule(world.order).tolist()
    assert not [kind for kind, row in zip(world.order, rows, strict=True) if row < 0 and sure[kind]]


def test_a_pod_always_finds_room_where_all_that_comes_cannot_fill_the_nodes() -> None:
    kinds = [PodKind(shape("1")), PodKind(shape("2"))]
    model = SchedulerModel([node(f"node-{number}", cpu="4") for number in range(3)], [], kinds, {})
    assert model.always_bound(np.array([2, 1])).all()
    assert not model.always_bound(np.array([6, 3])).any()


def doubts(seed: int) -> list[str]:
    problem = surge_world(seed)
    placement = place(problem)
    made = Rehearsal(problem, placement, names_of(placement))
    return list(rehearsal_violations(problem, placement, made.nodes, made.running, made.waits(), made.orders()))


@pytest.mark.parametrize("seed", [0, 3, 5, 10, 12, 19, 24, 33, 38, 40])
def test_the_checker_agrees_with_a_rehearsal(seed: int) -> None:
    assert doubts(seed) == []


def test_demands_of_several_shapes_are_judged_by_each() -> None:
    problem = surge_world(3)
    both = tuple(group for item in problem.demands for group in item.groups)
    problem = replace(problem, demands=(replace(problem.demands[0], groups=both), *problem.demands[1:]))
    placement = place(problem)
    made = Rehearsal(problem, placement, names_of(placement))
    assert {item.group for order in made.orders() for item in order} == set(range(len(both)))
    assert list(rehearsal_violations(problem, placement, made.nodes, made.running, made.waits(), made.orders())) == []


TOLERANT = (Toleration("", "Exists"),)
MISTAKES: dict[str, tuple[Callable[[PodShape], PodShape], str]] = {
    "smaller": (lambda found: replace(found, requests=shape("100m", "64Mi").requests), "is overcommitted"),
    "larger": (lambda found: replace(found, requests=found.requests + found.requests), "a pod waits, and"),
    "tolerant": (lambda found: replace(found, tolerations=TOLERANT), "a taint is not tolerated"),
    "picky": (lambda found: replace(found, node_selector=(("no", "node"),)), "a pod waits, and"),
    "anywhere": (lambda found: replace(found, node_selector=()), "labels are not those"),
    "not spread": (lambda found: replace(found, topology_spread=()), "exceeds maxSkew"),
    "in company": (lambda found: replace(found, pod_anti_affinity=()), "anti-affinity by"),
    "lonely": (lambda found: replace(found, pod_affinity=()), "has no company"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_checker_objects_where_the_model_takes_pods_for_other_than_they_are(mistake: str) -> None:
    changed, words = MISTAKES[mistake]
    with patch(
        "reconciler.placement.surge.rehearsal.PodKind", lambda found, **others: PodKind(changed(found), **others)
    ):
        assert any(words in item for seed in range(12) for item in doubts(seed))


@pytest.mark.parametrize(
    ("there", "wanted", "words"),
    [
        (node(unschedulable=True), shape(), "node-1: is cordoned"),
        (node(), shape(host_ports=(HostPort(80),)), "node-1: host ports [80] clash"),
    ],
)
def test_the_checker_objects_to_pods_on_a_closed_node_and_to_a_port_that_is_taken(
    there: Node, wanted: PodShape, words: str
) -> None:
    ref = buffer_ref("web")
    problem = Problem(ClusterView(nodes=(there,)), demands=(Demand(ref, (ChunkGroup(wanted, 2),), 2),))
    assert set(order_violations(problem, [there], [], [Binding(ref, 0, there.name)] * 2)) == {words}


def test_the_checker_objects_to_waits_that_nobody_is_told_of_and_to_pods_that_are_left_out() -> None:
    problem = surge_world(3)
    placement = place(problem)
    made = Rehearsal(problem, placement, names_of(placement))

    def found(*told: object) -> str:
        return " ".join(rehearsal_violations(problem, placement, made.nodes, made.running, told, made.orders()))  # type: ignore[arg-type]

    (wait,) = made.waits()
    assert found(wait) == ""
    assert "nobody is told" in found()
    assert "wait as it is told" in found(replace(wait, waiting=wait.waiting + 1))
    assert "not as many pods come as have room" in found(replace(wait, bindings=wait.bindings[1:]))
    elsewhere = (replace(wait.bindings[0], node="node-nobody-knows"), *wait.bindings[1:])
    assert "there is no node node-nobody-knows" in found(replace(wait, bindings=elsewhere))
