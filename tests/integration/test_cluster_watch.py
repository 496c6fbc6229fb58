"""A view of a real API server follows it: what is listed, what is watched, and what is no change."""

from __future__ import annotations

from threading import Event

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import deployment, namespace, node_class, node_pool
from tests.integration.real_cluster import buffer_ref, capacity_buffer, opened, pod_template, view_where

pytestmark = pytest.mark.e2e


def test_what_is_there_is_in_the_first_view(plane: ControlPlane) -> None:
    plane.api.create(deployment("web", replicas=3, cpu="500m"))
    plane.api.create(capacity_buffer())
    plane.api.create(node_class())
    plane.api.create(node_pool("general"))
    plane.api.apply(namespace("shop") | {"metadata": {"name": "shop", "labels": {"team": "red"}}})
    with opened(plane.kubeconfig()) as cluster:
        view = cluster.view()
    assert view.complete
    assert [(str(item.ref), item.replicas) for item in view.workloads] == [("Deployment/default/web", 3)]
    assert {str(ref) for ref in view.objects} == {"CapacityBuffer/default/web", "NodePool/general"}
    assert view.namespaces["shop"]["team"] == "red"
    assert view.apis[("karpenter.sh", "NodePool")] == ("v1",)
    assert view.apis[("apps", "Deployment")] == ("v1",)
    assert {item.name for item in view.priority_classes} == {"system-cluster-critical", "system-node-critical"}
    assert view.workloads[0].replicas_manager is not None, "whoever made it decides its size"


def test_a_change_is_told_and_is_in_the_next_view(plane: ControlPlane) -> None:
    told = Event()
    with opened(plane.kubeconfig(), changed=told.set) as cluster:
        before = cluster.view()
        told.clear()
        plane.api.create(capacity_buffer(replicas=3))
        assert told.wait(20)
        made = view_where(cluster, lambda view: buffer_ref() in view.objects, what="the buffer is seen")
        plane.api.apply(capacity_buffer(replicas=5))
        grown = view_where(
            cluster, lambda view: view.objects[buffer_ref()].body["spec"]["replicas"] == 5, what="the change is seen"
        )
        plane.api.delete("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "web")
        gone = view_where(cluster, lambda view: not view.objects, what="the deletion is seen")
    assert len({before.revision, made.revision, grown.revision, gone.revision}) == 4
    assert gone.nodes is before.nodes


def test_a_heartbeat_is_no_change(plane: ControlPlane) -> None:
    plane.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})
    plane.api.create(pod_template())

    def beat(minute: int) -> None:
        at = f"2026-03-01T12:{minute:02}:00Z"
        ready = {
            "type": "Ready",
            "status": "True",
            "lastHeartbeatTime": at,
            "lastTransitionTime": "2026-03-01T11:00:00Z",
        }
        plane.api.patch("v1", "Node", "node-1", {"status": {"conditions": [ready]}}, subresource="status")

    beat(0)
    with opened(plane.kubeconfig()) as cluster:
        before = cluster.view()
        assert before.nodes[0].ready
        beat(1)
        # A watch brings events in order; this one, of another kind, comes after the server took the heartbeat.
        plane.api.apply(pod_template(cpu="2"))
        after = view_where(cluster, lambda view: view.revision != before.revision, what="the template is seen")
        beat(2)
    assert after.nodes is before.nodes
    assert int(after.revision) == int(before.revision) + 1


def test_field_managers_are_read_and_their_bookkeeping_is_dropped(plane: ControlPlane) -> None:
    plane.api.apply(capacity_buffer(), manager="somebody")
    with opened(plane.kubeconfig()) as cluster:
        live = cluster.view().objects[buffer_ref()]
    assert live.managers == {"somebody": frozenset({"spec.podTemplateRef", "spec.replicas"})}
    assert "managedFields" not in live.body["metadata"]


def test_nothing_is_asked_of_a_server_on_which_nothing_happens(plane: ControlPlane) -> None:
    began = plane.audit_mark()
    with opened(plane.kubeconfig(), discovery_interval=3600) as cluster:
        first = cluster.view()

        def watched() -> bool:
            """A watch begins after its list, which is all that a view waits for."""
            own = [event for event in plane.audit_events(since=began) if event.user_agent.startswith("headroom")]
            opened_on = {event.resource for event in own if event.verb == "watch"}
            return bool(opened_on) and {event.resource for event in own if event.verb == "list"} <= opened_on

        eventually(watched, within=30, what="every watch is open")
        mark = plane.audit_mark()
        assert all(cluster.view() is first for _ in range(100))
        asked = [event for event in plane.audit_events(since=mark) if event.user_agent.startswith("headroom")]
    assert asked == []
