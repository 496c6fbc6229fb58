"""kube-scheduler's model over generated worlds: it binds the same however its loops run, and what it binds can be taken back."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.placement.scheduler.model import SchedulerModel
from reconciler.placement.scheduler.walk import PLAIN, compiled_walk
from tests.builders import pod
from tests.properties.scheduling_worlds import SchedulingWorld, scheduling_worlds
from tests.properties.wide_worlds import NAMESPACES


def modelled(world: SchedulingWorld) -> SchedulerModel:
    return SchedulerModel(world.nodes, world.pods, world.kinds, NAMESPACES)


def amounts(model: SchedulerModel) -> list[object]:
    """All that binding changes."""
    arrays = model._arrays
    return [item.tolist() for item in (*arrays.bins, *arrays.counters)]


@settings(max_examples=40, deadline=None)
@given(world=scheduling_worlds(), seed=st.integers(0, 3))
def test_the_loops_as_written_and_compiled_agree(world: SchedulingWorld, seed: int) -> None:
    """A read of what was never written would show here: compiled it finds what lies in memory."""
    lots = np.random.default_rng(seed).permutation(len(world.nodes))
    with patch("reconciler.placement.scheduler.model.SchedulerModel._walk", lambda *_: PLAIN):
        plain = modelled(world).schedule(world.order, lots).tolist()
    with patch("reconciler.placement.scheduler.model.SchedulerModel._walk", lambda *_: compiled_walk()):
        assert modelled(world).schedule(world.order, lots).tolist() == plain
    assert compiled_walk() is not PLAIN, "numba is a dependency: its wheel should be there"


@settings(max_examples=40, deadline=None)
@given(world=scheduling_worlds(), data=st.data())
def test_what_is_taken_back_leaves_no_trace(world: SchedulingWorld, data: st.DataObject) -> None:
    model = modelled(world)
    before = amounts(model)
    first = model.schedule(world.order).tolist()
    model.take_back()
    assert amounts(model) == before

    model.schedule(data.draw(st.permutations(world.order)))
    model.take_back()
    assert amounts(model) == before
    assert model.schedule(world.order).tolist() == first


@settings(max_examples=40, deadline=None)
@given(world=scheduling_worlds())
def test_a_pod_counts_the_same_whether_it_ran_before_or_the_model_bound_it(world: SchedulingWorld) -> None:
    model = modelled(world)
    rows = model.schedule(world.order).tolist()
    came = tuple(
        pod(f"came-{number}", namespace=shape.namespace, node=model.nodes[row].name, pod_shape=shape)
        for number, (kind, row) in enumerate(zip(world.order, rows, strict=True))
        for shape in [world.kinds[kind].shape]
        if row >= 0
    )
    assert amounts(modelled(replace(world, pods=(*world.pods, *came)))) == amounts(model)
