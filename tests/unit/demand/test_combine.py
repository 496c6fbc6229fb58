"""The order of demands, and which pods are pending ones."""

from __future__ import annotations

from dataclasses import replace

from reconciler.demand.combine import demands
from reconciler.demand.dialect import Dialect
from reconciler.demand.pods import pending_demands
from reconciler.model.buffers import Buffer
from reconciler.model.declared import Declared
from reconciler.model.marks import PRIORITY_ANNOTATION
from reconciler.model.pods import PriorityClass
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from tests.builders import buffer, buffer_ref, demand, deployment, pod, shape


def test_only_pods_that_wait_for_a_node_are_pending() -> None:
    view = ClusterView(
        pods=(
            pod("waits"),
            pod("runs", node="node-1"),
            pod("daemon", owner_kind="DaemonSet"),
            replace(pod("gated"), gated=True),
            replace(pod("leaves"), deleting=True),
        ),
    )
    (only,) = pending_demands(view, include_pending=False)
    assert str(only.ref) == "Pod/shop/waits"
    assert (only.desired, only.opens_nodes, only.is_pending_pod) == (1, False, True)


def test_new_nodes_are_planned_for_pending_pods_only_on_request() -> None:
    view = ClusterView(pods=(pod(),))
    assert [item.opens_nodes for item in pending_demands(view, include_pending=True)] == [True]


def test_pending_pods_come_first_then_priority_then_names() -> None:
    view = ClusterView(pods=(pod("b"), replace(pod("c"), priority=100), pod("a")))
    declared = Declared(
        buffers=(buffer("z", target="db"), buffer("y"), buffer("x")),
        workloads=(deployment(), deployment("db", pod_shape=replace(shape(), priority_class_name="gold"))),
        priority_classes=(PriorityClass("gold", 5),),
    )
    ordered, _ = demands(declared, view, dialect=Dialect.KARPENTER)
    assert [item.ref.name for item in ordered] == ["c", "a", "b", "z", "x", "y"]


def test_among_buffers_the_pod_priority_decides_then_the_annotation_then_age_then_the_name() -> None:
    def declared_with(name: str, *, target: str = "web", priority: str = "", created: str = "") -> Buffer:
        annotations = ((PRIORITY_ANNOTATION, priority),) if priority else ()
        return replace(buffer(name, target=target), annotations=annotations, created=created)

    low, gold = (deployment(name, pod_shape=replace(shape(), priority_class_name=name)) for name in ("low", "gold"))
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
