"""The checker finds what is wrong with a placement: each rule broken once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from reconciler.model.buffers import Recreation
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import (
    HOSTNAME_LABEL,
    INITIALIZED_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    ZONE_LABEL,
    NodeClaim,
    NodePool,
)
from reconciler.model.placement import Holding, OccupiedBin, Placement, PlannedNode
from reconciler.model.pods import DaemonSet, HostPort, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement, Taint
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import (
    buffer_ref,
    demand,
    instance_type,
    node,
    node_pool,
    one_of,
    overlay,
    pod,
    shape,
    spread,
    term,
    web,
)

TYPES = (instance_type("small", cpu="2"), instance_type("large", cpu="8", price=0.5, zones=("zone-a",)))
VIEW = ClusterView(nodes=(node("one"), node("two", zone="zone-b")))


def found(
    placement: Placement,
    *demands: Demand,
    view: ClusterView = VIEW,
    pool: NodePool = node_pool(),  # noqa: B008 - immutable
) -> tuple[str, ...]:
    return violations(Problem(view, (pool,), TYPES, demands), placement)


def on_node(name: str, count: int, group: int = 0) -> OccupiedBin:
    return OccupiedBin(name, None, (Holding(buffer_ref(), group, count),))


def test_finds_nothing_wrong_with_a_good_placement() -> None:
    asked = demand(count=9)
    placement = place(Problem(VIEW, (node_pool(),), TYPES, (asked,)))

    assert placement.planned
    assert found(placement, asked) == ()


@pytest.mark.parametrize(
    ("occupied", "pod_shape", "words"),
    [
        ([("one", 5)], shape(), "cpu is overcommitted"),
        ([("one", 1)], shape(node_selector={ZONE_LABEL: "zone-b"}), "labels are not those"),
        ([("nowhere", 1)], shape(), "no such bin"),
        ([("one", 2)], web(host_ports=(HostPort(80),)), "host ports [80] clash"),
        ([("one", 2)], web(pod_anti_affinity=(term(HOSTNAME_LABEL),)), "anti-affinity by"),
        ([("one", 1)], shape(labels={"app": "other"}), ""),
        (
            [("one", 2)],
            web(topology_spread=(spread(ZONE_LABEL),)),
            "exceeds maxSkew 1",
        ),
        ([("one", 1), ("two", 1)], web(pod_affinity=(term(HOSTNAME_LABEL),)), "has no company"),
    ],
)
def test_finds_what_existing_nodes_do_not_take(
    occupied: list[tuple[str, int]], pod_shape: PodShape, words: str
) -> None:
    asked = demand(count=sum(count for _, count in occupied), pod_shape=pod_shape)

    sentences = found(Placement(tuple(on_node(name, count) for name, count in occupied)), asked)

    assert any(words in sentence for sentence in sentences) if words else sentences == ()


def test_finds_chunks_on_nodes_that_take_no_pods() -> None:
    for unfit in (
        node("one", ready=False),
        node("one", taints=[Taint("gpu", "", "NoSchedule")]),
        node("one", unschedulable=True),
    ):
        assert found(Placement((on_node("one", 1),)), demand(count=1), view=ClusterView(nodes=(unfit,)))


def test_finds_chunks_that_must_fit_now_on_a_node_that_is_not_up_yet() -> None:
    young = replace(node("one"), labels=tuple(item for item in node("one").labels if item[0] != INITIALIZED_LABEL))
    claim = NodeClaim("claim", node_name="one")
    asked, view = demand(count=1, only_ready=True), ClusterView(nodes=(young,), node_claims=(claim,))

    assert any("is not up yet" in sentence for sentence in found(Placement((on_node("one", 1),)), asked, view=view))


def test_finds_chunks_spread_over_a_label_that_their_node_does_not_have() -> None:
    even = web(topology_spread=(spread("rack"),))
    assert found(Placement((on_node("one", 1),)), demand(count=1, pod_shape=even)) == (
        "spread over rack: one is without that label",
    )


def test_finds_two_domains_begun_by_pods_that_keep_each_other_company() -> None:
    """Of pods that differ in what they request only, too: the second must go where the first is."""
    together = (term(ZONE_LABEL),)
    small, large = web(pod_affinity=together), web(pod_affinity=together, requests=shape("200m").requests)
    asked = Demand(buffer_ref(), (ChunkGroup(small, 1), ChunkGroup(large, 1)), 1)

    assert "has no company" in found(Placement((on_node("one", 1, 0), on_node("two", 1, 1))), asked)[0]
    together_on_one = OccupiedBin("one", None, (Holding(buffer_ref(), 0, 1), Holding(buffer_ref(), 1, 1)))
    assert found(Placement((together_on_one,)), asked) == ()


def test_finds_chunks_kept_off_by_pods_that_run() -> None:
    guard = shape("100m", pod_anti_affinity=(term(HOSTNAME_LABEL),))
    view = replace(VIEW, pods=(pod("guard", node="one", pod_shape=guard),))

    assert found(Placement((on_node("one", 1),)), demand(count=1, pod_shape=web()), view=view)


def test_finds_miscounted_demands() -> None:
    assert "placed and unplaced are" in found(Placement((on_node("one", 1),)), demand(count=2))[0]


def test_finds_demands_placed_in_part_that_are_all_or_nothing() -> None:
    whole = demand(count=9, whole=True)
    placement = place(Problem(VIEW, (), TYPES, (demand(count=9),)))

    assert any("placed in part" in sentence for sentence in found(placement, whole))


def planned(change: Callable[[PlannedNode], PlannedNode]) -> Placement:
    placement = place(Problem(ClusterView(), (node_pool(),), TYPES, (demand(count=1),)))
    return replace(placement, planned=tuple(change(item) for item in placement.planned))


def test_finds_a_chunk_that_another_one_may_come_too_near() -> None:
    """Where the other's zone is not decided it may come to be the same."""
    apart = web(pod_anti_affinity=(term(ZONE_LABEL),))
    decided = planned(lambda item: replace(item, zones=("zone-a",))).planned
    open_still = planned(lambda item: item).planned
    asked = demand(count=2, pod_shape=apart)

    sentences = found(Placement(planned=(*decided, *open_still)), asked, view=ClusterView())

    assert {item for item in sentences if "anti-affinity" in item} == {
        f"planned-{number}: anti-affinity by {ZONE_LABEL} is broken" for number in (0, 1)
    }


