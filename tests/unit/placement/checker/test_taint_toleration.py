"""The checker finds chunks that are not alone on the nodes which are to be theirs alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.demand import Demand
from reconciler.model.placement import Holding, OccupiedBin, Placement
from reconciler.model.requirements import Taint, Toleration
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from tests.builders import buffer_ref, demand, instance_type, node, node_pool, shape

TYPES = (instance_type("small", cpu="2"),)
EMPTY = ClusterView()
OWN = Taint("headroom.dev/reserved", "shop.train", "NoSchedule")
TOLERANT = replace(shape(), tolerations=(Toleration("headroom.dev/reserved", "Exists"),))
OTHER = buffer_ref("other")


def found(placement: Placement, *demands: Demand, view: ClusterView = EMPTY) -> tuple[str, ...]:
    return violations(Problem(view, (node_pool(),), TYPES, demands), placement)


def reserved_placement(*planned_taints: Taint, beside: bool = False) -> Placement:
    """One planned node with one chunk that has a taint of its own, or none; beside it one of another demand."""
    asked = demand(count=1, pod_shape=replace(TOLERANT, own_taint=OWN))
    placement = place(Problem(ClusterView(), (node_pool(),), TYPES, (asked,)))
    (planned,) = placement.planned
    more = (Holding(OTHER, 0, 1),) if beside else ()
    holdings = tuple(sorted((*planned.holdings, *more)))
    return replace(placement, planned=(replace(planned, taints=planned_taints, holdings=holdings),))


@pytest.mark.parametrize(
    ("taints", "beside", "words"),
    [
        ((OWN,), False, ""),
        ((), False, "others than those that the node is for"),
        ((replace(OWN, value="shop.tune"),), False, "others than those that the node is for"),
        ((OWN,), True, "others than those that the node is for"),
    ],
)
def test_finds_chunks_that_are_not_alone_on_nodes_of_their_own(
    taints: tuple[Taint, ...],
    beside: bool,  # noqa: FBT001 - the case
    words: str,
) -> None:
    own = demand(count=1, pod_shape=replace(TOLERANT, own_taint=OWN))
    other = demand("other", count=1, pod_shape=TOLERANT)
    broken = found(reserved_placement(*taints, beside=beside), own, *((other,) if beside else ()))
    assert any(words in item for item in broken) if words else broken == ()


def test_finds_chunks_that_do_not_tolerate_their_own_taint() -> None:
    own = demand(count=1, pod_shape=replace(shape(), own_taint=OWN))
    assert any("a taint of its own is not tolerated" in item for item in found(reserved_placement(OWN), own))


@pytest.mark.parametrize("booked", [False, True])
@pytest.mark.parametrize("opens_nodes", [True, False])
def test_finds_chunks_on_a_shared_node_booked_or_not(*, opens_nodes: bool, booked: bool) -> None:
    own = replace(demand(count=1, pod_shape=replace(TOLERANT, own_taint=OWN)), opens_nodes=opens_nodes, booked=booked)
    occupied = OccupiedBin("one", None, (Holding(buffer_ref(), 0, 1),))
    broken = found(Placement((occupied,)), own, view=ClusterView(nodes=(node("one"),)))
    assert any("was not made for them alone" in item for item in broken)
