"""What a pod would rather have is met on new nodes where it can be, and given up in Karpenter's order where it cannot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.demand.combine import pending_demands
from reconciler.model.demand import Demand
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from reconciler.model.placement import Placement
from reconciler.model.pods import Pod, PodShape, TopologySpread, WeightedPodAffinityTerm
from reconciler.model.view import ClusterView
from reconciler.placement.batches import KnownNeeds, batches_of, firmer_shapes
from tests.builders import demand, instance_type, node, node_pool, pod, selects, shape, spread, term, web
from tests.unit.placement.worlds import World

ZONES = ("zone-a", "zone-b", "zone-c")
TYPES = (instance_type("m-16x", cpu="16", memory="64Gi", zones=ZONES),)


def softly(key: str = ZONE_LABEL) -> TopologySpread:
    return spread(key, when_unsatisfiable="ScheduleAnyway")


def near(app: str, weight: int = 1) -> WeightedPodAffinityTerm:
    return WeightedPodAffinityTerm(weight, term(ZONE_LABEL, app))


def placed(*demands: Demand, nodes: Sequence[Node] = (), pods: Sequence[Pod] = (), unplaced: int = 0) -> Placement:
    """Placed and found right by the checker."""
    view, pools = ClusterView(nodes=tuple(nodes), pods=tuple(pods)), (node_pool(),)
    placement = World(view, pools, TYPES, demands).placed_rightly()
    assert sum(item.count for item in placement.unplaced) == unplaced
    return placement


def by_zone(placement: Placement) -> dict[tuple[str, ...], int]:
    return {item.zones: sum(holding.count for holding in item.holdings) for item in placement.planned}


def test_soft_spread_over_zones_is_met_on_new_nodes() -> None:
    wanted = demand(count=6, pod_shape=web("500m", "512Mi", topology_spread=(softly(),)))
    assert by_zone(placed(wanted)) == {(zone,): 2 for zone in ZONES}


def test_it_makes_no_node_where_there_is_room() -> None:
    wanted = demand(count=6, pod_shape=web("500m", "512Mi", topology_spread=(softly(),)))
    placement = placed(wanted, nodes=(node("roomy", cpu="16"),))
    assert not placement.planned, "kube-scheduler weighs it, and takes the room that is there"


def test_soft_spread_over_hosts_buys_no_node_for_each_pod() -> None:
    wanted = demand(count=6, pod_shape=web("500m", "512Mi", topology_spread=(softly(HOSTNAME_LABEL),)))
    assert len(placed(wanted).planned) == 1


def test_preferred_company_decides_the_zone_of_a_new_node() -> None:
    there = pod("db-0", node="full", pod_shape=shape("900m", labels={"app": "db"}))
    wanted = demand(count=2, pod_shape=web("500m", "512Mi", preferred_pod_affinity=(near("db"),)))
    placement = placed(wanted, nodes=(node("full", cpu="1", zone="zone-c"),), pods=(there,))
    assert by_zone(placement) == {("zone-c",): 2}


def test_the_order_is_affinity_heaviest_first_and_then_spread() -> None:
    both = web(
        preferred_pod_affinity=(near("db", 1), near("web", 9)),
        topology_spread=(softly(), softly(HOSTNAME_LABEL), softly("rack")),
    )
    rungs = [
        (
            [term.selector for term in rung.pod_affinity],
            [item.topology_key for item in rung.topology_spread if item.when_unsatisfiable == "DoNotSchedule"],
        )
        for rung in firmer_shapes(both)
    ]
    assert rungs == [
        ([selects("web"), selects("db")], [ZONE_LABEL, "rack"]),
        ([selects("db")], [ZONE_LABEL, "rack"]),
        ([], [ZONE_LABEL, "rack"]),
        ([], [ZONE_LABEL]),
    ]
    assert firmer_shapes(web(topology_spread=(spread(ZONE_LABEL),))) == ()


def test_a_wish_that_nobody_meets_waives_no_rule() -> None:
    """Else the chunk would count as the first of its kind, who may be anywhere, though another is there that it has to be near."""
    beside_its_version = WeightedPodAffinityTerm(1, term(ZONE_LABEL, match_label_keys=("version",)))
    there = pod("web-0", node="full", pod_shape=shape("900m", labels={"app": "web", "version": "1"}))
    newer = web(
        "500m",
        "512Mi",
        labels={"app": "web", "version": "2"},
        pod_affinity=(term(HOSTNAME_LABEL),),
        preferred_pod_affinity=(beside_its_version,),
    )
    placement = placed(
        demand(count=1, pod_shape=newer), nodes=(node("full", cpu="1"), node("roomy")), pods=(there,), unplaced=1
    )
    assert not placement.planned


# The order in which pending pods of equal priority are placed: those first that have least choice of nodes.

APART = shape("300m", pod_anti_affinity=(term(HOSTNAME_LABEL),))
TOGETHER = shape("200m", pod_affinity=(term(ZONE_LABEL),))
OVER_ZONES = shape("100m", topology_spread=(spread(ZONE_LABEL),))
OVER_HOSTS = shape("1", topology_spread=(spread(HOSTNAME_LABEL),))
ANYWHERE, LARGE = shape("1500m"), shape("2")
"""Those with less choice ask for less, so that by size alone they would come the other way round."""
SHAPES = (LARGE, ANYWHERE, OVER_HOSTS, APART, TOGETHER, OVER_ZONES)


def in_order(*, include_pending: bool) -> list[PodShape]:
    view = ClusterView(pods=tuple(pod(f"pod-{number}", pod_shape=item) for number, item in enumerate(SHAPES)))
    demands = pending_demands(view, include_pending=include_pending)
    needs = KnownNeeds(lambda _: np.zeros(1, dtype=np.int64))
    return [batch.needs.shape for batch in batches_of(demands, needs.of, include_pending=include_pending)]


def test_pods_that_get_new_nodes_come_by_choice_and_then_by_size() -> None:
    assert in_order(include_pending=True) == [APART, TOGETHER, OVER_ZONES, OVER_HOSTS, LARGE, ANYWHERE]


def test_pods_that_wait_for_room_come_by_size() -> None:
    assert in_order(include_pending=False) == list(SHAPES)
