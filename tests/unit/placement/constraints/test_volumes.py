"""Pods with volumes: where kube-scheduler would let them be, and what is said when nowhere."""

from __future__ import annotations

from collections.abc import Sequence
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
from reconciler.model.demand import Demand
from reconciler.model.nodes import HOSTNAME_LABEL, INITIALIZED_LABEL, ZONE_LABEL, Node, NodeClaim
from reconciler.model.placement import Placement
from reconciler.model.pods import NodeSelectorTerm, Pod, PodShape, TopologySpread
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import instance_type, node, node_pool, pending, pod, shape
from tests.unit.placement.worlds import World

EBS = "ebs.csi.aws.com"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
TYPES = (instance_type("m-4x", zones=("zone-a", "zone-b", "zone-c")),)
WAITING = StorageClass("gp3", EBS, waits=True)


def where(key: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((Requirement(key, Operator.IN, values),))


def volume(name: str, *terms: NodeSelectorTerm, **fields: object) -> PersistentVolume:
    return replace(PersistentVolume(name, terms, driver=EBS), **fields)  # type: ignore[arg-type]


def bound(name: str, volume_name: str, **fields: object) -> VolumeClaim:
    return replace(VolumeClaim("shop", name, volume_name, bound=True), **fields)  # type: ignore[arg-type]


def waiting(name: str, storage_class: str | None = "gp3") -> VolumeClaim:
    return VolumeClaim("shop", name, storage_class=storage_class, requested=2**30, access_modes=("ReadWriteOnce",))


def with_claims(*claims: str, pod_shape: PodShape | None = None) -> PodShape:
    return replace(pod_shape or shape(), volume_claims=claims)


def placed(
    storage: Storage,
    *demands: Demand,
    nodes: Sequence[Node] = (),
    pods: Sequence[Pod] = (),
    node_claims: Sequence[NodeClaim] = (),
) -> Placement:
    """Placed and found right by the checker."""
    view = ClusterView(nodes=tuple(nodes), pods=tuple(pods), node_claims=tuple(node_claims), storage=storage)
    options = PlacementOptions(include_pending=True)
    return World(view, (node_pool(),), TYPES, demands, options=options).placed_rightly()


def reason_of(placement: Placement) -> str:
    (left,) = placement.unplaced
    (reason,) = left.reasons
    return reason.example


IN_B, IN_C = where(ZONE_LABEL, "zone-b"), where(ZONE_LABEL, "zone-c")
IN_EBS_ZONE = volume("pv", where(EBS_ZONE, "zone-b"))


@pytest.mark.parametrize(
    ("storage", "zone"),
    [
        (Storage((volume("pv", IN_B),), (bound("data", "pv"),)), "zone-b"),
        (Storage((volume("pv", where(ZONE_LABEL, "zone-x"), IN_C),), (bound("data", "pv"),)), "zone-c"),
        (Storage((IN_EBS_ZONE,), (bound("data", "pv"),)), "zone-b"),
        (Storage((), (waiting("data"),), (replace(WAITING, topologies=(IN_C,)),)), "zone-c"),
        (Storage((), (waiting("data", None),), (replace(WAITING, default=True, topologies=(IN_C,)),)), "zone-c"),
    ],
    ids=[
        "bound",
        "terms are alternatives",
        "by the driver's label",
        "where its class makes one",
        "of the default class",
    ],
)
def test_a_new_node_is_where_the_volume_can_be(storage: Storage, zone: str) -> None:
    (planned,) = placed(storage, pending("db", with_claims("data"))).planned
    assert planned.zones == (zone,)


@pytest.mark.parametrize(
    ("there", "nodes", "name"),
    [
        (volume("pv", IN_B), (node("near", zone="zone-b"), node("far", zone="zone-a")), "near"),
        (IN_EBS_ZONE, (node("bare", zone="zone-b"), node("driven", zone="zone-b", labels={EBS_ZONE: "zone-b"})), "driven"),
        (volume("pv", labels=((ZONE_LABEL, "zone-b__zone-c"),)), (node("a", zone="zone-a"), node("c", zone="zone-c")), "c"),
    ],
    ids=["by its affinity", "the driver's label as it stands", "by its zone label without an affinity"],
)  # fmt: skip
def test_a_pod_goes_to_the_node_that_reaches_its_volume(
    there: PersistentVolume, nodes: tuple[Node, ...], name: str
) -> None:
    (occupied,) = placed(
        Storage((there,), (bound("data", "pv"),)), pending("db", with_claims("data")), nodes=nodes
    ).occupied
    assert occupied.node == name


def test_a_local_volume_holds_its_pod_to_one_node() -> None:
    storage = Storage((volume("pv", where(HOSTNAME_LABEL, "node-2")),), (bound("data", "pv"),))
    nodes = (node("node-1"), node("node-2", cpu="500m"))
    placement = placed(storage, pending("db", with_claims("data")), nodes=nodes)
    assert not placement.planned
    assert not placement.occupied


def test_two_volumes_of_one_pod_must_have_a_place_in_common() -> None:
    volumes = (volume("one", where(ZONE_LABEL, "zone-a", "zone-b")), volume("two", where(ZONE_LABEL, "zone-b")))
    claims = (bound("data", "one"), bound("logs", "two"))
    (planned,) = placed(Storage(volumes, claims), pending("db", with_claims("data", "logs"))).planned
    assert planned.zones == ("zone-b",)
    apart = (volume("one", where(ZONE_LABEL, "zone-a")), volume("two", where(ZONE_LABEL, "zone-b")))
    words = reason_of(placed(Storage(apart, claims), pending("db", with_claims("data", "logs"))))
    assert words == (
        "its volumes are in places that have no node in common:"
        f" PersistentVolumeClaim/shop/data where {ZONE_LABEL}=zone-a; PersistentVolumeClaim/shop/logs where {ZONE_LABEL}=zone-b"
    )


def test_a_class_without_topologies_makes_a_volume_anywhere() -> None:
    assert placed(Storage((), (waiting("data"),), (WAITING,)), pending("db", with_claims("data"))).planned


def test_a_class_without_a_provisioner_needs_a_volume_that_lies_ready() -> None:
    local = StorageClass("local", NO_PROVISIONER, waits=True)
    ready = volume(
        "pv", where(ZONE_LABEL, "zone-c"), storage_class="local", capacity=2**31, access_modes=("ReadWriteOnce",)
    )
    placement = placed(Storage((ready,), (waiting("data", "local"),), (local,)), pending("db", with_claims("data")))
    assert placement.planned[0].zones == ("zone-c",)
    assert "storage class local has a fixed number of volumes" in placement.assumptions[0]
    small = replace(ready, capacity=2**20)
    words = reason_of(
        placed(Storage((small,), (waiting("data", "local"),), (local,)), pending("db", with_claims("data")))
    )
    assert words == ("PersistentVolumeClaim/shop/data: no volume of storage class local is free that is large enough")


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        (Storage(), "PersistentVolumeClaim/shop/data does not exist"),
        (Storage((), (bound("data", "pv"),)), "PersistentVolumeClaim/shop/data is bound to volume pv, which does not exist"),
        (
            Storage((volume("pv"),), (bound("data", "pv", bound=False),)),
            "PersistentVolumeClaim/shop/data is not bound to volume pv yet",
        ),
        (Storage((volume("pv"),), (bound("data", "pv", lost=True),)), "PersistentVolumeClaim/shop/data has lost its volume"),
        (
            Storage((volume("pv"),), (bound("data", "pv", deleting=True),)),
            "PersistentVolumeClaim/shop/data is being deleted",
        ),
        (
            Storage((), (waiting("data", ""),), (WAITING,)),
            "PersistentVolumeClaim/shop/data is not bound and names no storage class",
        ),
        (Storage((), (waiting("data"),)), "PersistentVolumeClaim/shop/data: there is no storage class gp3"),
        (
            Storage((), (waiting("data"),), (replace(WAITING, waits=False),)),
            "PersistentVolumeClaim/shop/data is not bound yet, and its storage class gp3 binds before pods are placed",
        ),
    ],
)  # fmt: skip
def test_a_claim_that_no_node_can_satisfy_is_the_reason(storage: Storage, words: str) -> None:
    placement = placed(storage, pending("db", with_claims("data")), nodes=(node(),))
    assert not placement.occupied
    assert reason_of(placement) == words


