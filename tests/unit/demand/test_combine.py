"""The order of demands, which pods are pending, and which of nodes that go are placed anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.demand.buffers import buffer_demands
from reconciler.demand.combine import (
    demands,
    leaving_balloons,
    leaving_demands,
    pending_demands,
    with_leaving,
    without_balloons,
    without_leaving,
    without_waiting_balloons,
)
from reconciler.model.buffers import Buffer, Dialect, balloon_ref
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.marks import PRIORITY_ANNOTATION
from reconciler.model.nodes import DISRUPTED_TAINT, DO_NOT_DISRUPT, NodeClaim
from reconciler.model.pods import Pod, PodDisruptionBudget, PriorityClass
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Taint, Toleration
from reconciler.model.view import ClusterView, LiveObject
from tests.builders import buffer, buffer_ref, demand, deployment, node, pod, selects, shape

# The order of demands, and which pods are pending ones.


def test_only_pods_that_wait_for_a_node_are_pending() -> None:
    view = ClusterView(
        pods=(
            pod("waits"),
            pod("runs", node="node-1"),
            pod("daemon", owner_kind="DaemonSet"),
            pod("gated", gated=True),
            pod("leaves", deleting=True),
        )
    )
    (only,) = pending_demands(view, include_pending=False)
    assert str(only.ref) == "Pod/shop/waits"
    assert (only.desired, only.opens_nodes, only.is_pending_pod) == (1, False, True)


def test_pending_pods_come_first_then_priority_then_names() -> None:
    view = ClusterView(pods=(pod("b"), pod("c", priority=100), pod("a")))
    declared = Declared(
        buffers=(buffer("z", target="db"), buffer("y"), buffer("x")),
        workloads=(deployment(), deployment("db", pod_shape=shape(priority_class_name="gold"))),
        priority_classes=(PriorityClass("gold", 5),),
    )
    ordered, _ = demands(declared, view, dialect=Dialect.KARPENTER)
    assert [item.ref.name for item in ordered] == ["c", "a", "b", "z", "x", "y"]


def test_among_buffers_the_pod_priority_decides_then_the_annotation_then_age_then_the_name() -> None:
    def declared_with(name: str, *, target: str = "web", priority: str = "", created: str = "") -> Buffer:
        annotations = ((PRIORITY_ANNOTATION, priority),) if priority else ()
        return buffer(name, target=target, annotations=annotations, created=created)

    low, gold = (deployment(name, pod_shape=shape(priority_class_name=name)) for name in ("low", "gold"))
    declared = Declared(
        buffers=(
            declared_with("a-only-in-git"),
            declared_with("b-last-of-the-annotated", priority="-5"),
            declared_with("c-young", created="2026-11-20T08:00:00Z"),
            declared_with("d-old", created="2025-11-20T08:00:00Z"),
            declared_with("e-annotated", priority="7"),
            declared_with("f-of-a-low-class", target="low"),
            declared_with("g-of-a-high-class", target="gold", created="2026-11-20T08:00:00Z"),
            declared_with("h-as-it-is-only-in-git"),
        ),
        workloads=(deployment(), low, gold),
        priority_classes=(PriorityClass("low", -100), PriorityClass("gold", 1000)),
    )
    ordered, _ = demands(declared, ClusterView(), dialect=Dialect.KARPENTER)
    assert [item.ref.name[0] for item in ordered] == ["g", "f", "e", "d", "c", "a", "h", "b"]


def test_bookings_come_before_all_buffers_and_requests_before_buffers_of_their_priority() -> None:
    web = demand("web")
    request = replace(web, ref=ObjectRef("autoscaling.x-k8s.io", "ProvisioningRequest", "shop", "train"))
    booked = replace(request, ref=request.ref._replace(name="booked"), booked=True)
    weighty = replace(web, ref=buffer_ref("weighty"), priority=5)
    waiting = replace(web, ref=ObjectRef("", "Pod", "shop", "cart-1"), priority=-1000)
    ordered = sorted((web, request, booked, weighty, waiting), key=lambda item: item.order)
    assert [item.ref.name for item in ordered] == ["cart-1", "booked", "weighty", "train", "web"]


# Pods of nodes that are being deleted are placed anew in the what-if, as far as Karpenter would make room for them.

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
GOING = node("going", deleting=True)
WEB = pod("web-1", node="going", pod_shape=shape(labels={"app": "web"}))


def names(*pods: Pod, budgets: tuple[PodDisruptionBudget, ...] = ()) -> list[str]:
    view = ClusterView(nodes=(GOING, node("staying")), pods=pods, pod_disruption_budgets=budgets)
    return [demand.ref.name for demand in leaving_demands(view, NOW)]


def test_pods_of_nodes_that_stay_are_where_they_run() -> None:
    assert names(WEB, replace(WEB, name="web-2", node_name="staying")) == ["web-1"]


@pytest.mark.parametrize(
    "change",
    [
        {"owner_kind": "DaemonSet"},
        {"owner_kind": "Node"},
        {"deleting": True},
        {"annotations": ((DO_NOT_DISRUPT, "true"),)},
        {"annotations": ((DO_NOT_DISRUPT, "1h"),), "created": NOW - timedelta(minutes=59)},
    ],
    ids=str,
)
def test_left_out_are_pods_that_end_or_that_nobody_evicts(change: Mapping[str, Any]) -> None:
    assert names(replace(WEB, **change)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"deleting": True, "owner_kind": "StatefulSet"},
        {"annotations": ((DO_NOT_DISRUPT, "1h"),), "created": NOW - timedelta(minutes=60)},
        {"annotations": ((DO_NOT_DISRUPT, "soon"),)},
    ],
    ids=str,
)
def test_counted_are_pods_that_are_made_anew_and_those_whose_protection_is_over(change: Mapping[str, Any]) -> None:
    """A StatefulSet makes the next one of a name only when the last is gone."""
    assert names(replace(WEB, **change)) == ["web-1"]


def test_budgets_that_allow_none_ever_keep_a_pod_and_those_spent_for_now_do_not() -> None:
    selector = selects()
    spent = PodDisruptionBudget("shop", "spent", selector, allowed=0)
    never = PodDisruptionBudget("shop", "never", selector, allowed=0, allows_none=True)
    elsewhere = replace(never, namespace="other")
    assert names(WEB, budgets=(spent, elsewhere)) == ["web-1"]
    assert names(WEB, budgets=(never,)) == []
    assert names(WEB, budgets=(spent, replace(spent, name="second"))) == []
    unmoved = replace(WEB, shape=replace(WEB.shape, tolerations=(Toleration(DISRUPTED_TAINT, "Exists"),)))
    assert names(unmoved, budgets=(never,)) == ["web-1"]


def test_a_node_goes_with_its_nodeclaim_and_when_it_is_being_disrupted() -> None:
    claim = NodeClaim("general-1", node_name="node-1", deleting=True)
    tainted = node("node-2", taints=(Taint(DISRUPTED_TAINT, "", "NoSchedule"),))
    pods = tuple(replace(WEB, name=f"web-{number}", node_name=f"node-{number}") for number in (1, 2, 3))
    view = ClusterView(nodes=(node("node-1"), tainted, node("node-3")), node_claims=(claim,), pods=pods)
    found = leaving_demands(view, NOW)
    assert [(demand.ref.name, demand.leaves) for demand in found] == [("web-1", "node-1"), ("web-2", "node-2")]
    assert [item.name for item in without_leaving(view, found).pods] == ["web-3"]


def test_they_come_after_pods_that_wait_and_before_what_is_declared() -> None:
    waiting = pod("waits")
    view = ClusterView(nodes=(GOING,), pods=(waiting, WEB))
    found, _ = demands(Declared(buffers=(buffer(),), workloads=(deployment(),)), view, dialect=Dialect.KARPENTER)
    names = [item.ref.name for item in with_leaving(found, leaving_demands(view, NOW))]
    assert names == ["waits", "web-1", "web"]


# From placeholders to balloon pods and back: the capacity is held until the other has it.

BALLOON = shape(labels={"headroom.dev/balloon": balloon_ref(buffer_ref()).name}, priority_class_name="headroom-balloon")
FULL = {"type": "Provisioning", "status": "True"}
HELD = LiveObject(
    buffer_ref(),
    {"metadata": {"generation": 1}, "status": {"conditions": [FULL]}},
    {"headroom": frozenset({"status.conditions.Provisioning"})},
)


def ask(*pods: Pod, asked: str = "balloon", live: LiveObject | None = HELD) -> Demand:
    one = buffer(annotations=(("headroom.dev/fulfilment", asked),))
    declared = Declared(buffers=(one,), workloads=(deployment(),))
    view = ClusterView(pods=pods, objects={} if live is None else {live.ref: live})
    (demand,), findings = buffer_demands(declared, view, dialect=Dialect.KARPENTER)
    assert findings == ()
    return demand


def bound(count: int) -> tuple[Pod, ...]:
    return tuple(pod(f"b-{number}", node="n", pod_shape=BALLOON) for number in range(count))


def held(demand: Demand) -> tuple[int, bool, bool]:
    return (sum(group.count for group in demand.groups), demand.holds_nodes, demand.opens_nodes)


def test_headroom_holds_what_is_not_yet_balloons() -> None:
    assert held(ask()) == (3, True, False)
    assert held(ask(*bound(1), pod("waiting", pod_shape=BALLOON))) == (2, True, False)
    assert held(ask(*bound(3))) == (0, False, False)


def test_a_new_buffer_holds_no_node_for_its_balloons() -> None:
    """Its chunks only look for the room that the pods will take."""
    assert held(ask(live=None)) == (3, False, False)


def test_once_there_its_balloons_may_be_pushed_out_without_a_hold() -> None:
    told = {"type": "Fulfilment", "status": "True", "reason": "BalloonPods"}
    body = {"metadata": {"generation": 1}, "status": {"conditions": [FULL, told]}}
    assert held(ask(*bound(1), live=replace(HELD, body=body))) == (2, False, False)
    waiting = pod("waiting", pod_shape=BALLOON)
    assert held(ask(*bound(1), waiting, live=replace(HELD, body=body))) == (1, False, False)


def test_balloons_that_go_leave_their_room_to_the_chunks() -> None:
    view = ClusterView(pods=(*bound(1), pod("waiting", pod_shape=BALLOON), pod("other", node="n")))
    back = (ask(asked="placeholder"),)
    leaving = leaving_balloons(back)
    assert [item.name for item in without_balloons(view, leaving).pods] == ["other"]
    waiting = pending_demands(view, include_pending=False)
    assert [item.ref.name for item in waiting] == ["waiting"]
    assert without_waiting_balloons((*waiting, *back), view, leaving) == back


def test_balloons_that_stay_are_pods_like_any_other() -> None:
    view = ClusterView(pods=bound(1))
    assert leaving_balloons((ask(),)) == frozenset()
    assert without_balloons(view, frozenset()) is view
