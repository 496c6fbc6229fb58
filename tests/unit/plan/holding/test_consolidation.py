"""Which held nodes may be left while another one of their NodePool is on its way out, or open to pods."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.departures import Departure
from reconciler.plan.bins import all_bins
from reconciler.plan.holding.consolidation import candidates
from tests.builders import node_pool
from tests.unit.plan.worlds import HELD, NOW, chunks, occupied, together, with_node

LATER = NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    ("admits", "seconds", "may_be_left"),
    [((), 599, False), ((), 600, True), (("node-3",), 59, False), (("node-3",), 60, True)],
    ids=["a node is being left", "Karpenter has not taken it for ten minutes", "a node is open", "for a minute"],
)
def test_another_node_waits_for_it_and_not_for_ever(
    admits: tuple[str, ...], seconds: int, *, may_be_left: bool
) -> None:
    view = together(with_node("node-1", HELD), with_node("node-2"))
    since = LATER - timedelta(seconds=seconds)
    known = Departure("node-2", since, since + timedelta(minutes=30), 0.1, admits=admits)
    found, next_look = candidates(
        *(all_bins(view, occupied(node_1=[chunks()])), [node_pool()], view, LATER),
        staying=(),
        known=[known],
        price_of=lambda item: 0.2 if item.chunks else None,
        pods={},
    )
    assert [item.bin.name for item in found] == (["node-1"] if may_be_left else [])
    assert (next_look is None) == may_be_left
