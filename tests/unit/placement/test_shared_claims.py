"""Claims that several pods share: what a node attaches once, what must be reached by all, and what one pod has alone.

Each rule as kube-scheduler has it: NodeVolumeLimits, VolumeBinding, VolumeRestrictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from reconciler.model.placement import Placement
from reconciler.model.pods import NodeSelectorTerm, Pod, PodAffinityTerm, PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.model.storage import NO_PROVISIONER, PersistentVolume, Storage, StorageClass, VolumeClaim, VolumeLimits
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import instance_type, node, node_pool, pod, shape

EBS, EBS_ZONE = "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
TYPES = (instance_type("m-4x", zones=("zone-a", "zone-b", "zone-c")),)
POOLS = (node_pool(),)
WAITING = StorageClass("gp3", EBS, waits=True)
LIMITED_TO_ONE = (VolumeLimits("node-1", ((EBS, 1),), ((EBS, (ZONE_LABEL,)),)),)
ZONAL = (VolumeLimits("node-1", (), ((EBS, (EBS_ZONE,)),)),)


def bound(name: str, volume: str, *modes: str) -> VolumeClaim:
    return VolumeClaim("shop", name, volume, bound=True, access_modes=modes)


def waiting(name: str, storage_class: str = "gp3", **fields: str) -> VolumeClaim:
    return replace(VolumeClaim("shop", name, storage_class=storage_class, requested=2**30), **fields)  # type: ignore[arg-type]


def where(key: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((Requirement(key, Operator.IN, values),))


def using(*claims: str, cpu: str = "100m", **fields: object) -> PodShape:
    return replace(shape(cpu), volume_claims=claims, **fields)  # type: ignore[arg-type]


def pending(name: str, pod_shape: PodShape, *, count: int = 1, priority: int = 0) -> Demand:
    return Demand(ObjectRef("", "Pod", "shop", name), (ChunkGroup(pod_shape, count),), count, priority=priority)


def placed(
    storage: Storage, *demands: Demand, nodes: Sequence[Node] = (), pods: Sequence[Pod] = (), opening: bool = False
) -> Placement:
    """Placed and found right by the checker. opening: new nodes may be made."""
    view = ClusterView(nodes=tuple(nodes), pods=tuple(pods), storage=storage)
    pools, types = (POOLS, TYPES) if opening else ((), ())
    placement = place(
        Problem(
            view,
            node_pools=pools,
            instance_types=types,
            demands=demands,
            options=PlacementOptions(include_pending=opening),
        )
    )
    assert violations(Problem(view, node_pools=pools, instance_types=types, demands=demands), placement) == ()
    return placement


def nodes_of(placement: Placement) -> dict[str, str | None]:
    return {holding.demand.name: item.node for item in placement.occupied for holding in item.holdings}


def excuses_of(placement: Placement) -> list[str]:
    return [reason.example for left in placement.unplaced for reason in left.reasons]


SHARED = Storage((PersistentVolume("pv", driver=EBS),), (bound("data", "pv"),), (), LIMITED_TO_ONE)


def test_a_volume_that_a_pod_on_the_node_uses_is_attached_already() -> None:
    there = pod("old", node="node-1", pod_shape=using("data"))
    assert nodes_of(placed(SHARED, pending("new", using("data")), nodes=(node(),), pods=(there,))) == {"new": "node-1"}


def test_a_volume_of_several_pods_counts_once() -> None:
    two = (pending("one", using("data")), pending("two", using("data", cpu="200m")))
    assert nodes_of(placed(SHARED, *two, nodes=(node(),))) == {"one": "node-1", "two": "node-1"}


def test_chunks_of_one_shape_share_their_volume() -> None:
    (occupied,) = placed(SHARED, pending("many", using("data"), count=5), nodes=(node(),)).occupied
    assert [holding.count for holding in occupied.holdings] == [5]


def test_another_volume_is_one_too_many() -> None:
    storage = replace(
        SHARED,
        volumes=(*SHARED.volumes, PersistentVolume("other", driver=EBS)),
        claims=(*SHARED.claims, bound("logs", "other")),
    )
    two = (pending("one", using("data")), pending("two", using("data", "logs")))
    placement = placed(storage, *two, nodes=(node(),))
    assert nodes_of(placement) == {"one": "node-1"}
    assert excuses_of(placement) == ["node-1 lacks 1 volume of ebs.csi.aws.com even without the pods on it"]


def test_claims_whose_volumes_are_one_to_the_driver_count_once() -> None:
    """Volumes made by hand for one file system: kube-scheduler goes by driver and volumeHandle."""
    volumes = tuple(PersistentVolume(name, driver=EBS, handle="fs-1") for name in ("pv-0", "pv-1"))
    storage = Storage(volumes, (bound("data", "pv-0"), bound("logs", "pv-1")), (), LIMITED_TO_ONE)
    two = (pending("one", using("data")), pending("two", using("logs")), pending("both", using("data", "logs")))
    assert set(nodes_of(placed(storage, *two, nodes=(node(),)))) == {"one", "two", "both"}


def test_a_claim_without_a_volume_counts_once_too() -> None:
    storage = Storage((), (waiting("data"),), (WAITING,), LIMITED_TO_ONE)
    two = (pending("one", using("data")), pending("two", using("data", cpu="200m")))
    assert set(nodes_of(placed(storage, *two, nodes=(node(),)))) == {"one", "two"}


def test_a_new_node_attaches_a_shared_volume_once() -> None:
    full = replace(node(), unschedulable=True)
    placement = placed(SHARED, pending("many", using("data", cpu="1"), count=3), nodes=(full,), opening=True)
    (planned,) = placement.planned
    assert sum(holding.count for holding in planned.holdings) == 3


def test_pods_that_share_in_part_go_where_the_fewest_volumes_have_to_be_attached() -> None:
    """Two volumes fit on each node: who shares one with those on node-2 finds room there only."""
    names = ("a", "b", "c", "d")
    storage = Storage(
        tuple(PersistentVolume(name, driver=EBS) for name in names),
        tuple(bound(name, name) for name in names),
        (),
        tuple(VolumeLimits(name, ((EBS, 2),)) for name in ("node-1", "node-2")),
    )
    there = (pod("x", node="node-1", pod_shape=using("a", "b")), pod("y", node="node-2", pod_shape=using("c")))
    placement = placed(storage, pending("new", using("c", "d")), nodes=(node(), node("node-2")), pods=there)
    assert nodes_of(placement) == {"new": "node-2"}


RISING = (node("a", zone="zone-a", cpu="1"), node("b-1", zone="zone-b", cpu="1"), node("b-2", zone="zone-b", cpu="1"))


def test_the_first_pod_of_a_claim_decides_the_zone_of_the_others() -> None:
    """Each fills a node. kube-scheduler looks at no other pod when it takes the first to zone-a."""
    storage = Storage((), (waiting("data"),), (WAITING,), ZONAL)
    two = (pending("one", using("data", cpu="900m")), pending("two", using("data", cpu="800m")))
    placement = placed(storage, *two, nodes=RISING)
    assert nodes_of(placement) == {"one": "a"}
    assert (
        "b-1: ruled out by the volume of PersistentVolumeClaim/shop/data, which is made in another zone"
        in excuses_of(placement)
    )


def test_a_plan_brings_all_pods_of_a_claim_to_where_they_have_room() -> None:
    """Only zone-b has two nodes; the third pod gets one that is made there."""
    storage = Storage((), (waiting("data"),), (WAITING,), ZONAL)
    two = (pending("one", using("data", cpu="900m")), pending("two", using("data", cpu="800m")))
    placement = placed(storage, *two, nodes=RISING, opening=True)
    assert set(nodes_of(placement).values()) == {"b-1", "b-2"}
    placement = placed(storage, *two, pending("three", using("data", cpu="3500m")), nodes=RISING, opening=True)
    assert set(nodes_of(placement).values()) == {"b-1", "b-2"}
    assert [item.zones for item in placement.planned] == [("zone-b",)]


def test_new_nodes_for_pods_of_one_claim_are_of_one_zone() -> None:
    storage = Storage((), (waiting("data"),), (WAITING,), ZONAL)
    placement = placed(storage, pending("many", using("data", cpu="3"), count=3), nodes=(), opening=True)
    assert len(placement.planned) == 3
    (zones,) = {item.zones for item in placement.planned}
    assert len(zones) == 1


def test_a_volume_that_is_reached_from_everywhere_holds_nobody() -> None:
    """The driver's CSINodes name no topology: a network file system."""
    anywhere = (VolumeLimits("a", (), ((EBS, ()),)),)
    storage = Storage((), (waiting("data"),), (WAITING,), anywhere)
    three = [pending(f"db-{number}", using("data", cpu=f"{900 - number}m")) for number in range(3)]
    assert len(nodes_of(placed(storage, *three, nodes=RISING))) == 3