def test_finds_new_nodes_of_offerings_that_are_backed_off_from() -> None:
    (sentence,) = violations(
        Problem(
            ClusterView(),
            (node_pool(),),
            TYPES,
            (demand(count=1),),
            options=PlacementOptions(back_offs=frozenset({("small", "zone-a", "on-demand")})),
        ),
        planned(lambda item: item),
    )

    assert sentence == "planned-0: small in zone-a as on-demand is backed off from"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda item: replace(item, instance_types=("small", "large")), "large is not offered in zone-b"),
        (lambda item: replace(item, zones=("zone-a", "zone-x")), "not offered in zone-x"),
        (lambda item: replace(item, price=0.01), "price is 0.01"),
        (lambda item: replace(item, price_known=False), "its price is said to be unknown"),
        (lambda item: replace(item, node_pool="other"), "cannot be used"),
        (lambda item: replace(item, node_pool="nowhere"), "NodePool nowhere does not exist"),
        (lambda item: replace(item, instance_types=("huge",)), "instance type huge does not exist"),
        (lambda item: replace(item, holdings=(Holding(buffer_ref(), 1, 1),)), "there is no group 1 of it"),
        (lambda item: replace(item, holdings=()), "holds nothing"),
    ],
)
def test_finds_what_planned_nodes_cannot_be(change: Callable[[PlannedNode], PlannedNode], words: str) -> None:
    placement = planned(change)
    pools = (node_pool(), node_pool("other", replicas=1))

    sentences = violations(Problem(ClusterView(), pools, TYPES, (demand(count=1),)), placement)

    assert any(words in sentence for sentence in sentences), sentences


def test_finds_limits_that_are_exceeded() -> None:
    placement = planned(lambda item: item)

    assert found(placement, demand(count=1), view=ClusterView(), pool=node_pool(limits={"cpu": "1"}))


def test_finds_new_nodes_for_demands_that_open_none() -> None:
    asked = Demand(buffer_ref(), (ChunkGroup(shape(), 1),), 1, opens_nodes=False)

    assert found(planned(lambda item: item), asked, view=ClusterView())


def test_overlays_count_for_prices_and_capacity() -> None:
    overlays = (
        overlay("cheap", price_adjustment="-50%"),
        overlay("gpus", capacity=Resources.of({"example.com/gpu": 4})),
    )
    plain = shape()
    device = replace(plain, requests=plain.requests + Resources.of({"example.com/gpu": 2}))
    wanted = (demand(count=2, pod_shape=device),)
    pools = (node_pool(),)
    placement = place(Problem(ClusterView(), pools, TYPES, wanted, overlays=overlays))
    assert placement.planned
    assert violations(Problem(ClusterView(), pools, TYPES, wanted, overlays), placement) == ()
    without = " ".join(violations(Problem(ClusterView(), pools, TYPES, wanted), placement))
    assert "example.com/gpu is overcommitted" in without
    assert "cheapest offering" in without


