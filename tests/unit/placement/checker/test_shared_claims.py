"""The checker finds what is wrong where pods share claims: each rule broken once, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.attachments import (
    NO_PROVISIONER,
    PersistentVolume,
    Storage,
    StorageClass,
    VolumeClaim,
    VolumeLimits,
)
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import ZONE_LABEL
from reconciler.model.placement import Holding, OccupiedBin, Placement
from reconciler.model.pods import NodeSelectorTerm
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.problem import Problem
from tests.builders import node, shape

EBS = "ebs.csi.aws.com"
WAITS = StorageClass("gp3", EBS, waits=True)
CLAIM = VolumeClaim("shop", "data", storage_class="gp3", requested=50, access_modes=("ReadWriteMany",))
NODES = {name: node(name, zone=zone) for name, zone in (("a", "zone-a"), ("b", "zone-b"), ("c", "zone-b"))}


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
    found = violations(Problem(view, (), (), demands), Placement(occupied))
    return "\n".join(found)


WAITING = Storage((), (CLAIM,), (WAITS,), (VolumeLimits("a", ((EBS, 1),)),))


def test_that_all_pods_of_a_claim_must_reach_its_volume_is_not_judged() -> None:
    """Placement says so of a claim that waits for its volume."""
    assert said(WAITING, "a", "b") == ""


def test_a_volume_of_several_pods_is_attached_once() -> None:
    assert said(WAITING, "a", "a") == ""


@pytest.mark.parametrize(("nodes", "words"), [(("a",), ""), (("a", "b"), "claim shop/data is for one pod and has 2")])
def test_a_claim_for_one_pod_that_several_have(nodes: tuple[str, ...], words: str) -> None:
    alone = replace(WAITING, claims=(replace(CLAIM, access_modes=("ReadWriteOncePod",)),))
    assert said(alone, *nodes) == words


def test_a_volume_that_is_being_made_for_a_node() -> None:
    narrow = NodeSelectorTerm((Requirement(ZONE_LABEL, Operator.IN, ("zone-a",)),))
    elsewhere = "{}: no volume for claim shop/data can be had there"
    storage = replace(WAITING, claims=(replace(CLAIM, selected_node="b"),))
    assert said(storage, "b") == ""
    assert said(storage, "c") == elsewhere.format("c")
    for other in (replace(WAITS, provisioner=NO_PROVISIONER), replace(WAITS, topologies=(narrow,))):
        assert said(replace(storage, classes=(other,)), "b") == elsewhere.format("b")


def test_claims_of_one_volume_are_attached_once() -> None:
    volumes = tuple(PersistentVolume(name, driver=EBS, handle="fs-1") for name in ("pv-0", "pv-1"))
    claims = tuple(replace(CLAIM, name=f"data-{number}", volume=f"pv-{number}", bound=True) for number in range(2))
    storage = Storage(volumes, claims, (), (VolumeLimits("a", ((EBS, 1),)),))
    assert said(storage, "a", claims=("data-0", "data-1")) == ""
    apart = replace(storage, volumes=(volumes[0], replace(volumes[1], handle="fs-2")))
    assert said(apart, "a", claims=("data-0", "data-1")) == f"a: 2 volumes of {EBS} are attached, 1 can be"