def test_a_driver_that_tells_nodes_apart_by_a_label_of_its_own_keeps_pods_on_one_node() -> None:
    local = (VolumeLimits("a", (), ((EBS, ("topology.local.example.com/node",)),)),)
    storage = Storage((), (waiting("data"),), (WAITING,), local)
    nodes = [replace(item, labels=(*item.labels, ("topology.local.example.com/node", item.name))) for item in RISING]
    two = (pending("one", using("data", cpu="400m")), pending("two", using("data", cpu="500m")))
    assert len(set(nodes_of(placed(storage, *two, nodes=nodes)).values())) == 1
    large = (pending("one", using("data", cpu="600m")), pending("two", using("data", cpu="700m")))
    (reason, *_) = [words for words in excuses_of(placed(storage, *large, nodes=nodes)) if "made" in words]
    assert "which is made in another node" in reason


def test_where_no_csi_node_tells_the_zone_is_taken_and_said() -> None:
    storage = Storage((), (waiting("data"),), (WAITING,))
    two = [pending(f"db-{number}", using("data", cpu=f"{900 - number}m")) for number in range(2)]
    assert placed(storage, two[0], nodes=RISING).assumptions == ()
    placement = placed(storage, *two, nodes=RISING, opening=True)
    assert set(nodes_of(placement).values()) == {"b-1", "b-2"}
    (sentence,) = placement.assumptions
    assert sentence == (
        "PersistentVolumeClaim/shop/data has no volume yet, and no CSINode tells from where that will be reached: "
        "its pods are placed in one zone"
    )


