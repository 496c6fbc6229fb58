"""NodePools in a folder, applied to a real API server by `headroom apply`: whole, partial, old versions, local time, conflicts, drift."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane import ControlPlane
from tests.controlplane.documents import node_class, node_pool
from tests.controlplane.rest import Document
from tests.integration.real_cluster import Folder

pytestmark = pytest.mark.e2e

POOL = ("karpenter.sh/v1", "NodePool", "general")


class PoolFolder(Folder):
    """With a NodePool, or without."""

    def live(self) -> Document:
        found = self.plane.api.get(*POOL)
        assert found is not None
        return found

    def patch(self, body: Document, manager: str) -> None:
        """As `kubectl patch`, or a controller, would do it: a merge patch under its own name."""
        self.plane.api.document(
            "PATCH",
            self.plane.api.path("karpenter.sh/v1", "NodePool", None, "general"),
            body=body,
            query={"fieldManager": manager},
            content_type="application/merge-patch+json",
        )


@pytest.fixture
def folder(empty_api_server: ControlPlane, tmp_path: Path) -> PoolFolder:
    empty_api_server.api.apply(node_class())
    return PoolFolder(empty_api_server, tmp_path / "repository")


def owners(pool: Document, field: str) -> list[str]:
    return sorted(
        entry["manager"]
        for entry in pool["metadata"]["managedFields"]
        if f"f:{field}" in entry["fieldsV1"].get("f:spec", {})
    )


def general(**spec: Any) -> Document:
    return node_pool("general", **spec)


def partial(**spec: Any) -> Document:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"}, "spec": spec}


def test_a_whole_pool_is_applied_as_declared_and_then_left_alone(folder: PoolFolder) -> None:
    folder.declare(general(weight=50, disruption={"budgets": [{"nodes": 0, "reason": "drifted"}, {"nodes": "100%"}]}))
    done = folder.run("apply", "--yes")
    assert done.returncode == 0, done.stderr
    assert "old-spelling" in done.stdout
    pool = folder.live()
    assert pool["spec"]["weight"] == 50
    assert pool["spec"]["disruption"]["budgets"] == [{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "100%"}]
    version = pool["metadata"]["resourceVersion"]
    assert folder.run("apply", "--yes").returncode == 0
    assert folder.live()["metadata"]["resourceVersion"] == version


def test_a_partial_pool_needs_the_pool_and_owns_only_what_it_says(folder: PoolFolder) -> None:
    folder.declare(partial(disruption={"budgets": [{"nodes": "50%"}]}))
    assert "pool-not-there" in folder.run("apply", "--yes").stdout
    assert folder.plane.api.get(*POOL) is None
    folder.plane.api.apply(general(weight=7), manager="platform-team")
    assert folder.run("apply", "--yes").returncode == 0
    pool = folder.live()
    assert pool["spec"]["disruption"]["budgets"] == [{"nodes": "50%"}]
    assert owners(pool, "weight") == ["platform-team"]
    assert owners(pool, "template") == ["platform-team"]
    assert "headroom" in owners(pool, "disruption")
    folder.declare({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "p"}, "template": POD})
    assert folder.run("apply", "--yes").returncode == 0
    pool = folder.live()
    assert "budgets" not in pool["spec"].get("disruption", {}) or pool["spec"]["disruption"]["budgets"] == [
        {"nodes": "10%"}
    ]
    assert pool["spec"]["weight"] == 7
    assert "headroom" not in owners(pool, "disruption")


POD = {"spec": {"containers": [{"name": "c", "image": "c"}]}}
OVERRIDDEN = {"name": "general", "annotations": {"headroom.dev/ssa": "Override"}}


def test_a_whole_pool_becomes_partial_once_somebody_else_owns_its_template(folder: PoolFolder) -> None:
    folder.declare(general(weight=7))
    assert folder.run("apply", "--yes").returncode == 0
    folder.declare(partial(disruption={"budgets": [{"nodes": "50%"}]}) | {"metadata": OVERRIDDEN})
    refused = folder.run("apply", "--yes")
    assert "pool-becomes-partial" in refused.stdout
    assert folder.live()["spec"]["disruption"].get("budgets") != [{"nodes": "50%"}]
    (command,) = [line for line in refused.stdout.splitlines() if "kubectl get nodepool" in line]
    words = "kubectl get nodepool" + command.partition("kubectl get nodepool")[2]
    kubeconfig = {"KUBECONFIG": str(folder.plane.kubeconfig())}
    subprocess.run(["bash", "-c", words], env={**os.environ, **kubeconfig}, check=True, capture_output=True)
    assert folder.run("apply", "--yes").returncode == 0
    pool = folder.live()
    assert pool["spec"]["disruption"]["budgets"] == [{"nodes": "50%"}]
    assert owners(pool, "template") == ["platform-team"]
    assert pool["spec"]["weight"] == 7


def test_what_a_person_changed_is_put_back(folder: PoolFolder) -> None:
    folder.declare(general(weight=50))
    folder.run("apply", "--yes")
    folder.patch({"spec": {"weight": 10}}, "kubectl-patch")
    done = folder.run("plan")
    assert "spec.weight: 10 → 50" in done.stdout
    assert folder.run("apply", "--yes").returncode == 0
    pool = folder.live()
    assert pool["spec"]["weight"] == 50
    assert owners(pool, "weight") == ["headroom"]


def test_what_a_controller_took_since_is_a_conflict_and_no_fight(folder: PoolFolder) -> None:
    folder.declare(general(weight=50))
    folder.run("apply", "--yes")
    folder.patch({"spec": {"weight": 10}}, "weight-controller")
    done = folder.run("apply", "--yes")
    assert done.returncode == 1
    assert 'spec.weight belongs to "weight-controller"' in done.stdout + done.stderr
    assert folder.live()["spec"]["weight"] == 10


def test_a_field_that_the_served_definition_lacks_leaves_the_pool_as_it_is(folder: PoolFolder) -> None:
    folder.declare(general(weight=50))
    assert folder.run("apply", "--yes").returncode == 0
    before = folder.live()
    folder.declare(general(weight=60, shape="round"))
    planned = folder.run("plan")
    assert "spec.shape is not a field of NodePool in karpenter.sh/v1 as the cluster serves it" in planned.stdout
    assert "[field-not-served]" in planned.stdout
    applied = folder.run("apply", "--yes")
    assert "field-not-served" in applied.stdout
    assert folder.live() == before
