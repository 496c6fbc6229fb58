"""The checker, which shares nothing with kube-scheduler's model, agrees with it about orders of pods."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from reconciler.placement.place import place
from reconciler.placement.scheduler.model import PodKind, SchedulerModel
from reconciler.placement.surge.rehearsal import Rehearsal
from reconciler.placement.surge.standing import running_pods, standing_nodes
from tests.builders import node, shape
from tests.properties.pod_orders import order_violations
from tests.properties.scheduling_worlds import SchedulingWorld, scheduling_worlds
from tests.properties.surge_worlds import surge_world
from tests.properties.test_surge import names_of, problem_of
from tests.properties.wide_worlds import NAMESPACES


@settings(max_examples=60, deadline=None)
@given(world=scheduling_worlds())
def test_the_model_binds_where_the_checker_allows(world: SchedulingWorld) -> None:
    model = SchedulerModel(world.nodes, world.pods, world.kinds, NAMESPACES)
    rows = model.schedule(world.order).tolist()
    bound = [
        (world.kinds[kind].shape, model.nodes[row].name)
        for kind, row in zip(world.order, rows, strict=True)
        if row >= 0
    ]
    assert order_violations(world.nodes, world.pods, NAMESPACES, bound) == ()


@settings(max_examples=60, deadline=None)
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


@pytest.mark.parametrize("seed", [0, 3, 5, 10, 12, 19, 24, 33, 38, 40])
def test_the_waits_of_a_rehearsal_are_waits(seed: int) -> None:
    """And each other pod may be where the rehearsal has it."""
    problem = problem_of(surge_world(seed))
    placement = place(problem)
    names = names_of(placement)
    standing = standing_nodes(problem, placement, names)
    shapes = {item.ref: item.groups[0].shape for item in problem.demands}
    waits = Rehearsal(problem, placement, names).waits()
    assert waits
    for wait in waits:
        order = [(shapes[item.demand], item.node) for item in wait.bindings]
        nodes = [item.node for item in standing]
        pods = running_pods(problem, standing)
        assert order_violations(nodes, pods, problem.view.namespaces, order) == ()
        assert [item.node for item in wait.bindings if item.demand == wait.demand].count("") == wait.waiting


def test_a_wait_that_is_none_and_a_place_that_is_none_are_told() -> None:
    problem = problem_of(surge_world(3))
    placement = place(problem)
    standing = standing_nodes(problem, placement, names_of(placement))
    shape = problem.demands[0].groups[0].shape
    nodes = [item.node for item in standing]
    pods = running_pods(problem, standing)
    assert "waits, and" in order_violations(nodes, pods, {}, [(shape, "")])[0]
    full = [(shape, nodes[int(number)].name) for number in np.zeros(400)]
    assert "does not take it" in order_violations(nodes, pods, {}, full)[-1]