def test_claims_that_one_pod_uses_together_get_their_volumes_in_one_place() -> None:
    """`both` must reach the volumes of `one` and of `two`."""
    storage = Storage((), (waiting("data"), waiting("logs")), (WAITING,), ZONAL)
    nodes = (*RISING, node("b-3", zone="zone-b", cpu="1"))
    demands = (
        pending("one", using("data", cpu="900m")),
        pending("two", using("logs", cpu="800m")),
        pending("both", using("data", "logs", cpu="700m")),
    )
    placement = placed(storage, *demands, nodes=nodes, opening=True)
    assert set(nodes_of(placement).values()) == {"b-1", "b-2", "b-3"}


def test_company_that_pods_ask_for_themselves_is_another_matter() -> None:
    """`two` wants to be with the cache of zone-b, and shares a volume with `one`, which has nobody to be with."""
    near_cache = PodAffinityTerm(ZONE_LABEL, LabelSelector((("app", "cache"),)))
    storage = Storage((), (waiting("data"),), (WAITING,), ZONAL)
    cache = pod("cache", node="b-1", pod_shape=replace(shape("100m", labels={"app": "cache"})))
    demands = (
        pending("two", using("data", cpu="500m", pod_affinity=(near_cache,)), priority=1),
        pending("one", using("data", cpu="400m")),
    )
    placement = placed(storage, *demands, nodes=RISING, pods=(cache,))
    assert {name for name in nodes_of(placement).values() if name} <= {"b-1", "b-2"}
    assert len(nodes_of(placement)) == 2


