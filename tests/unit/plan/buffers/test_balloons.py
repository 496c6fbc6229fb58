"""What a plan does for buffers: balloon pods, one-shots, and when another pass may decide otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.manifests.pods.pod_shape import pod_spec_from, shape_of
from reconciler.model.autoscalers import ServingAutoscaler
from reconciler.model.buffers import (
    ONE_SHOTS_KEY,
    Fulfilment,
    OneShot,
    OneShotPlace,
    balloon_of,
    balloon_ref,
    standing_balloons,
)
from reconciler.model.changes import Action, DemandOutcome, Plan
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.marks import PART_OF_LABEL
from reconciler.model.nodes import Node
from reconciler.model.placement import Holding
from reconciler.model.pods import PodAffinityTerm, PriorityClass, TopologySpread
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import Inventory, records_of, remembered
from reconciler.model.requirements import LabelSelector
from reconciler.model.rules import BufferRules
from reconciler.model.view import ClusterView, LiveObject
from reconciler.plan.bins import Bin
from reconciler.plan.buffers.keeping import balloon_shape, keeping_edges, with_balloons
from reconciler.plan.buffers.records import one_shot_memory
from reconciler.plan.facts import Facts, PlanRules
from reconciler.plan.objects.objects import Owner
from reconciler.plan.plan import make_plan
from tests.builders import buffer_ref, demand, pod, resources, selects, shape

# Balloon pods: what is applied for a buffer, and when it goes.

IMAGE = "registry.example.com/pause:1"
WEB = ObjectRef("apps", "Deployment", "shop", "balloon-capacitybuffer-web")
CLASS = PriorityClass("headroom-balloon", -10)


def wanted(count: int | None = 3, **others: Any) -> Demand:
    return Demand(
        buffer_ref(), desired=count, shape=shape("2", labels={"app": "web"}), **{"fulfilment": "balloon", **others}
    )


def plan(demand: Demand | None, view: ClusterView) -> Plan:
    demands = () if demand is None else (demand,)
    now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    return make_plan(
        Facts(now, view=view, demands=demands), PlanRules(owner=Owner("set"), buffers=BufferRules(balloon_image=IMAGE))
    )


def view(*deployments: Mapping[str, Any], **others: Any) -> ClusterView:
    objects = dict.fromkeys((WEB,), LiveObject(WEB, deployments[0])) if deployments else {}
    return ClusterView(objects=objects, inventory=Inventory(frozenset(objects)), priority_classes=(CLASS,), **others)


def applied(count: int = 3) -> Mapping[str, Any]:
    (change,) = plan(wanted(count), view()).objects
    assert change.manifest is not None
    return change.manifest


def changed(demand: Demand | None, there: ClusterView) -> list[tuple[ObjectRef, Action]]:
    return [(change.ref, change.action) for change in plan(demand, there).objects]


def test_the_first_balloon_brings_its_priority_class() -> None:
    first, second = plan(wanted(), ClusterView()).objects
    assert (first.ref.kind, first.ref.name, first.action) == ("PriorityClass", "headroom-balloon", Action.CREATE)
    manifest = dict(first.manifest or {})
    assert (manifest["value"], manifest["preemptionPolicy"], manifest["globalDefault"]) == (-10, "Never", False)
    assert second.ref == WEB
    assert changed(wanted(), view()) == [(WEB, Action.CREATE)], "it is there already"


def test_a_balloon_is_as_large_as_the_buffer_and_asks_for_what_its_chunks_ask() -> None:
    manifest = applied()
    assert manifest["spec"]["replicas"] == 3
    assert manifest["metadata"]["labels"][PART_OF_LABEL] == "set"
    spec = manifest["spec"]["template"]["spec"]
    assert spec["priorityClassName"] == "headroom-balloon"
    assert spec["containers"][0]["image"] == IMAGE
    asked = shape_of(pod_spec_from(spec), namespace="shop", labels={}).requests
    assert asked == shape("2").requests
    labels = manifest["spec"]["template"]["metadata"]["labels"]
    assert "app" not in labels, "a Service of the workload must not send anything to it"
    assert manifest["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_its_pods_are_restricted_ones_without_a_token_or_a_sidecar() -> None:
    pod = applied()["spec"]["template"]
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert pod["spec"]["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["metadata"]["labels"]["sidecar.istio.io/inject"] == "false"
    assert pod["metadata"]["annotations"]["linkerd.io/inject"] == "disabled"


def test_one_that_is_as_it_should_be_is_left_alone_and_another_size_is_applied() -> None:
    assert changed(wanted(), view(applied())) == []
    (change,) = plan(wanted(5), view(applied())).objects
    assert [(item.path, item.before, item.after) for item in change.changes] == [("spec.replicas", 3, 5)]


def test_it_goes_in_the_plan_that_keeps_the_capacity_otherwise() -> None:
    assert changed(wanted(fulfilment=Fulfilment.PLACEHOLDER), view(applied())) == [(WEB, Action.DELETE)]
    assert changed(None, view(applied())) == [(WEB, Action.DELETE)], "the buffer is gone"
    assert changed(wanted(0), view(applied())) == [(WEB, Action.DELETE)]


def test_it_stays_until_an_autoscaler_has_the_capacity() -> None:
    reporting = ServingAutoscaler("Karpenter", reports=True)
    there = view(applied())
    assert changed(wanted(fulfilment=Fulfilment.NATIVE), there) == []
    assert changed(wanted(fulfilment=Fulfilment.NATIVE, autoscaler=replace(reporting, reports=False)), there) == []
    assert changed(wanted(fulfilment=Fulfilment.NATIVE, autoscaler=reporting), there) == [(WEB, Action.DELETE)]


def test_nothing_goes_while_the_size_is_unknown_or_the_cluster_is_not_read_in_full() -> None:
    assert changed(wanted(None), view(applied())) == []
    assert changed(wanted(fulfilment=Fulfilment.PLACEHOLDER), view(applied(), complete=False)) == []


def test_what_others_deployed_is_never_taken_for_a_balloon() -> None:
    foreign = {"metadata": {"labels": {"app": "web"}}}
    assert with_balloons(Declared(), (), view(foreign), IMAGE) == Declared()
    without_label = {**applied(), "metadata": {"labels": {"headroom.dev/balloon": "x"}}}
    assert changed(None, view(without_label)) == [], "of another headroom"


def test_names_are_labels_too() -> None:
    long = balloon_ref(buffer_ref("w" * 200)).name
    assert len(long) == 63
    assert long != balloon_ref(buffer_ref("w" * 201)).name
    assert balloon_ref(buffer_ref()._replace(kind="Buffer")).name == "balloon-buffer-web"


def test_only_balloon_pods_with_a_node_stand() -> None:
    ballooned = shape("2", labels={"headroom.dev/balloon": WEB.name}, priority_class_name=CLASS.name)
    bound = pod("a", node="n", pod_shape=ballooned)
    pods = (bound, pod("b", pod_shape=ballooned), replace(bound, deleting=True), pod("c", node="n"))
    assert standing_balloons(pods) == {WEB: 1}
    assert balloon_of(pods[3]) is None


def test_rules_of_a_workload_about_its_own_pods_become_rules_about_the_balloons() -> None:
    own, other = selects(), selects("db")
    spreads = tuple(TopologySpread("zone", 1, "DoNotSchedule", selector) for selector in (own, other))
    terms = tuple(PodAffinityTerm("host", selector) for selector in (own, other))
    web = shape(labels={"app": "web"}, topology_spread=spreads, pod_anti_affinity=terms, pod_affinity=terms)
    balloon = balloon_shape(web, "b")
    mine = LabelSelector((("headroom.dev/balloon", "b"),))
    assert [item.selector for item in balloon.topology_spread] == [mine, other]
    assert [term.selector for term in balloon.pod_affinity] == [mine, other]
    assert [term.selector for term in balloon.pod_anti_affinity] == [own, other, mine], "and away from the real ones"


# When another pass may decide otherwise who keeps a buffer.

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def edges(
    written: float, *, native: bool = True, unplaced: int = 1, missing_since: float | None = None, answers: bool = False
) -> list[float]:
    """Seconds from noon; written: minutes before noon."""
    karpenter = ServingAutoscaler("Karpenter", last_write=NOON - timedelta(minutes=written), answers=answers)
    asked = replace(demand(), autoscaler=karpenter)
    if answers:
        also = Condition("Fulfilment", ConditionStatus.FALSE, "AlsoServed", "")
        asked = replace(asked, conditions=(also,))
    if native:
        asked = replace(asked, fulfilment=Fulfilment.NATIVE, holds_nodes=False)
    said = {"type": "Fulfilment", "reason": "ServedByAutoscaler"}
    if missing_since is not None:
        since = (NOON - timedelta(seconds=missing_since)).isoformat()
        said = {"type": "Fulfilment", "reason": "CapacityMissing", "lastTransitionTime": since}
    view = ClusterView(objects={buffer_ref(): LiveObject(buffer_ref(), {"status": {"conditions": [said]}})})
    found = keeping_edges([DemandOutcome(asked, 0, 0, unplaced)], view, NOON)
    return [(edge.at - NOON).total_seconds() for edge in found]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (edges(0.5, native=False), [31]),
        (edges(2, native=False), []),
        (edges(2, native=False, answers=True), [481]),
        (edges(10, native=False, answers=True), [16]),
        (edges(9), [61, 122]),
        (edges(9, unplaced=0), []),
        (edges(11, missing_since=20), [41]),
        (edges(11), [61]),
    ],
    ids=[
        "to be corrected",
        "corrected by now",
        "to be asked whether it is there",
        "asked",
        "missing, not yet silent",
        "all there",
        "silent and missing",
        "missing as of now",
    ],
)
def test_a_pass_is_due_when_something_may_be_decided_otherwise(found: list[float], expected: list[float]) -> None:
    assert found == expected


# What is left of a one-shot buffer while one of its nodes is being deleted.

REF = buffer_ref()
SHAPE = shape(cpu="1")


def left_after(going: Node, other: Node) -> int:
    """A chunk on each of two nodes; both have come to stand on the second, in its spare room."""
    before = OneShot(filled="2026-01-01T00:00:00Z").on({"a": OneShotPlace(1, 3), "b": OneShotPlace(1, 3)})
    view = ClusterView(
        nodes=(going, other),
        objects={REF: LiveObject(REF, {"metadata": {"uid": "1"}})},
        inventory=Inventory(records=records_of(ONE_SHOTS_KEY, {"1": before})),
    )
    outcome = DemandOutcome(Demand(REF, desired=2, shape=SHAPE, one_shot=True, left_of=2), 2, 0, 0)
    bins = (Bin(going, None), Bin(other, None, (Holding(REF, 0, 2),)))
    memory = one_shot_memory([outcome], bins, view, datetime(2026, 1, 2, tzinfo=UTC))
    return remembered(memory, ONE_SHOTS_KEY, OneShot)["1"].left


def test_a_chunk_that_moved_off_a_node_that_is_being_deleted_is_lost_and_off_another_is_not() -> None:
    going, other = (Node(name, resources("3", "8Gi", pods="9")) for name in ("a", "b"))
    assert left_after(going, other) == 2
    assert left_after(replace(going, deleting=True), other) == 1
