"""Carrying out writes on a real API server: a second time writes nothing. The order of writes is shown in unit/cluster/test_apply.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reconciler.cluster.apply import carry_out
from reconciler.cluster.kubernetes import KubernetesCluster
from reconciler.model.changes import Apply, ChangeSet, Write
from tests.controlplane import ControlPlane
from tests.integration.real_cluster import PARENT, buffer_ref, capacity_buffer, opened, pod_template, template_ref

pytestmark = pytest.mark.e2e

MEMBERS: tuple[Write, ...] = (
    Apply(buffer_ref(), capacity_buffer(member=True)),
    Apply(template_ref(), pod_template(member=True)),
)


def run(cluster: KubernetesCluster, writes: Sequence[Write], memory: Mapping[str, Any] | None = None) -> ChangeSet:
    return carry_out(cluster, writes, parent=PARENT, view=cluster.view(), records=memory or {})


def written(plane: ControlPlane, since: int) -> list[str]:
    return [f"{event.verb} {event.resource}" for event in plane.writes_by("admin", since=since)]


def test_a_restarted_process_writes_nothing_either(empty_api_server: ControlPlane) -> None:
    plane = empty_api_server
    with opened(plane.kubeconfig()) as cluster:
        assert not run(cluster, MEMBERS, {"backOffs": [1]}).failures
        assert cluster.view().inventory.members == {buffer_ref(), template_ref()}
    mark = plane.audit_mark()
    with opened(plane.kubeconfig()) as cluster:
        run(cluster, MEMBERS, cluster.view().inventory.records)
    assert written(plane, mark) == []
