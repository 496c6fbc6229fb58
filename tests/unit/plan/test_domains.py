"""Where chunks are by the labels that their spread and affinity go by, node by node."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.changes import DomainCount, NodeClaimCreation
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, NodeClaim
from reconciler.model.placement import Holding
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread, WeightedPodAffinityTerm
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.plan.bins import Bin
from reconciler.plan.outcomes import domain_counts, topology_keys
from tests.builders import buffer_ref, demand, node, shape
from tests.plans import planned

RACK = "example.com/rack"
WEB = LabelSelector((("app", "web"),))


def spread(key: str) -> PodShape:
    return replace(shape(), topology_spread=(TopologySpread(key, 1, "ScheduleAnyway", WEB),))


def on(item: Bin | NodeClaimCreation, *, key: str = RACK) -> tuple[DomainCount, ...]:
    """Of a demand that is spread over the key, two of whose chunks are there."""
    keys = topology_keys((demand(pod_shape=spread(key)),))
    bins, created = ((item,), ()) if isinstance(item, Bin) else ((), (item,))
    return domain_counts(keys, bins, created)[buffer_ref()]


def test_spread_and_every_sort_of_affinity_count_and_the_hostname_does_not() -> None:
    term = PodAffinityTerm(ZONE_LABEL, WEB)
    shapes = (
        replace(spread(RACK), pod_affinity=(PodAffinityTerm("example.com/row", WEB),)),
        replace(shape(), preferred_pod_anti_affinity=(WeightedPodAffinityTerm(1, term),)),
        replace(shape(), pod_anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, WEB),)),
    )
    asked = Demand(buffer_ref(), tuple(ChunkGroup(item, 1) for item in shapes), 3)
    assert topology_keys((asked, replace(demand("plain")))) == {buffer_ref(): (RACK, "example.com/row", ZONE_LABEL)}


def test_a_node_has_its_label_or_none() -> None:
    chunks = (Holding(buffer_ref(), 0, 2), Holding(buffer_ref("other"), 0, 1))
    assert on(Bin(node(labels={RACK: "r1"}), None, chunks)) == (DomainCount("node-1", RACK, ("r1",), 2),)
    assert on(Bin(node(), None, chunks)) == (DomainCount("node-1", RACK, (), 2),)


def test_a_nodeclaim_on_its_way_may_leave_it_open() -> None:
    claim = NodeClaim("claim-1", requirements=(Requirement(RACK, Operator.IN, ("r1", "r2")),))
    chunks = (Holding(buffer_ref(), 0, 2),)
    assert on(Bin(None, claim, chunks)) == (DomainCount("claim-1", RACK, ("r1", "r2"), 2),)
    settled = replace(claim, labels=((RACK, "r2"),))
    assert on(Bin(None, settled, chunks)) == (DomainCount("claim-1", RACK, ("r2",), 2),)


def test_a_planned_node_has_its_labels_and_the_zones_that_it_may_be_in() -> None:
    new = NodeClaimCreation("new-1", replace(planned(Holding(buffer_ref(), 0, 2)), labels=((RACK, "r3"),)), "")
    assert on(new) == (DomainCount("new-1", RACK, ("r3",), 2),)
    assert on(new, key=ZONE_LABEL) == (DomainCount("new-1", ZONE_LABEL, ("zone-a", "zone-b"), 2),)
