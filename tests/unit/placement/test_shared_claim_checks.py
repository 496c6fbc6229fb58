"""The checker finds what is wrong where pods share claims: each rule broken once, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import ZONE_LABEL
from reconciler.model.placement import Holding, OccupiedBin, Placement
from reconciler.model.pods import NodeSelectorTerm
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.storage import NO_PROVISIONER, PersistentVolume, Storage, StorageClass, VolumeClaim, VolumeLimits
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.problem import Problem
from tests.builders import node, shape

EBS, EBS_ZONE, RACK = "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone", "example.com/rack"
WAITS = StorageClass("gp3", EBS, waits=True)
CLAIM = VolumeClaim("shop", "data", storage_class="gp3", requested=50, access_modes=("ReadWriteMany",))
NODES = {
    "a": node("a", zone="zone-a", labels={RACK: "1"}),
    "b": node("b", zone="zone-b", labels={RACK: "1"}),
    "c": node("c", zone="zone-b", labels={RACK: "2"}),
}
APART = "claim shop/data has no volume yet, and none would be reached from all of {}"


def said(storage: Storage, *names: str, claims: tuple[str, ...] = ("data",)) -> str:
    """What is said when a pod with the claims is put on each of these nodes."""
    demands = [
        Demand(ObjectRef("", "Pod", "shop", f"db-{number}"), (ChunkGroup(replace(shape("100m"), volume_claims=claims), 1),), 1)
        for number in range(len(names))
    ]  # fmt: skip
    occupied = tuple(
        OccupiedBin(
            name, None, tuple(Holding(item.ref, 0, 1) for item, at in zip(demands, names, strict=True) if at == name)
        )
        for name in dict.fromkeys(names)
    )
    view = ClusterView(nodes=tuple(NODES.values()), storage=storage)
    found = violations(Problem(view, node_pools=(), instance_types=(), demands=demands), Placement(occupied))
    return "\n".join(found)


def waiting(*keys: str, of: StorageClass = WAITS, said_by_nodes: bool = True) -> Storage:
    """keys: by which the driver tells nodes apart."""
    limits = (VolumeLimits("a", (), ((EBS, keys),)),) if said_by_nodes else ()
    return Storage((), (CLAIM,), (of,), limits)


@pytest.mark.parametrize(
    ("storage", "nodes", "fits"),
    [
        (waiting(ZONE_LABEL), ("a", "a"), True),
        (waiting(ZONE_LABEL), ("b", "c"), True),
        (waiting(ZONE_LABEL), ("a", "b"), False),
        (waiting(EBS_ZONE), ("b", "c"), True),
        (waiting(EBS_ZONE), ("a", "b"), False),
        (waiting(RACK), ("a", "b"), True),
        (waiting(RACK), ("b", "c"), False),
        (waiting("example.com/unheard-of"), ("b", "c"), False),
        (waiting(), ("a", "b", "c"), True),
        (waiting(said_by_nodes=False), ("b", "c"), True),
        (waiting(said_by_nodes=False), ("a", "b"), False),
    ],
)
def test_pods_that_wait_for_one_volume(storage: Storage, nodes: tuple[str, ...], *, fits: bool) -> None:
    assert said(storage, *nodes) == ("" if fits else APART.format(", ".join(nodes)))


def test_where_no_node_tells_what_the_class_names_counts() -> None:
    racks = NodeSelectorTerm((Requirement(RACK, Operator.IN, ("1", "2")),))
    storage = waiting(of=replace(WAITS, topologies=(racks,)), said_by_nodes=False)
    assert said(storage, "a", "b") == ""
    assert said(storage, "b", "c") == APART.format("b, c")


def test_one_volume_that_lies_ready_must_be_reached_by_all() -> None:
    def in_zone(name: str, *zones: str) -> PersistentVolume:
        terms = (NodeSelectorTerm((Requirement(ZONE_LABEL, Operator.IN, zones),)),)
        return PersistentVolume(name, terms, (), "gp3", 100, ("ReadWriteMany",))

    ready = replace(WAITS, provisioner=NO_PROVISIONER)
    apart = Storage((in_zone("one", "zone-a"), in_zone("two", "zone-b")), (CLAIM,), (ready,))
    assert said(apart, "a", "b") == APART.format("a, b")
    assert said(apart, "b", "c") == ""
    assert said(Storage((in_zone("one", "zone-a", "zone-b"),), (CLAIM,), (ready,)), "a", "b") == ""


def test_a_volume_that_is_being_made_for_a_node() -> None:
    storage = replace(waiting(ZONE_LABEL), claims=(replace(CLAIM, selected_node="b"),))
    assert said(storage, "b") == ""
    assert said(storage, "c") == "c: no volume for claim shop/data can be had there"
    made = replace(storage, classes=(replace(WAITS, provisioner=NO_PROVISIONER),))
    assert said(made, "b") == "b: no volume for claim shop/data can be had there"


def test_claims_of_one_volume_are_attached_once() -> None:
    volumes = tuple(PersistentVolume(name, driver=EBS, handle="fs-1") for name in ("pv-0", "pv-1"))
    claims = tuple(replace(CLAIM, name=f"data-{number}", volume=f"pv-{number}", bound=True) for number in range(2))
    storage = Storage(volumes, claims, (), (VolumeLimits("a", ((EBS, 1),)),))
    assert said(storage, "a", claims=("data-0", "data-1")) == ""
    apart = replace(storage, volumes=(volumes[0], replace(volumes[1], handle="fs-2")))
    assert said(apart, "a", claims=("data-0", "data-1")) == f"a: 2 volumes of {EBS} are attached, 1 can be"
