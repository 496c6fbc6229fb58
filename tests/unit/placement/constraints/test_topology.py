"""Spread and inter-pod (anti-)affinity, on nodes that are there and on nodes to be made."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from reconciler.model.buffers import Recreation
from reconciler.model.demand import Demand
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, HOSTNAME_LABEL, ZONE_LABEL
from reconciler.model.placement import Placement
from reconciler.model.pods import DaemonSet, HostPort, PodAffinityTerm, PodShape
from reconciler.model.requirements import LabelSelector
from reconciler.model.view import ClusterView
from tests.builders import demand, instance_type, node, node_pool, one_of, pod, shape, spread, term, web
from tests.unit.placement.worlds import World

ZONES = ("zone-a", "zone-b", "zone-c")
TYPES = (
    instance_type("small", cpu="2", price=0.1, zones=ZONES, capacity_types=("on-demand", "spot")),
    instance_type("large", cpu="8", price=0.36, zones=ZONES, capacity_types=("on-demand", "spot")),
)


def placed(view: ClusterView, *demands: Demand) -> Placement:
    return World(view, (node_pool(),), TYPES, demands).placed_rightly()


def by_zone(placement: Placement, view: ClusterView = ClusterView()) -> dict[str, int]:  # noqa: B008 - immutable
    zones = {item.name: dict(item.labels)[ZONE_LABEL] for item in view.nodes}
    found: Counter[str] = Counter()
    for item in placement.occupied:
        found[zones[item.node or ""]] += sum(holding.count for holding in item.holdings)
    for made in placement.planned:
        found["|".join(made.zones)] += sum(holding.count for holding in made.holdings)
    return dict(found)


def test_a_pod_on_its_way_out_counts_no_more() -> None:
    going = pod("a", node="one", pod_shape=web(), deleting=True)
    view = ClusterView(nodes=(node("one"),), pods=(going,))

    assert by_zone(placed(view, demand(count=1, pod_shape=web(topology_spread=(spread(ZONE_LABEL),)))), view) == {
        "zone-a": 1
    }


def test_spreads_over_capacity_types_and_zones_together() -> None:
    both = (spread(ZONE_LABEL), spread(CAPACITY_TYPE_LABEL))

    placement = placed(ClusterView(), demand(count=6, pod_shape=web(topology_spread=both)))

    assert Counter(
        made.zones for made in placement.planned for holding in made.holdings for _ in range(holding.count)
    ) == {(zone,): 2 for zone in ZONES}
    assert (
        sorted(
            made.capacity_types[0]
            for made in placement.planned
            for holding in made.holdings
            for _ in range(holding.count)
        )
        == ["on-demand"] * 3 + ["spot"] * 3
    )


def test_min_domains_hold_back_what_would_crowd_too_few() -> None:
    constraint = spread(ZONE_LABEL, min_domains=4)

    placement = placed(ClusterView(), demand(count=5, pod_shape=web(topology_spread=(constraint,))))

    assert by_zone(placement) == {"zone-a": 1, "zone-b": 1, "zone-c": 1}
    assert placement.unplaced[0].count == 2
    assert placement.unplaced[0].reasons[0].example == (
        "NodePool general: ruled out by spread over topology.kubernetes.io/zone (maxSkew 1; minDomains 4, 3 zones are there)"
    )


def test_min_domains_of_hosts_count_the_nodes_that_are_there() -> None:
    constraint = spread(HOSTNAME_LABEL, min_domains=2)
    view = ClusterView(nodes=(node("one"),))

    placement = placed(view, demand(count=2, pod_shape=web(topology_spread=(constraint,)), opens_nodes=False))

    assert placement.unplaced[0].reasons[0].example == (
        "one: ruled out by spread over kubernetes.io/hostname (maxSkew 1; minDomains 2, 1 node is there)"
    )


def test_a_revision_of_its_own_is_spread_by_itself() -> None:
    def labelled(revision: str) -> PodShape:
        labels = {"app": "web", "revision": revision}
        return web(labels=labels, topology_spread=(spread(ZONE_LABEL, match_label_keys=("revision",)),))

    view = ClusterView(nodes=(node("one"),), pods=(pod("a", node="one", pod_shape=labelled("1")),))

    assert by_zone(placed(view, demand(count=1, pod_shape=labelled("2"))), view) == {"zone-a": 1}


def test_whom_a_chunk_wants_near_is_told_in_order() -> None:
    """The first of them, whatever order the terms are in and however this process hashes strings."""
    terms = tuple(term(ZONE_LABEL, name) for name in "gbfdace")
    view = ClusterView(nodes=(node("one"),), pods=(pod("a", node="one", pod_shape=web()),))

    placement = placed(view, demand(count=1, pod_shape=shape("100m", pod_affinity=terms)))

    told = [reason.example for item in placement.unplaced for reason in item.reasons]
    assert told
    for example in told:
        assert re.findall("app=(.)", example) == list("abcd"), example


def test_other_namespaces_are_looked_into_only_when_asked() -> None:
    def away(asked: PodAffinityTerm) -> PodShape:
        return shape("100m", pod_anti_affinity=(asked,))

    elsewhere = web(namespace="store")
    view = ClusterView(
        nodes=(node("one"),),
        pods=(pod("a", namespace="store", node="one", pod_shape=elsewhere),),
        namespaces={"store": {"team": "red"}, "shop": {}},
    )
    red = LabelSelector((), (one_of("team", "red"),))

    assert len(placed(view, demand(count=1, pod_shape=away(term(HOSTNAME_LABEL)))).planned) == 0
    for asked in (
        term(HOSTNAME_LABEL, namespaces=("store",)),
        term(HOSTNAME_LABEL, namespace_selector=LabelSelector()),
        term(HOSTNAME_LABEL, namespace_selector=red),
    ):
        assert len(placed(view, demand(count=1, pod_shape=away(asked))).planned) == 1


def test_the_very_pods_that_run_do_not_keep_a_keep_minimum_buffer_off() -> None:
    alone = web(pod_anti_affinity=(term(HOSTNAME_LABEL),))
    view = ClusterView(nodes=(node("one"), node("two")), pods=(pod("a", node="one", pod_shape=alone),))
    minimum = demand(count=2, pod_shape=alone, recreation=Recreation.KEEP_MINIMUM)

    assert [item.node for item in placed(view, minimum).occupied] == ["one", "two"]


def test_a_host_port_is_given_once_a_node() -> None:
    listening = web(host_ports=(HostPort(80),))
    view = ClusterView(
        nodes=(node("one"),), pods=(pod("a", node="one", pod_shape=web(host_ports=(HostPort(80, "UDP"),))),)
    )

    placement = placed(view, demand(count=3, pod_shape=listening))

    assert [item.holdings[0].count for item in placement.occupied] == [1]
    assert [made.holdings[0].count for made in placement.planned] == [1, 1]


@pytest.mark.parametrize(("selects", "nodes"), [({}, 0), ({"role": "ingress"}, 2)])
def test_host_ports_of_daemons_are_taken_where_the_daemons_run(selects: dict[str, str], nodes: int) -> None:
    listening = web(host_ports=(HostPort(80),))
    proxy = DaemonSet("system", "proxy", replace(listening, namespace="system", node_selector=tuple(selects.items())))

    placement = placed(ClusterView(daemon_sets=(proxy,)), demand(count=2, pod_shape=listening))

    assert len(placement.planned) == nodes


def test_a_node_that_others_bring_may_not_unbalance_a_spread() -> None:
    """The first fits on the zone that is there, but the second brings a zone where the first has nothing."""
    first = demand("a", count=2, pod_shape=web(topology_spread=(spread(ZONE_LABEL),)), opens_nodes=False)
    second = demand("b", count=1, pod_shape=shape("100m", node_selector={ZONE_LABEL: "zone-b"}))
    view = ClusterView(nodes=(node("one"),))

    placement = placed(view, first, second)

    assert by_zone(placement, view) == {"zone-a": 1, "zone-b": 1}
    assert [(item.demand.name, item.count) for item in placement.unplaced] == [("a", 1)]


def test_chunks_without_the_rule_on_both_sides_of_it_leave_nobody_out() -> None:
    # Two in zone a come first, so that the three that spread go to b, b and c; then c gets four more. Bound in that order
    # kube-scheduler takes all of them, though neither all together nor the three alone are within maxSkew.
    before = demand("before", count=2, pod_shape=web(node_selector={ZONE_LABEL: "zone-a"}), priority=2)
    evenly = demand("evenly", count=3, pod_shape=web(topology_spread=(spread(ZONE_LABEL),)), priority=1)
    after = demand("after", count=4, pod_shape=web(node_selector={ZONE_LABEL: "zone-c"}))

    placement = placed(ClusterView(), before, evenly, after)

    assert placement.unplaced == ()
    assert by_zone(placement) == {"zone-a": 2, "zone-b": 2, "zone-c": 5}
