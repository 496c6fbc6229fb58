"""A snapshot of a real API server reads as the server did."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.cluster.snapshot.capture import capture
from reconciler.cluster.snapshot.files import snapshot_at
from tests.controlplane import ControlPlane
from tests.controlplane.documents import deployment, node_class, node_pool
from tests.integration.real_cluster import PARENT, capacity_buffer, opened, pod_template

pytestmark = pytest.mark.e2e


def test_planning_offline_sees_what_planning_online_saw(empty_api_server: ControlPlane, tmp_path: Path) -> None:
    plane = empty_api_server
    plane.api.create(node_class())
    plane.api.create(node_pool("general", limits={"cpu": "100"}))
    plane.api.apply(capacity_buffer(member=True), manager="somebody")
    plane.api.create(pod_template())
    plane.api.create(deployment("web", replicas=3, cpu="500m"))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"token": "hunter2"}}
    plane.api.create(secret | {"metadata": {"name": "key", "namespace": "default"}})
    with opened(plane.kubeconfig()) as cluster:
        live = cluster.view()
        counts = capture(cluster.read, tmp_path / "shot.tar.gz")
    captured = snapshot_at(str(tmp_path / "shot.tar.gz"), PARENT).view()
    assert counts["nodepools"] == 1
    assert captured.complete
    assert captured.workloads == live.workloads
    assert captured.priority_classes == live.priority_classes
    assert captured.namespaces == live.namespaces
    assert captured.inventory.members == live.inventory.members
    assert set(captured.objects) == set(live.objects)
    for ref, item in live.objects.items():
        assert _spec_and_status(captured.objects[ref].managers) == _spec_and_status(item.managers)
        assert captured.objects[ref].body.get("spec") == item.body.get("spec")
    assert b"hunter2" not in (tmp_path / "shot.tar.gz").read_bytes()


def _spec_and_status(managers: Mapping[str, frozenset[str]]) -> dict[str, set[str]]:
    return {
        manager: {path for path in paths if path.startswith(("spec", "status"))} for manager, paths in managers.items()
    }
