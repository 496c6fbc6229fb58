"""What a plan says beside its changes: domains, hostnames, nominated pods, and what a snapshot left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.manifests.repository.declared import read
from reconciler.model.changes import DomainCount, NodeClaimCreation
from reconciler.model.declared import Declared
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, NodeClaim
from reconciler.model.placement import Holding
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread, WeightedPodAffinityTerm
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView, LiveObject
from reconciler.placement.nodes.existing import with_nominated
from reconciler.plan.bins import Bin
from reconciler.plan.facts import Facts, hostname_findings, launch_notes, nominated_notes
from reconciler.plan.objects.objects import Owner, prepared
from reconciler.plan.outcomes import domain_counts, topology_keys
from reconciler.plan.plan import make_plan
from tests.builders import buffer_ref, demand, node, one_of, pod, selects, shape
from tests.plans import planned
from tests.unit.placement.worlds import with_hostname
from tests.unit.plan.worlds import HELD, claim

# Where chunks are by the labels that their spread and affinity go by, node by node.

RACK = "example.com/rack"
WEB = selects()


def spread(key: str) -> PodShape:
    return shape(topology_spread=(TopologySpread(key, 1, "ScheduleAnyway", WEB),))


def on(item: Bin | NodeClaimCreation, *, key: str = RACK) -> tuple[DomainCount, ...]:
    """Of a demand that is spread over the key, two of whose chunks are there."""
    keys = topology_keys((demand(pod_shape=spread(key)),))
    bins, created = ((item,), ()) if isinstance(item, Bin) else ((), (item,))
    return domain_counts(keys, bins, created)[buffer_ref()]


def test_spread_and_every_sort_of_affinity_count_and_the_hostname_does_not() -> None:
    term = PodAffinityTerm(ZONE_LABEL, WEB)
    shapes = (
        replace(spread(RACK), pod_affinity=(PodAffinityTerm("example.com/row", WEB),)),
        shape(preferred_pod_anti_affinity=(WeightedPodAffinityTerm(1, term),)),
        shape(pod_anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, WEB),)),
    )
    asked = Demand(buffer_ref(), tuple(ChunkGroup(item, 1) for item in shapes), 3)
    assert topology_keys((asked, replace(demand("plain")))) == {buffer_ref(): (RACK, "example.com/row", ZONE_LABEL)}


def test_a_node_has_its_label_or_none() -> None:
    chunks = (Holding(buffer_ref(), 0, 2), Holding(buffer_ref("other"), 0, 1))
    assert on(Bin(node(labels={RACK: "r1"}), None, chunks)) == (DomainCount("node-1", RACK, ("r1",), 2),)
    assert on(Bin(node(), None, chunks)) == (DomainCount("node-1", RACK, (), 2),)


def test_a_nodeclaim_on_its_way_may_leave_it_open() -> None:
    claim = NodeClaim("claim-1", requirements=(one_of(RACK, "r1", "r2"),))
    chunks = (Holding(buffer_ref(), 0, 2),)
    assert on(Bin(None, claim, chunks)) == (DomainCount("claim-1", RACK, ("r1", "r2"), 2),)
    settled = replace(claim, labels=((RACK, "r2"),))
    assert on(Bin(None, settled, chunks)) == (DomainCount("claim-1", RACK, ("r2",), 2),)


def test_a_planned_node_has_its_labels_and_the_zones_that_it_may_be_in() -> None:
    new = NodeClaimCreation("new-1", replace(planned(Holding(buffer_ref(), 0, 2)), labels=((RACK, "r3"),)), "")
    assert on(new) == (DomainCount("new-1", RACK, ("r3",), 2),)
    assert on(new, key=ZONE_LABEL) == (DomainCount("new-1", ZONE_LABEL, ("zone-a", "zone-b"), 2),)


# Nodes that share a hostname are told of.


def test_nothing_is_said_where_every_node_has_its_own_or_none() -> None:
    assert (
        hostname_findings((node("a"), node("b"), with_hostname(node("c"), None), with_hostname(node("d"), None))) == ()
    )


def test_each_hostname_of_several_nodes_is_a_finding() -> None:
    nodes = [with_hostname(node(name), name[0]) for name in ("b2", "b1", "a1", "a2", "c1")]

    first, second = hostname_findings(nodes)

    assert (first.code, str(first.ref)) == ("shared-hostname", "Node/a1")
    assert first.message == (
        "2 nodes carry kubernetes.io/hostname=a (a1, a2): spread, affinity and anti-affinity by it take them for one"
    )
    assert str(second.ref) == "Node/b1"


def test_a_node_claim_for_chunks_that_could_not_be_launched_is_told_in_karpenters_words() -> None:
    failing = [replace(claim(name, annotations=HELD), launch_failure="no free address") for name in ("a", "b")]
    others = [claim("fine", annotations=HELD), replace(claim("karpenters", placeholder=False), launch_failure="too")]
    view = ClusterView(node_claims=(*failing, replace(failing[0], deleting=True), *others))
    assert launch_notes(view) == (
        "Karpenter could not launch NodeClaim a and 1 more, and tries again: no free address",
    )


# What a plan says of pods that kube-scheduler has chosen a node for.


def notes(*nominated: str) -> tuple[str, ...]:
    """Of one pod for each node that was chosen; only node a is there."""
    pods = tuple(pod(f"web-{number}", nominated_node=name) for number, name in enumerate(nominated))
    return nominated_notes(with_nominated(ClusterView(nodes=(node("a"),), pods=pods)))


CHOSEN = "kube-scheduler has chosen a node (status.nominatedNodeName) for"


def test_one_that_counts_on_its_node() -> None:
    counts = "they count as running there, and no node is planned for them"
    assert notes("a") == (f"{CHOSEN} Pod/shop/web-0 on a: {counts}",)


def test_one_whose_node_is_gone() -> None:
    words = "that node is gone or takes no pods, and Karpenter makes none until the choice is withdrawn"
    assert notes("gone") == (f"{CHOSEN} Pod/shop/web-0 on gone: {words}",)


def test_nothing_is_said_of_others() -> None:
    assert nominated_notes(ClusterView(pods=(pod("plain"), pod("bound", node="a")))) == ()


# Plans against snapshots, whose objects lack what planning does not need.

TEMPLATE = (
    b"apiVersion: v1\nkind: PodTemplate\nmetadata: {name: web, namespace: shop}\n"
    b"template: {spec: {containers: [{name: main, image: 'web:1', resources: {requests: {cpu: '1'}}}]}}\n"
)
PARTIAL = b"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: live}\nspec: {weight: 5}\n"
POOL = ObjectRef("karpenter.sh", "NodePool", "", "live")
REF = ObjectRef("", "PodTemplate", "shop", "web")


def changes(declared: Declared, body: Mapping[str, Any], *, reduced: bool, ref: ObjectRef = REF) -> list[str]:
    view = ClusterView(objects={ref: LiveObject(ref, body)}, reduced=reduced)
    plan = make_plan(Facts(datetime(2026, 11, 21, tzinfo=UTC), view=view, repository=declared))
    return [field.path for change in plan.objects for field in change.changes]


def without_image(body: Mapping[str, Any]) -> dict[str, Any]:
    container = body["template"]["spec"]["containers"][0]
    short = {key: value for key, value in container.items() if key != "image"}
    return {**body, "template": {"spec": {"containers": [short]}}}


def test_what_a_snapshot_left_out_is_no_change() -> None:
    declared = read({"a.yaml": TEMPLATE})
    body = without_image(prepared(declared.manifests[0], Owner()))
    assert changes(declared, body, reduced=True) == []
    assert changes(declared, body, reduced=False) == ["template.spec.containers[0].image"]


def test_an_edited_manifest_is_a_change_against_a_snapshot_too() -> None:
    declared = read({"a.yaml": TEMPLATE})
    body = without_image(prepared(declared.manifests[0], Owner()))
    edited = replace(declared, manifests=read({"a.yaml": TEMPLATE.replace(b"web:1", b"web:2")}).manifests)
    assert changes(edited, body, reduced=True) != []


@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize("annotations", [None, {}, {"team": "a"}])
def test_what_was_never_applied_here_is_a_change_whatever_annotations_it_has(
    annotations: dict[str, str] | None, *, reduced: bool
) -> None:
    """Of a NodePool that somebody else made a manifest sets a field that it does not have."""
    declared = read({"a.yaml": PARTIAL})
    metadata = {"name": "live"} if annotations is None else {"name": "live", "annotations": annotations}
    assert "spec.weight" in changes(declared, {"metadata": metadata, "spec": {}}, ref=POOL, reduced=reduced)
