"""A firm placement is kept as long as nothing changes that it was found by, even where the tight placement stays the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.cluster.apply import InventoryParent
from reconciler.model.attachments import PersistentVolume, Storage
from reconciler.model.buffers import Dialect
from reconciler.model.declared import Declared
from reconciler.model.placement import Placement, SurgeMode
from reconciler.model.rules import PlacementRules
from reconciler.model.view import ClusterView
from reconciler.placement.problem import Problem
from reconciler.placement.surge.firm import Firm, Firmer
from reconciler.stages.state import PassState, Prepared, Rules
from reconciler.stages.surge import MakeFirm
from tests.builders import demand, instance_type, node, node_pool, overlay, pod

RULES = Rules(
    dialect=Dialect.KARPENTER,
    placement=PlacementRules(surge=SurgeMode.ALL),
    inventory=InventoryParent("headroom-system", "headroom"),
)


def state(view: ClusterView | None = None, *, price: float = 0.2, **declared: Any) -> PassState:
    return PassState(
        datetime(2026, 11, 2, tzinfo=UTC),
        effective=Declared(**{"node_pools": (node_pool(),), **declared}),
        instance_types=(instance_type(price=price),),
        demands=(demand(),),
        prepared=Prepared(room=view or ClusterView()),
    )


@pytest.mark.parametrize(
    ("changed", "times"),
    [
        (state(), 1),
        (state(ClusterView(revision="2")), 1),
        (state(price=0.3), 2),
        (state(node_overlays=(overlay("dear", price="5.0"),)), 2),
        (state(node_pools=(node_pool(limits={"nodes": "2"}),)), 2),
        (replace(state(), demands=(demand(count=4),)), 2),
        (state(ClusterView(nodes=(node(),))), 2),
        (state(ClusterView(pods=(pod(),))), 2),
        (state(ClusterView(storage=Storage(volumes=(PersistentVolume("data"),)))), 2),
    ],
    ids=["nothing", "status", "price", "overlay", "limit", "demand", "node", "pod", "volume"],
)
def test_a_firm_placement_is_found_again_when_something_of_it_changes(
    changed: PassState, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []

    def firm(_: Firmer, problem: Problem, tight: Placement) -> Firm:
        found.append(problem)
        return Firm(problem, tight)

    monkeypatch.setattr(Firmer, "firm", firm)
    stage = MakeFirm(RULES)
    for each in (state(), changed):
        stage.run(each)
    assert len(found) == times
