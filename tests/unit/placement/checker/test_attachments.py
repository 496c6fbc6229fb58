"""The checker finds what is wrong with volumes, devices and reservations: each rule broken once, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.attachments import NO_PROVISIONER, PersistentVolume, Storage, StorageClass, VolumeClaim
from reconciler.model.demand import Demand
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, NODEPOOL_LABEL, ZONE_LABEL, NodeClaim, Offering
from reconciler.model.placement import Holding, OccupiedBin, Placement
from reconciler.model.pods import NodeSelectorTerm
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node, node_pool, one_of, pending, pod, shape

PENDING = PlacementOptions(include_pending=True)
ON_TWO = NodeSelectorTerm(fields=(one_of("metadata.name", "two"),))
IN_B = NodeSelectorTerm((one_of(ZONE_LABEL, "zone-b"),))
CLAIM = VolumeClaim("shop", "data", "pv", bound=True, storage_class="gp3")
WITH_DATA = shape("100m", volume_claims=("data",))
WAITING = StorageClass("gp3", "ebs.csi.aws.com", waits=True)


def on_one(storage: Storage, *demands: Demand) -> str:
    """What is said when every demand is put on node `one`, in zone-a, beside a pod with the same volume."""
    there = pod("old", node="one", pod_shape=WITH_DATA)
    view = ClusterView(nodes=(node("one"),), pods=(there,), storage=storage)
    holdings = tuple(Holding(item.ref, 0, item.groups[0].count) for item in demands)
    placement = Placement(occupied=(OccupiedBin("one", None, holdings),))
    found = violations(Problem(view, (), (), demands), placement)
    return "\n".join(found)


GONE = "one: claim shop/data does not exist"
NOT_THERE = "one: the volume of claim shop/data cannot be had there"
NONE_THERE = "one: no volume for claim shop/data can be had there"
OPEN_CLAIM = replace(CLAIM, volume="", bound=False)
NOT_IN_A = NodeSelectorTerm((Requirement(ZONE_LABEL, Operator.NOT_IN, ("zone-a",)),))
LOCAL = StorageClass("gp3", NO_PROVISIONER, waits=True)


@pytest.mark.parametrize(
    ("storage", "sentence"),
    [
        (Storage(), GONE),
        (Storage((), (CLAIM,)), NOT_THERE),
        (Storage((PersistentVolume("pv"),), (replace(CLAIM, bound=False),)), NOT_THERE),
        (Storage((PersistentVolume("pv", (IN_B,)),), (CLAIM,)), NOT_THERE),
        (Storage((PersistentVolume("pv", (NOT_IN_A,)),), (CLAIM,)), NOT_THERE),
        (Storage((PersistentVolume("pv", (NodeSelectorTerm(),)),), (CLAIM,)), NOT_THERE),
        (Storage((PersistentVolume("pv", (ON_TWO,)),), (CLAIM,)), NOT_THERE),
        (Storage((), (OPEN_CLAIM,), (replace(WAITING, topologies=(IN_B,)),)), NONE_THERE),
        (Storage((), (OPEN_CLAIM,), (replace(WAITING, waits=False),)), NONE_THERE),
        (Storage((), (OPEN_CLAIM,)), NONE_THERE),
        (Storage((), (replace(OPEN_CLAIM, storage_class=""),), (WAITING,)), NONE_THERE),
        (Storage((), (replace(OPEN_CLAIM, storage_class=None),), (WAITING,)), NONE_THERE),
        (Storage((), (OPEN_CLAIM,), (LOCAL,)), NONE_THERE),
        (Storage((), (replace(OPEN_CLAIM, selected_node="two"),), (WAITING,)), NONE_THERE),
    ],
)  # fmt: skip
def test_a_pod_where_its_volume_cannot_be(storage: Storage, sentence: str) -> None:
    assert on_one(storage, pending("db", WITH_DATA)) == sentence


@pytest.mark.parametrize(
    "storage",
    [
        Storage((PersistentVolume("pv"),), (CLAIM,)),
        Storage((PersistentVolume("pv", (IN_B, NodeSelectorTerm((Requirement(ZONE_LABEL, Operator.EXISTS),)))),), (CLAIM,)),
        Storage((), (OPEN_CLAIM,), (WAITING,)),
        Storage((), (replace(OPEN_CLAIM, storage_class=None),), (replace(WAITING, default=True),)),
        Storage((), (replace(OPEN_CLAIM, selected_node="one"),), (WAITING,)),
    ],
)  # fmt: skip
def test_a_pod_where_its_volume_can_be(storage: Storage) -> None:
    assert on_one(storage, pending("db", WITH_DATA)) == ""


@pytest.mark.parametrize(
    ("zones", "sentence"),
    [
        (one_of(ZONE_LABEL, "zone-b"), ""),
        (one_of(ZONE_LABEL, "zone-a", "zone-b"), "the volume of claim shop/data cannot be had there"),
        (Requirement(ZONE_LABEL, Operator.NOT_IN, ("zone-b",)), "the volume of claim shop/data cannot be had there"),
        (Requirement(ZONE_LABEL, Operator.NOT_IN, ("zone-a",)), ""),
    ],
)  # fmt: skip
def test_a_node_claim_whose_zone_is_not_decided(zones: Requirement, sentence: str) -> None:
    """Whatever it comes to be, the volume must be there."""
    claim = NodeClaim("claim", ((NODEPOOL_LABEL, "general"),), requirements=(zones,), requests=shape("2").requests)
    claim = replace(claim, allocatable=instance_type().allocatable)
    for terms in ((IN_B,), (NOT_IN_A,)):
        storage = Storage((PersistentVolume("pv", terms),), (CLAIM,))
        asked = pending("db", WITH_DATA)
        found = violations(
            Problem(ClusterView(node_claims=(claim,), storage=storage), (node_pool(),), (instance_type(),), (asked,)),
            Placement(occupied=(OccupiedBin(None, "claim", (Holding(asked.ref, 0, 1),)),)),
        )
        assert found == ((f"claim: {sentence}",) if sentence else ())


def test_a_pod_with_resource_claims_is_nowhere() -> None:
    claiming = shape("100m", claims_devices=True)
    assert on_one(Storage(), pending("train", claiming)) == "one: its resource claims are not judged"


RESERVED = (
    one_of(ZONE_LABEL, "zone-a"),
    one_of(CAPACITY_TYPE_LABEL, "reserved"),
    one_of("example.com/reservation-id", "cr-1"),
)
OFFERING = Offering("zone-a", "reserved", 0.0, True, RESERVED, reservation_capacity=2)
COMING = NodeClaim("claim", ((NODEPOOL_LABEL, "general"),), requirements=RESERVED)
ONE_LEFT = ["reservation cr-1: 2 nodes are planned in it, 1 are left"]


@pytest.mark.parametrize(
    ("offerings", "claims", "sentences"),
    [
        ([OFFERING], [], []),
        ([replace(OFFERING, reservation_capacity=1)], [], ONE_LEFT),
        ([OFFERING, replace(OFFERING, reservation_capacity=1)], [], ONE_LEFT),
        ([OFFERING, replace(OFFERING, available=False, reservation_capacity=1)], [], ONE_LEFT),
        ([OFFERING], [COMING], ONE_LEFT),
        ([OFFERING], [replace(COMING, conditions=(("Launched", "True"),))], []),
        ([OFFERING], [replace(COMING, deleting=True)], []),
        ([OFFERING], [replace(COMING, requirements=RESERVED[:1])], []),
        (
            [OFFERING, replace(OFFERING, reservation_capacity=0)],
            [],
            ["reservation cr-1: 2 nodes are planned in it, 0 are left"],
        ),
    ],
)  # fmt: skip
def test_more_nodes_than_a_reservation_has(
    offerings: list[Offering], claims: list[NodeClaim], sentences: list[str]
) -> None:
    wanted = (demand(count=2, pod_shape=shape("3")),)
    pools, kind = (node_pool(),), instance_type()
    planned = place(Problem(ClusterView(), pools, (replace(kind, offerings=(OFFERING,)),), wanted))
    assert len(planned.planned) == 2
    found = violations(
        Problem(ClusterView(node_claims=tuple(claims)), pools, (replace(kind, offerings=tuple(offerings)),), wanted),
        planned,
    )
    assert list(found) == sentences
