"""Claims that several pods share. Each pod counts its own volumes, which is too strict at worst; a ReadWriteOncePod claim goes to
the first pod; and where a volume is yet to be made, the plan says that its pods are not judged together. Resource claims are not judged.

The independent checker judges as kube-scheduler does, which attaches a volume once (NodeVolumeLimits).
"""

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
from reconciler.model.nodes import Node
from reconciler.model.placement import Placement
from reconciler.model.pods import Pod, PodShape
from reconciler.model.view import ClusterView
from reconciler.placement.problem import PlacementOptions
from tests.builders import instance_type, node, node_pool, pending, pod, shape
from tests.unit.placement.worlds import World

EBS = "ebs.csi.aws.com"
TYPES = (instance_type("m-4x", zones=("zone-a", "zone-b", "zone-c")),)
POOLS = (node_pool(),)
WAITING = StorageClass("gp3", EBS, waits=True)
LIMITED_TO_ONE = (VolumeLimits("node-1", ((EBS, 1),)),)


def bound(name: str, volume: str, *modes: str) -> VolumeClaim:
    return VolumeClaim("shop", name, volume, bound=True, access_modes=modes)


def waiting(name: str, storage_class: str = "gp3", **fields: str) -> VolumeClaim:
    return replace(VolumeClaim("shop", name, storage_class=storage_class, requested=2**30), **fields)  # type: ignore[arg-type]


def using(*claims: str, cpu: str = "100m", **fields: object) -> PodShape:
    return replace(shape(cpu), volume_claims=claims, **fields)  # type: ignore[arg-type]


def placed(
    storage: Storage, *demands: Demand, nodes: Sequence[Node] = (), pods: Sequence[Pod] = (), opening: bool = False
) -> Placement:
    """Placed and found right by the checker. opening: new nodes may be made."""
    view = ClusterView(nodes=tuple(nodes), pods=tuple(pods), storage=storage)
    pools, types = (POOLS, TYPES) if opening else ((), ())
    return World(view, pools, types, demands, options=PlacementOptions(include_pending=opening)).placed_rightly()


def nodes_of(placement: Placement) -> dict[str, str | None]:
    return {holding.demand.name: item.node for item in placement.occupied for holding in item.holdings}


def reasons_of(placement: Placement) -> list[str]:
    return [reason.example for left in placement.unplaced for reason in left.reasons]


SHARED = Storage((PersistentVolume("pv", driver=EBS),), (bound("data", "pv"),), (), LIMITED_TO_ONE)
FULL = "node-1 lacks 1 volume of ebs.csi.aws.com"


def test_pods_with_resource_claims_are_not_judged_and_take_their_room_once_they_run() -> None:
    claiming = replace(using("data", cpu="3"), claims_devices=True)
    placement = placed(SHARED, pending("train", claiming), nodes=(node(),), opening=True)
    words = "its pod names resource claims (Dynamic Resource Allocation), which headroom does not judge"
    assert (nodes_of(placement), reasons_of(placement)) == ({}, [words])
    running = placed(
        SHARED, pending("web", shape("2")), nodes=(node(),), pods=[pod("train-0", node="node-1", pod_shape=claiming)]
    )
    assert reasons_of(running) == ["node-1 lacks 1 CPU, with 1 CPU free"]


def test_each_pod_counts_its_own_volumes() -> None:
    """kube-scheduler would attach the volume once and take both."""
    two = (pending("one", using("data")), pending("two", using("data", cpu="200m")))
    placement = placed(SHARED, *two, nodes=(node(),))
    assert len(nodes_of(placement)) == 1
    assert reasons_of(placement) == [FULL]


def test_a_volume_that_a_pod_on_the_node_uses_counts_again() -> None:
    there = pod("old", node="node-1", pod_shape=using("data"))
    placement = placed(SHARED, pending("new", using("data")), nodes=(node(),), pods=(there,))
    assert nodes_of(placement) == {}
    assert reasons_of(placement) == [f"{FULL} even without the pods on it"]


def test_where_drivers_limit_nothing_pods_share_volumes_freely() -> None:
    demands = [pending(f"db-{number}", using("data")) for number in range(3)]
    placement = placed(replace(SHARED, limits=()), *demands, nodes=(node(),))
    assert set(nodes_of(placement)) == {"db-0", "db-1", "db-2"}