SMALL, BIG = (demand(count=1, pod_shape=shape("100m")),), (demand(count=1, pod_shape=shape("3")),)
IN_A = one_of(ZONE_LABEL, "zone-a")
TWO_TYPES = Requirement(INSTANCE_TYPE_LABEL, Operator.EXISTS, (), 3)
TWO_FAMILIES = Requirement("example.com/family", Operator.IN, ("m", "c"), 2)
AGENT = DaemonSet("system", "agent", shape("100m", namespace="system", host_ports=(HostPort(80),)))
SERVING = (demand(count=1, pod_shape=web(host_ports=(HostPort(80),))),)


@pytest.mark.parametrize(
    ("view", "pool", "demands", "sentence"),
    [
        (ClusterView(), node_pool(), SMALL, ""),
        (ClusterView(), node_pool(requirements=[IN_A]), SMALL, "NodePool general does not allow topology.kubernetes.io/zone=zone-b"),
        (ClusterView(), node_pool(requirements=[TWO_TYPES]), SMALL, "minValues of node.kubernetes.io/instance-type is 3, 1 are left"),
        (ClusterView(), node_pool(requirements=[TWO_FAMILIES]), SMALL, "minValues of example.com/family is 2, 0 are left"),
        (ClusterView(), node_pool(taints=[Taint("gpu", "", "NoSchedule")]), SMALL, "a taint is not tolerated"),
        (ClusterView(), replace(node_pool(), limits=(("nodes", 0),)), SMALL, "nodes exceeds its limit of 0"),
        (ClusterView(), node_pool(unready="no node class"), SMALL, "NodePool general cannot be used"),
        (ClusterView(), node_pool(deleting=True), SMALL, "NodePool general cannot be used"),
        (ClusterView(), node_pool(), BIG, "cpu is overcommitted"),
        (ClusterView(), node_pool(), (demand(count=1, pod_shape=shape(node_selector={"team": "red"})),), "labels are not those"),
        (ClusterView(), node_pool(), (demand(count=1, pod_shape=shape(node_selector={ZONE_LABEL: "zone-a"})),), "labels are not those"),
        (ClusterView(daemon_sets=(AGENT,)), node_pool(), SERVING, "host ports clash"),
        (ClusterView(daemon_sets=(DaemonSet("system", "fat", shape("1900m")),)), node_pool(), SMALL, "cpu is overcommitted"),
    ],
)  # fmt: skip
def test_finds_what_a_planned_node_must_not_be(
    view: ClusterView, pool: NodePool, demands: tuple[Demand, ...], sentence: str
) -> None:
    """A small node in either zone, planned for something that any pool would have given it for."""
    placement = planned(lambda item: item)

    (small,) = placement.planned
    assert (small.instance_types, small.zones) == (("small",), ("zone-a", "zone-b"))
    found = violations(Problem(view, (pool,), TYPES, demands), placement)
    assert any(sentence in item for item in found) if sentence else found == ()


def test_finds_types_that_are_listed_twice_or_not_at_all() -> None:
    for names in ((), ("small", "small")):
        placement = planned(lambda item, names=names: replace(item, instance_types=names))  # type: ignore[misc]
        assert any("instance types" in item for item in found(placement, demand(count=1), view=ClusterView()))