@pytest.mark.parametrize(("controller", "fits"), [("uid-1", True), ("uid-0", False), ("", False)])
def test_the_claim_of_an_ephemeral_volume_must_have_been_made_for_the_pod(*, controller: str, fits: bool) -> None:
    storage = Storage((), (replace(waiting("db-tmp"), controller=controller),), (WAITING,))
    ephemeral = replace(with_claims("db-tmp"), ephemeral_claims=(("db-tmp", "uid-1"),))
    placement = placed(storage, pending("db", ephemeral), nodes=(node(),))
    assert bool(placement.occupied) == fits
    if not fits:
        assert reason_of(placement) == (
            "PersistentVolumeClaim/shop/db-tmp was not made for the pod, though its ephemeral volume's claim has that name"
        )


DATABASE = with_claims("data-0", "data-1", pod_shape=shape("100m"))
PAIRS = tuple(waiting(f"data-{number}") for number in range(2))


def test_a_node_takes_no_more_volumes_than_its_driver_can_attach() -> None:
    claims = tuple(waiting(f"data-{number}") for number in range(4))
    storage = Storage((), claims, (WAITING,), (VolumeLimits("node-1", ((EBS, 2),)),))
    there = pod("old", node="node-1", pod_shape=with_claims("data-3", pod_shape=shape("100m")))
    demands = [pending(f"db-{number}", with_claims(f"data-{number}", pod_shape=shape("100m"))) for number in range(3)]
    placement = placed(storage, *demands, nodes=(node(),), pods=(there,))
    assert sum(holding.count for item in placement.occupied for holding in item.holdings) == 1
    (planned,) = placement.planned
    assert sum(holding.count for holding in planned.holdings) == 2
    assert planned.requests.names() == ("cpu", "memory", "pods"), "nobody sells a node by the volumes it attaches"


