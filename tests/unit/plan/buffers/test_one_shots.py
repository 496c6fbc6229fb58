"""What is left of a one-shot buffer while one of its nodes is being deleted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from reconciler.model.buffers import ONE_SHOTS_KEY, OneShot, OneShotPlace, remembered_one_shots
from reconciler.model.changes import DemandOutcome
from reconciler.model.demand import Demand
from reconciler.model.nodes import Node
from reconciler.model.placement import Holding
from reconciler.model.view import ClusterView, Inventory, LiveObject
from reconciler.plan.bins import Bin
from reconciler.plan.buffers.memory import one_shot_memory
from tests.builders import buffer_ref, resources, shape

REF = buffer_ref()
SHAPE = shape(cpu="1")


def left_after(going: Node, other: Node) -> int:
    """A chunk on each of two nodes; both have come to stand on the second, in its spare room."""
    before = OneShot(filled="2026-01-01T00:00:00Z").on((OneShotPlace("a", 1, 3), OneShotPlace("b", 1, 3)))
    view = ClusterView(
        nodes=(going, other),
        objects={REF: LiveObject(REF, {"metadata": {"uid": "1"}})},
        inventory=Inventory(memory={ONE_SHOTS_KEY: {"1": before.as_json()}}),
    )
    outcome = DemandOutcome(Demand(REF, desired=2, shape=SHAPE, one_shot=True, left_of=2), 2, 0, 0)
    bins = (Bin(going, None), Bin(other, None, (Holding(REF, 0, 2),)))
    memory = one_shot_memory([outcome], bins, view, datetime(2026, 1, 2, tzinfo=UTC))
    return remembered_one_shots(memory)["1"].left


def test_a_chunk_that_moved_off_a_node_that_is_being_deleted_is_lost_and_off_another_is_not() -> None:
    going, other = (Node(name, resources("3", "8Gi", pods="9")) for name in ("a", "b"))
    assert left_after(going, other) == 2
    assert left_after(replace(going, deleting=True), other) == 1