def test_claims_of_a_pod_whose_volumes_are_one_to_the_driver_count_once() -> None:
    """Volumes made by hand for one file system: kube-scheduler goes by driver and volumeHandle."""
    volumes = tuple(PersistentVolume(name, driver=EBS, handle="fs-1") for name in ("pv-0", "pv-1"))
    storage = Storage(volumes, (bound("data", "pv-0"), bound("logs", "pv-1")), (), LIMITED_TO_ONE)
    both = pending("both", using("data", "logs"))
    assert nodes_of(placed(storage, both, nodes=(node(),))) == {"both": "node-1"}
    apart = replace(storage, volumes=(volumes[0], replace(volumes[1], handle="fs-2")))
    assert nodes_of(placed(apart, both, nodes=(node(),))) == {}


RISING = (node("a", zone="zone-a", cpu="1"), node("b-1", zone="zone-b", cpu="1"), node("b-2", zone="zone-b", cpu="1"))


def test_that_all_pods_of_a_claim_must_reach_its_volume_is_not_judged_and_said() -> None:
    """Each fills a node, and the zones of the nodes differ."""
    storage = Storage((), (waiting("data"),), (WAITING,))
    two = (pending("one", using("data", cpu="900m")), pending("two", using("data", cpu="800m")))
    placement = placed(storage, *two, nodes=RISING)
    assert set(nodes_of(placement)) == {"one", "two"}
    assert placement.assumptions == (
        "PersistentVolumeClaim/shop/data has no volume yet and 2 pods use it: that all of them must reach it is not judged",
    )
    assert placed(storage, two[0], nodes=RISING).assumptions == (), "a pod alone decides where its volume is made"


def test_while_its_volume_is_made_for_a_node_a_claim_holds_its_pods_to_that() -> None:
    storage = Storage((), (waiting("data", selected_node="b-2"),), (WAITING,))
    two = (pending("one", using("data", cpu="400m")), pending("two", using("data", cpu="500m")))
    assert set(nodes_of(placed(storage, *two, nodes=RISING)).values()) == {"b-2"}
    none = replace(WAITING, provisioner=NO_PROVISIONER)
    words = reasons_of(placed(replace(storage, classes=(none,)), two[0], nodes=RISING))
    assert words == [
        "PersistentVolumeClaim/shop/data waits for a volume for node b-2, and its storage class makes none"
    ]


ALONE = Storage((PersistentVolume("pv", driver=EBS),), (bound("data", "pv", "ReadWriteOncePod"),))
TAKEN = "PersistentVolumeClaim/shop/data is ReadWriteOncePod and another pod uses it"


def test_a_claim_for_one_pod_is_had_by_one_pod() -> None:
    two = (pending("db-0", using("data")), pending("db-1", using("data")))
    placement = placed(ALONE, *two, nodes=(node(),))
    assert nodes_of(placement) == {"db-0": "node-1"}
    assert reasons_of(placement) == [TAKEN]


def test_a_claim_for_one_pod_that_runs_is_not_to_be_had() -> None:
    there = pod("old", node="node-1", pod_shape=using("data"))
    placement = placed(ALONE, pending("db-0", using("data")), nodes=(node(), node("node-2")), pods=(there,))
    assert reasons_of(placement) == [TAKEN]


def test_a_claim_for_one_pod_goes_to_the_first_by_priority_and_name() -> None:
    """Whether or not that pod finds a node, which is too strict at worst."""
    demands = (
        pending("a-late", using("data")),
        pending("b-large", using("data", cpu="100"), priority=1),
        pending("c-early", using("data"), priority=1),
    )
    placement = placed(ALONE, *demands, nodes=(node(),))
    assert nodes_of(placement) == {}
    reasons = {left.demand.name: left.reasons[0].example for left in placement.unplaced}
    assert reasons.pop("b-large").startswith("node-1 ")
    assert reasons == {"a-late": TAKEN, "c-early": TAKEN}


@pytest.mark.parametrize("count", [1, 12, 250])
def test_what_shares_nothing_is_left_as_it_is(count: int) -> None:
    """Claims of their own, on drivers that limit nodes: the very shapes that were placed before."""
    claims = tuple(waiting(f"data-{number}") for number in range(count))
    storage = Storage((), claims, (WAITING,), LIMITED_TO_ONE)
    demands = [pending(f"db-{number}", using(f"data-{number}")) for number in range(count)]
    placement = placed(storage, *demands, nodes=(node(),))
    assert len(nodes_of(placement)) == 1
    assert set(reasons_of(placement)) <= {"node-1 lacks 1 volume of ebs.csi.aws.com"}