def test_a_new_node_attaches_any_number_of_volumes() -> None:
    """As Karpenter has it: what its driver will say is known once the node is up."""
    there = replace(node(), unschedulable=True)
    storage = Storage((), PAIRS, (WAITING,), (VolumeLimits("node-1", ((EBS, 1),)),))
    assert placed(storage, pending("db", DATABASE), nodes=(there,)).planned


def test_spread_looks_at_zones_that_the_volume_is_not_in() -> None:
    """kube-scheduler reckons skew over the nodes that selector and affinity admit, whatever the pod's volumes say."""
    spread = TopologySpread(ZONE_LABEL, 1, "DoNotSchedule", LabelSelector((("app", "db"),)))
    spread_shape = replace(shape("100m", labels={"app": "db"}), topology_spread=(spread,))
    storage = Storage((volume("pv", where(ZONE_LABEL, "zone-a")),), (bound("data", "pv"),))
    nodes = (node("a", zone="zone-a"), node("b", zone="zone-b"))
    there = pod("old", node="a", pod_shape=spread_shape)
    placement = placed(storage, pending("db", with_claims("data", pod_shape=spread_shape)), nodes=nodes, pods=(there,))
    assert not placement.occupied, "a second pod in zone-a would skew it by two over zone-b"
    assert placement.unplaced


def test_a_volume_that_no_node_reaches_keeps_nobody_from_another() -> None:
    lost = volume("a-lost", NodeSelectorTerm(), storage_class="local", capacity=2**31, access_modes=("ReadWriteOnce",))
    ready = replace(lost, name="ready", terms=(where(ZONE_LABEL, "zone-c"),))
    local = StorageClass("local", NO_PROVISIONER, waits=True)
    storage = Storage((lost, ready), (waiting("data", "local"),), (local,))
    (planned,) = placed(storage, pending("db", with_claims("data"))).planned
    assert planned.zones == ("zone-c",)

    nowhere = placed(replace(storage, volumes=(lost,)), pending("db", with_claims("data")))
    assert "no volume of storage class local is free" in reason_of(nowhere)


def test_what_a_node_claim_promises_adds_no_volumes_to_its_node() -> None:
    """A young node's gaps are filled from its NodeClaim; that nothing can be attached any more is no gap."""
    labels = tuple(item for item in node("young").labels if item[0] != INITIALIZED_LABEL)
    young = replace(node("young", zone="zone-b"), labels=labels)
    claim = NodeClaim("claim", node_name="young", allocatable=young.allocatable)
    storage = Storage((), (waiting("data"),), (WAITING,), (VolumeLimits("young", ((EBS, 0),)),))
    view = ClusterView(nodes=(young,), node_claims=(claim,), storage=storage)
    asked = pending("db", with_claims("data"))
    placement = place(Problem(view, (), TYPES, (asked,)))
    assert placement.occupied == ()
    assert violations(Problem(view, (), TYPES, (asked,)), placement) == ()


def test_pods_that_are_placed_alike_are_each_told_of_their_own_claim() -> None:
    volumes = tuple(volume(f"pv-{n}", where(ZONE_LABEL, "zone-a")) for n in (1, 2))
    claims = tuple(bound(f"data-{n}", f"pv-{n}") for n in (1, 2))
    pods = [pending(f"db-{n}", with_claims(f"data-{n}", pod_shape=shape("99"))) for n in (1, 2)]
    found = {
        item.demand.name: [reason.example for reason in item.reasons if reason.cause == "volumes"]
        for item in placed(Storage(volumes, claims), *pods).unplaced
    }
    assert found == {
        f"db-{n}": [f"PersistentVolumeClaim/shop/data-{n} can be used only where {ZONE_LABEL}=zone-a"] for n in (1, 2)
    }
