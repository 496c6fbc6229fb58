"""Pods with volumes: where kube-scheduler would let them be, and what is said when nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.model.attachments import NO_PROVISIONER, PersistentVolume, Storage, StorageClass, VolumeClaim
from reconciler.model.demand import Demand
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node, NodeClaim
from reconciler.model.placement import Placement
from reconciler.model.pods import NodeSelectorTerm, Pod, PodShape
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import instance_type, node, node_pool, one_of, pending, pod, shape, spread, web
from tests.unit.placement.worlds import World

EBS = "ebs.csi.aws.com"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
TYPES = (instance_type("m-4x", zones=("zone-a", "zone-b", "zone-c")),)
WAITING = StorageClass("gp3", EBS, waits=True)


def where(key: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((one_of(key, *values),))


def volume(name: str, *terms: NodeSelectorTerm, **fields: object) -> PersistentVolume:
    return replace(PersistentVolume(name, terms), **fields)  # type: ignore[arg-type]


def bound(name: str, volume_name: str, **fields: object) -> VolumeClaim:
    return replace(VolumeClaim("shop", name, volume_name, bound=True), **fields)  # type: ignore[arg-type]


def waiting(name: str, storage_class: str | None = "gp3", **fields: object) -> VolumeClaim:
    return replace(VolumeClaim("shop", name, storage_class=storage_class), **fields)  # type: ignore[arg-type]


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
    ],
    ids=["by its affinity", "the driver's label as it stands"],
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


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        (Storage(), "PersistentVolumeClaim/shop/data does not exist"),
        (Storage((), (bound("data", "pv"),)), "PersistentVolumeClaim/shop/data is bound to volume pv, which does not exist"),
        (
            Storage((volume("pv"),), (bound("data", "pv", bound=False),)),
            "PersistentVolumeClaim/shop/data is not bound to volume pv yet",
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
        (
            Storage((), (waiting("data"),), (replace(WAITING, provisioner=NO_PROVISIONER),)),
            "PersistentVolumeClaim/shop/data waits for a volume that somebody made for storage class gp3: it is not judged",
        ),
        (
            Storage((volume("pv", NodeSelectorTerm()),), (bound("data", "pv"),)),
            "volume pv has a node affinity that no node meets",
        ),
    ],
)  # fmt: skip
def test_a_claim_that_no_node_can_satisfy_is_the_reason(storage: Storage, words: str) -> None:
    placement = placed(storage, pending("db", with_claims("data")), nodes=(node(),))
    assert not placement.occupied
    assert reason_of(placement) == words


def test_spread_looks_at_zones_that_the_volume_is_not_in() -> None:
    """kube-scheduler reckons skew over the nodes that selector and affinity admit, whatever the pod's volumes say."""
    spread_shape = web(topology_spread=(spread(ZONE_LABEL),))
    storage = Storage((volume("pv", where(ZONE_LABEL, "zone-a")),), (bound("data", "pv"),))
    nodes = (node("a", zone="zone-a"), node("b", zone="zone-b"))
    there = pod("old", node="a", pod_shape=spread_shape)
    placement = placed(storage, pending("db", with_claims("data", pod_shape=spread_shape)), nodes=nodes, pods=(there,))
    assert not placement.occupied, "a second pod in zone-a would skew it by two over zone-b"
    assert placement.unplaced


RISING = (node("a", zone="zone-a", cpu="1"), node("b-1", zone="zone-b", cpu="1"), node("b-2", zone="zone-b", cpu="1"))


def test_whether_pods_may_share_a_claim_is_not_judged_and_said() -> None:
    """Each fills a node, and the zones of the nodes differ."""
    two = [pending(name, with_claims("data", pod_shape=shape("900m"))) for name in ("one", "two")]
    placement = placed(Storage((), (waiting("data"),), (WAITING,)), *two, nodes=RISING)
    assert not placement.unplaced
    assert placement.assumptions == ("how many volumes a node can attach, and which pods may share one, is not judged",)


def test_while_its_volume_is_made_for_a_node_a_claim_holds_its_pods_to_that() -> None:
    storage = Storage((), (waiting("data", selected_node="b-2"),), (WAITING,))
    two = [pending(name, with_claims("data", pod_shape=shape("400m"))) for name in ("one", "two")]
    assert [item.node for item in placed(storage, *two, nodes=RISING).occupied] == ["b-2"]


def test_pods_with_resource_claims_are_not_judged_and_take_their_room_once_they_run() -> None:
    claiming = shape("3", claims_devices=True)
    words = "its pod names resource claims (Dynamic Resource Allocation), which headroom does not judge"
    assert reason_of(placed(Storage(), pending("train", claiming), nodes=(node(),))) == words
    view = ClusterView(nodes=(node(),), pods=(pod("train-0", node="node-1", pod_shape=claiming),))
    (left,) = place(Problem(view, (), (), (pending("web", shape("2")),))).unplaced
    assert left.reasons[0].example == "node-1 lacks 1 CPU, with 1 CPU free"


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
