"""Placements of pods with volumes of every sort, and with resource claims: no rule is broken, and a pod that waits would break one everywhere."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import ZONE_LABEL
from reconciler.model.placement import Holding, OccupiedBin, Placement, Unplaced
from reconciler.model.pods import Pod, PodShape
from reconciler.model.refs import POD_KIND, ObjectRef
from reconciler.model.view import ClusterView
from reconciler.placement.problem import PlacementOptions
from tests.builders import demand, node, node_pool, pod, shape
from tests.properties import wide_volumes
from tests.properties.sampling import sampled_from
from tests.properties.wide_worlds import attaching
from tests.unit.placement.worlds import ZONES, World, catalogue


@st.composite
def _shape(draw: st.DrawFn, kinds: str, uid: str) -> PodShape:
    selector = draw(sampled_from([{}, {}, {}, {ZONE_LABEL: "zone-b"}]))
    found = shape(draw(sampled_from(["100m", "100m", "2"])), "128Mi", node_selector=selector)
    return draw(attaching(found, kinds, uid))


@st.composite
def _running(draw: st.DrawFn, name: str, node_name: str, kinds: str) -> Pod:
    """Its claims are there and have what they ask for."""
    found = shape("500m", "128Mi")
    if kinds in {"volumes", "both"}:
        found = replace(found, volume_claims=draw(wide_volumes.claims_of_a_pod()))
    if kinds in {"devices", "both"}:
        found = replace(found, claims_devices=draw(st.booleans()))
    return pod(name, node=node_name, pod_shape=found)


@st.composite
def attaching_worlds(draw: st.DrawFn) -> World:
    kinds = draw(sampled_from(["volumes", "devices", "both"]))
    nodes = tuple(
        node(f"node-{number}", zone=draw(sampled_from(ZONES)), instance_type="medium")
        for number in range(draw(st.integers(1, 4)))
    )
    names = tuple(item.name for item in nodes)
    pods = tuple(
        draw(_running(f"running-{number}", draw(sampled_from(names)), kinds))
        for number in range(draw(st.integers(0, 3)))
    )
    view = ClusterView(nodes=nodes, pods=pods, storage=draw(wide_volumes.storages()))
    with_new_nodes = draw(st.booleans())
    demands = [
        Demand(
            ObjectRef("", POD_KIND, "shop", f"pod-{number}"),
            (ChunkGroup(draw(_shape(kinds, f"pod-{number}")), 1),),
            1,
            opens_nodes=with_new_nodes,
        )
        for number in range(draw(st.integers(1, 5)))
    ]
    if kinds != "volumes" and draw(st.booleans()):
        demands.append(demand(count=2, pod_shape=shape("100m", claims_devices=True)))
    return World(
        view,
        (node_pool(),) if with_new_nodes else (),
        catalogue(ZONES),
        tuple(demands),
        options=PlacementOptions(include_pending=with_new_nodes),
    )


EXAMPLES = int(os.environ.get("HEADROOM_EXAMPLES", "80"))


@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(world=attaching_worlds())
def test_a_pod_that_waits_would_break_a_rule_on_every_node(world: World) -> None:
    placement = world.placed()
    waiting = [item for item in placement.unplaced if item.demand.kind == "Pod" and not _is_not_judged(item)]

    assert [
        (str(item.demand), name)
        for item in waiting
        for name, more in _with_one_more(world, placement, item)
        if world.broken_rules(more) == ()
    ] == []


def _is_not_judged(item: Unplaced) -> bool:
    return any("not judged" in reason.example for reason in item.reasons)


def _with_one_more(world: World, placement: Placement, item: Unplaced) -> Iterable[tuple[str, Placement]]:
    """By the node that the pod is put on."""
    left = tuple(other for other in placement.unplaced if other != item)
    held = {occupied.node: occupied.holdings for occupied in placement.occupied if occupied.node is not None}
    for there in world.view.nodes:
        more = held | {there.name: (*held.get(there.name, ()), Holding(item.demand, item.group, 1))}
        occupied = tuple(OccupiedBin(name, None, holdings) for name, holdings in more.items())
        yield there.name, replace(placement, occupied=occupied, unplaced=left)
