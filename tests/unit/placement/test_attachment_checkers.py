"""The checker finds what is wrong with volumes, devices and reservations: each rule broken once, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.devices import (
    ClaimSpec,
    Device,
    DeviceClass,
    DeviceRequest,
    Devices,
    ResourceClaimTemplate,
    ResourceSlice,
)
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, ZONE_LABEL, InstanceType, Offering
from reconciler.model.placement import Holding, OccupiedBin, Placement
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.storage import PersistentVolume, Storage, StorageClass, VolumeClaim, VolumeLimits
from reconciler.model.view import ClusterView
from reconciler.placement.checker import violations
from reconciler.placement.place import PlacementOptions, place
from tests.builders import demand, instance_type, node, node_pool, pod, shape

PENDING = PlacementOptions(include_pending=True)
IN_B = NodeSelectorTerm((Requirement(ZONE_LABEL, Operator.IN, ("zone-b",)),))
CLAIM = VolumeClaim("shop", "data", "pv", bound=True, storage_class="gp3", access_modes=("ReadWriteOnce",))
WITH_DATA = replace(shape("100m"), volume_claims=("data",))
WAITING = StorageClass("gp3", "ebs.csi.aws.com", waits=True)


def pod_demand(name: str, pod_shape: PodShape) -> Demand:
    return Demand(ObjectRef("", "Pod", "shop", name), (ChunkGroup(pod_shape, 1),), 1)


def on_one(storage: Storage = Storage(), devices: Devices = Devices(), *demands: Demand) -> str:  # noqa: B008 - immutable
    """What is said when every demand is put on node `one`, in zone-a, beside a pod with the same volume."""
    there = pod("old", node="one", pod_shape=WITH_DATA)
    view = ClusterView(nodes=(node("one"),), pods=(there,), storage=storage, devices=devices)
    holdings = tuple(Holding(item.ref, 0, item.groups[0].count) for item in demands)
    placement = Placement(occupied=(OccupiedBin("one", None, holdings),))
    found = violations(view, node_pools=(), instance_types=(), demands=demands, placement=placement)
    return "\n".join(found)


@pytest.mark.parametrize(
    ("storage", "sentence"),
    [
        (Storage(), "one: claim shop/data cannot be used"),
        (Storage((), (replace(CLAIM, deleting=True),)), "one: claim shop/data cannot be used"),
        (Storage((), (CLAIM,)), "one: the volume of claim shop/data cannot be had there"),
        (Storage((PersistentVolume("pv", (IN_B,)),), (CLAIM,)), "one: the volume of claim shop/data cannot be had there"),
        (
            Storage((PersistentVolume("pv", labels=((ZONE_LABEL, "zone-b"),)),), (CLAIM,)),
            "one: the volume of claim shop/data cannot be had there",
        ),
        (
            Storage((), (replace(CLAIM, volume="", bound=False),), (replace(WAITING, topologies=(IN_B,)),)),
            "one: no volume for claim shop/data can be had there",
        ),
        (
            Storage((PersistentVolume("pv"),), (replace(CLAIM, access_modes=("ReadWriteOncePod",)),)),
            "claim shop/data is for one pod and has 2",
        ),
    ],
)  # fmt: skip
def test_a_pod_where_its_volume_cannot_be(storage: Storage, sentence: str) -> None:
    assert on_one(storage, Devices(), pod_demand("db", WITH_DATA)) == sentence


def test_more_volumes_than_a_node_attaches() -> None:
    claims = tuple(replace(CLAIM, name=name, volume="", bound=False) for name in ("data", "logs"))
    storage = Storage((), claims, (WAITING,), (VolumeLimits("one", (("ebs.csi.aws.com", 1),)),))
    with_logs = replace(WITH_DATA, volume_claims=("logs",))
    assert (
        on_one(storage, Devices(), pod_demand("db", with_logs))
        == "one: 2 volumes of ebs.csi.aws.com are attached, 1 can be"
    )
    assert on_one(storage, Devices(), pod_demand("db", WITH_DATA)) == "", "the same volume is attached once"


def test_more_devices_than_a_node_has() -> None:
    gpus = ResourceSlice("one-gpu", "gpu.example.com", "one", node="one", devices=(Device("gpu-0"),))
    found = Devices(
        (gpus,),
        (DeviceClass("gpu", ('device.driver == "gpu.example.com"',)),),
        templates=(ResourceClaimTemplate("shop", "two", ClaimSpec((DeviceRequest("gpu", 2),))),),
    )
    training = replace(shape("100m"), resource_claim_templates=("two",))
    assert on_one(Storage(), found, pod_demand("train", training)) == (
        "one: 2 devices of class gpu are asked for, 1 are free"
    )


def on_a_new_node(view: ClusterView, *demands: Demand) -> str:
    """What is said when every demand is put on a node of NodePool general that is to be made."""
    pools, types = (node_pool(),), (instance_type(),)
    plain = [replace(item, groups=(replace(item.groups[0], shape=shape("100m")),)) for item in demands]
    placement = place(ClusterView(), node_pools=pools, instance_types=types, demands=plain, options=PENDING)
    return "\n".join(violations(view, node_pools=pools, instance_types=types, demands=demands, placement=placement))


def test_more_volumes_than_nodes_like_a_new_one_attach() -> None:
    claims = tuple(replace(CLAIM, name=name, volume="", bound=False) for name in ("data", "logs"))
    both = replace(shape("100m"), volume_claims=("data", "logs"))
    storage = Storage((), claims, (WAITING,), (VolumeLimits("one", (("ebs.csi.aws.com", 1),)),))
    said = "planned-0: 2 volumes of ebs.csi.aws.com are attached, 1 can be"
    for there in (node("one"), node("one", pool="other"), node("one", instance_type="other")):
        assert on_a_new_node(ClusterView(nodes=(there,), storage=storage), pod_demand("db", both)) == said
    unlike = node("one", pool="other", instance_type="other")
    assert on_a_new_node(ClusterView(nodes=(unlike,), storage=storage), pod_demand("db", both)) == ""


def test_more_devices_than_all_nodes_like_a_new_one_have() -> None:
    def with_gpus(**counts: int) -> Devices:
        slices = tuple(
            ResourceSlice(
                name, "gpu.example.com", name, node=name, devices=tuple(Device(f"gpu-{n}") for n in range(count))
            )
            for name, count in counts.items()
        )
        two = ResourceClaimTemplate("shop", "two", ClaimSpec((DeviceRequest("gpu", 2),)))
        return Devices(slices, (DeviceClass("gpu", ('device.driver == "gpu.example.com"',)),), templates=(two,))

    nodes = (node("one"), node("two"))
    training = pod_demand("train", replace(shape("100m"), resource_claim_templates=("two",)))

    def said(devices: Devices) -> str:
        return on_a_new_node(ClusterView(nodes=nodes, devices=devices), training)

    assert said(with_gpus(one=2, two=2)) == ""
    assert said(with_gpus(one=1, two=1)) == "planned-0: 2 devices of class gpu are asked for, 1 are free"
    assert said(with_gpus(one=2, two=3)) == "planned-0: 2 devices of class gpu are asked for, 0 are free"


def test_more_nodes_than_a_reservation_has() -> None:
    requirements = (
        Requirement(ZONE_LABEL, Operator.IN, ("zone-a",)),
        Requirement(CAPACITY_TYPE_LABEL, Operator.IN, ("reserved",)),
        Requirement("example.com/reservation-id", Operator.IN, ("cr-1",)),
    )

    def with_left(count: int) -> tuple[InstanceType, ...]:
        offering = Offering("zone-a", "reserved", 0.0, True, requirements, reservation_capacity=count)
        return (replace(instance_type(), offerings=(offering,)),)

    wanted = (demand(count=2, pod_shape=shape("3")),)
    pools = (node_pool(),)
    placement = place(ClusterView(), node_pools=pools, instance_types=with_left(2), demands=wanted)
    assert len(placement.planned) == 2
    found = violations(
        ClusterView(), node_pools=pools, instance_types=with_left(1), demands=wanted, placement=placement
    )
    assert found == ("reservation cr-1: 2 nodes are planned in it, 1 are left",)