def claim(**fields: object) -> NodeClaim:
    """One that may be a small node in zone-a or zone-b."""
    asked = (one_of(INSTANCE_TYPE_LABEL, "small"),)
    plain = NodeClaim("claim", ((NODEPOOL_LABEL, "general"),), requirements=asked, requests=shape("1").requests)
    return replace(plain, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("there", "pod_shape", "sentence"),
    [
        (claim(), shape(), ""),
        (claim(deleting=True), shape(), "claim: is being deleted"),
        (claim(taints=(Taint("gpu", "", "NoSchedule"),)), shape(), "claim: a taint is not tolerated"),
        (claim(), shape("1950m"), "claim: cpu is overcommitted"),
        (claim(), shape(node_selector={ZONE_LABEL: "zone-a"}), "claim: labels are not those"),
        (claim(requirements=(*claim().requirements, IN_A)), shape(node_selector={ZONE_LABEL: "zone-a"}), ""),
        (
            claim(requirements=(*claim().requirements, replace(IN_A, operator=Operator.NOT_IN))),
            shape(node_selector={ZONE_LABEL: "zone-a"}),
            "claim: labels are not those",
        ),
        (
            claim(),
            web(topology_spread=(spread(ZONE_LABEL),)),
            "spread over topology.kubernetes.io/zone: a node that counts is not decided",
        ),
        (
            claim(),
            web(pod_affinity=(term(ZONE_LABEL),)),
            "affinity by topology.kubernetes.io/zone has no company",
        ),
    ],
)  # fmt: skip
def test_finds_what_a_node_claim_on_its_way_does_not_take(there: NodeClaim, pod_shape: PodShape, sentence: str) -> None:
    asked = demand(count=1, pod_shape=pod_shape)
    placement = Placement((OccupiedBin(None, "claim", (Holding(buffer_ref(), 0, 1),)),))

    sentences = found(placement, asked, view=ClusterView(node_claims=(there,)))

    assert any(item.startswith(sentence) for item in sentences) if sentence else sentences == ()


def test_zones_that_a_node_claim_may_come_up_in_are_spread_over() -> None:
    """Two in zone-a and none in zone-b, which is there as soon as the NodeClaim comes up in it."""
    even = web(topology_spread=(spread(ZONE_LABEL),))
    view = ClusterView(nodes=(node("one"),), node_claims=(claim(),))
    assert found(Placement((on_node("one", 2),)), demand(count=2, pod_shape=even), view=view)
    in_a = replace(even, node_selector=((ZONE_LABEL, "zone-a"),))
    assert found(Placement((on_node("one", 2),)), demand(count=2, pod_shape=in_a), view=view) == ()


def test_a_node_claim_has_what_overlays_add_to_its_type() -> None:
    gpus = Resources.of({"example.com/gpu": 4})
    overlays = (overlay("gpus", capacity=gpus),)
    asked = demand(count=1, pod_shape=shape(requests=shape().requests + gpus))
    view = ClusterView(node_claims=(claim(),))
    overlaid = Problem(view, (node_pool(),), TYPES, (asked,), overlays)
    placement = place(overlaid)
    assert [item.node_claim for item in placement.occupied] == ["claim"]
    assert violations(overlaid, placement) == ()
    assert "example.com/gpu is overcommitted" in " ".join(violations(replace(overlaid, overlays=()), placement))


def test_a_launched_claim_uses_up_limits_as_what_it_is() -> None:
    """Whatever else it might have become."""
    types = one_of(INSTANCE_TYPE_LABEL, "small", "large")
    launched = claim(labels=((NODEPOOL_LABEL, "general"), (INSTANCE_TYPE_LABEL, "small")), requirements=(types,))
    pool = node_pool(limits={"cpu": "4"})
    placement = planned(lambda item: item)
    assert found(placement, demand(count=1), view=ClusterView(node_claims=(launched,)), pool=pool) == ()
    open_claim = replace(launched, labels=((NODEPOOL_LABEL, "general"),))
    assert found(placement, demand(count=1), view=ClusterView(node_claims=(open_claim,)), pool=pool)


def test_pods_that_wait_are_bound_before_any_chunk_comes() -> None:
    """A KeepMinimum chunk counts against other chunks only, so that it may come to where a pod's spread has no more room."""
    apart = spread(HOSTNAME_LABEL)
    view = ClusterView(
        nodes=tuple(node(name) for name in ("a", "b", "c")),
        pods=tuple(pod(f"web-{number}", node=name, pod_shape=web()) for number, name in enumerate(("a", "a", "c"))),
    )
    other = web(labels={"app": "api"}, topology_spread=(apart,))
    chunk = demand(count=1, pod_shape=web(topology_spread=(apart,)), recreation=Recreation.KEEP_MINIMUM)
    waiting = Demand(ObjectRef("", "Pod", "shop", "api"), (ChunkGroup(other, 1),), 1, opens_nodes=False)
    pods_first = (Holding(chunk.ref, 0, 1), Holding(waiting.ref, 0, 1))

    assert found(Placement((OccupiedBin("c", None, pods_first),)), chunk, waiting, view=view) == ()
    assert found(Placement((OccupiedBin("a", None, pods_first),)), chunk, waiting, view=view) == (
        "spread over kubernetes.io/hostname exceeds maxSkew 1",
    )