def test_of_volumes_that_lie_ready_the_first_pod_takes_one_for_all() -> None:
    local = StorageClass("local", NO_PROVISIONER, waits=True)
    volumes = tuple(
        PersistentVolume(f"pv-{name}", (where(HOSTNAME_LABEL, name),), storage_class="local", capacity=2**31)
        for name in ("a", "b-1")
    )
    nodes = [replace(item, labels=(*item.labels, (HOSTNAME_LABEL, item.name))) for item in RISING]
    storage = Storage(volumes, (waiting("data", "local"),), (local,))
    two = (pending("one", using("data", cpu="400m")), pending("two", using("data", cpu="500m")))
    found = set(nodes_of(placed(storage, *two, nodes=nodes)).values())
    assert len(found) == 1
    assert found <= {"a", "b-1"}


def test_while_its_volume_is_made_for_a_node_a_claim_holds_its_pods_to_that() -> None:
    storage = Storage((), (waiting("data", selected_node="b-2"),), (WAITING,), ZONAL)
    two = (pending("one", using("data", cpu="400m")), pending("two", using("data", cpu="500m")))
    assert set(nodes_of(placed(storage, *two, nodes=RISING)).values()) == {"b-2"}
    none = replace(WAITING, provisioner=NO_PROVISIONER)
    words = excuses_of(placed(replace(storage, classes=(none,)), two[0], nodes=RISING))
    assert words == [
        "PersistentVolumeClaim/shop/data waits for a volume for node b-2, and its storage class makes none"
    ]


ALONE = Storage((PersistentVolume("pv", driver=EBS),), (bound("data", "pv", "ReadWriteOncePod"),))
TAKEN = "PersistentVolumeClaim/shop/data is ReadWriteOncePod and another pod uses it"


def test_a_claim_for_one_pod_is_had_by_one_pod() -> None:
    two = (pending("db-0", using("data")), pending("db-1", using("data")))
    placement = placed(ALONE, *two, nodes=(node(),))
    assert nodes_of(placement) == {"db-0": "node-1"}
    assert excuses_of(placement) == [TAKEN]


def test_a_claim_for_one_pod_that_runs_is_not_to_be_had() -> None:
    there = pod("old", node="node-1", pod_shape=using("data"))
    placement = placed(ALONE, pending("db-0", using("data")), nodes=(node(), node("node-2")), pods=(there,))
    assert excuses_of(placement) == [TAKEN]


def test_of_many_chunks_one_has_a_claim_for_one_pod() -> None:
    placement = placed(ALONE, pending("many", using("data"), count=3), nodes=(node(),))
    assert [(left.count, left.reasons[0].example) for left in placement.unplaced] == [(2, TAKEN)]


def test_a_claim_for_one_pod_goes_to_the_first_that_finds_a_place() -> None:
    """kube-scheduler tries by priority, and who finds no node takes nothing."""
    demands = (
        pending("a-late", using("data")),
        pending("b-large", using("data", cpu="100"), priority=2),
        pending("c-first", using("data"), priority=1),
    )
    placement = placed(ALONE, *demands, nodes=(node(),))
    assert nodes_of(placement) == {"c-first": "node-1"}
    reasons = {left.demand.name: left.reasons[0].example for left in placement.unplaced}
    assert reasons == {"a-late": TAKEN, "b-large": TAKEN}


@pytest.mark.parametrize("count", [1, 12, 250])
def test_what_shares_nothing_is_left_as_it_is(count: int) -> None:
    """Claims of their own, on drivers that limit nodes: the very shapes that were placed before."""
    claims = tuple(waiting(f"data-{number}") for number in range(count))
    storage = Storage((), claims, (WAITING,), LIMITED_TO_ONE)
    demands = [pending(f"db-{number}", using(f"data-{number}")) for number in range(count)]
    placement = placed(storage, *demands, nodes=(node(),))
    assert len(nodes_of(placement)) == 1
    assert set(excuses_of(placement)) <= {"node-1 lacks 1 volume of ebs.csi.aws.com"}
