"""Pods that share claims, on nodes that are there: what is placed breaks no rule, and each that is left counted its own volumes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.attachments import PersistentVolume, Storage, StorageClass, VolumeClaim, VolumeLimits
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import ZONE_LABEL, Node
from reconciler.model.placement import Holding, OccupiedBin, Placement
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.loops import kernel
from reconciler.placement.loops.kernel import Kernel
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import instance_type, node, node_pool, pod, shape
from tests.properties.sampling import sampled_from
from tests.properties.wide_volumes import waits_for_the_first, with_own_volumes

DRIVER = "disk.example.com"
ZONES = ("zone-a", "zone-b")
NAMES = ("v0", "v1", "v2", "v3", "w0", "w1")
"""Claims: of the first there are volumes, the others wait for one."""
POOLS, TYPES = (node_pool(),), (instance_type("m-4x", zones=ZONES), instance_type("m-8x", cpu="8", zones=ZONES))


@st.composite
def storages(draw: st.DrawFn, nodes: tuple[Node, ...]) -> Storage:
    volumes, claims = [], []
    for name in NAMES:
        mode = draw(sampled_from(("ReadWriteMany", "ReadWriteMany", "ReadWriteOncePod")))
        if name.startswith("w"):
            claims.append(VolumeClaim("shop", name, storage_class="waits", access_modes=(mode,)))
            continue
        zones = draw(sampled_from(((), (), *((zone,) for zone in ZONES))))
        terms = (NodeSelectorTerm((Requirement(ZONE_LABEL, Operator.IN, zones),)),) if zones else ()
        handle = draw(sampled_from(("", "", "one-and-the-same")))
        volumes.append(PersistentVolume(name, terms, driver=DRIVER, handle=handle))
        claims.append(VolumeClaim("shop", name, name, bound=True, access_modes=(mode,)))
    keys = draw(sampled_from(((), (ZONE_LABEL,))))
    limits = [VolumeLimits(item.name, ((DRIVER, draw(st.integers(0, 3))),), ((DRIVER, keys),)) for item in nodes]
    return Storage(tuple(volumes), tuple(claims), (StorageClass("waits", DRIVER, waits=True),), tuple(limits))


def shapes() -> st.SearchStrategy[PodShape]:
    claims = st.lists(sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(lambda names: tuple(sorted(names)))
    cpus = sampled_from(("100m", "500m", "1"))
    return st.builds(lambda names, cpu: replace(shape(cpu), volume_claims=names), claims, cpus)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[ClusterView, tuple[Demand, ...]]:
    nodes = tuple(
        node(f"node-{number}", zone=draw(sampled_from(ZONES)), cpu=draw(sampled_from(("1", "2", "4"))))
        for number in range(draw(st.integers(1, 4)))
    )
    there = tuple(
        pod(f"old-{number}", node=draw(sampled_from(nodes)).name, pod_shape=draw(shapes()))
        for number in range(draw(st.integers(0, 3)))
    )
    demands = tuple(
        Demand(
            ObjectRef("", "Pod", "shop", f"new-{number}"),
            (ChunkGroup(draw(shapes()), 1),),
            priority=draw(st.integers(0, 1)),
        )
        for number in range(draw(st.integers(1, 6)))
    )
    return ClusterView(nodes=nodes, pods=there, storage=draw(storages(nodes))), demands


def placed(view: ClusterView, demands: tuple[Demand, ...], *, opening: bool) -> Placement:
    options = PlacementOptions(include_pending=opening)
    pools, types = (POOLS, TYPES) if opening else ((), ())
    return place(Problem(view, pools, types, demands, options=options))


def faults(view: ClusterView, demands: tuple[Demand, ...], placement: Placement) -> tuple[str, ...]:
    return violations(Problem(view, POOLS, TYPES, demands), placement)


def one_more(view: ClusterView, placement: Placement) -> Iterator[Placement]:
    """With one pod that is left on each node."""
    for left in placement.unplaced:
        if waits_for_the_first(left):
            continue
        rest = tuple(item for item in placement.unplaced if item is not left)
        for name in (item.name for item in view.nodes):
            held = {item.node: list(item.holdings) for item in placement.occupied}
            held.setdefault(name, []).append(Holding(left.demand, left.group, 1))
            occupied = tuple(OccupiedBin(at, None, tuple(holdings)) for at, holdings in held.items())
            yield replace(placement, occupied=occupied, unplaced=rest)


@settings(max_examples=40, deadline=None)
@given(world=worlds())
def test_who_is_left_fits_on_no_node(world: tuple[ClusterView, tuple[Demand, ...]]) -> None:
    """As if each pod had volumes of its own: nothing that comes later makes room, so that who fits in the end would have fitted."""
    view, demands = world
    placement = placed(view, demands, opening=False)
    assert faults(view, demands, placement) == ()
    storage, apart = with_own_volumes(view.storage, demands)
    for more in one_more(view, placement):
        assert faults(replace(view, storage=storage), apart, more) != (), more


@settings(max_examples=30, deadline=None)
@given(world=worlds())
def test_new_nodes_break_no_rule_and_are_the_same_with_all_loops(
    world: tuple[ClusterView, tuple[Demand, ...]],
) -> None:
    view, demands = world
    placement = placed(view, demands, opening=True)
    assert faults(view, demands, placement) == ()

    def with_loops(loops: Kernel) -> Placement:
        with (
            patch("reconciler.placement.place.WORTH_COMPILING", 0),
            patch("reconciler.placement.place.compiled", lambda: loops),
        ):
            return placed(view, demands, opening=True)

    assert placement == with_loops(kernel.plain()) == with_loops(kernel.compiled())
