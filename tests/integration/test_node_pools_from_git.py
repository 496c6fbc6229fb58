"""NodePools in a folder, applied to a real API server by `headroom apply`: whole, partial, old versions, local time, conflicts, drift."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane import ControlPlane
from tests.controlplane.documents import node_class, node_pool
from tests.controlplane.rest import Document

pytestmark = pytest.mark.e2e

POOL = ("karpenter.sh/v1", "NodePool", "general")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(empty_api_server: ControlPlane, tmp_path: Path) -> Run:
    """`headroom COMMAND …` over the folder `repository`, with the kubeconfig of the API server."""
    empty_api_server.api.apply(node_class())

    def headroom(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        kubeconfig = str(empty_api_server.kubeconfig())
        variables = {f"HEADROOM_{name.upper()}": value for name, value in settings.items()}
        common = ["--repo", str(tmp_path / "repository"), "--cluster", "kubeconfig"]
        return subprocess.run(
            [sys.executable, "-m", "reconciler", *arguments, *common],
            env=os.environ | {"KUBECONFIG": kubeconfig, "NO_COLOR": "1", **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return headroom


@pytest.fixture
def declare(tmp_path: Path) -> Callable[[Document], None]:
    folder = tmp_path / "repository"
    folder.mkdir()

    def write(document: Document) -> None:
        (folder / "pools.yaml").write_text(json.dumps(document))

    return write


def live(plane: ControlPlane) -> Document:
    found = plane.api.get(*POOL)
    assert found is not None
    return found


def patch(plane: ControlPlane, body: Document, manager: str) -> None:
    """As `kubectl patch`, or a controller, would do it: a merge patch under its own name."""
    plane.api.document(
        "PATCH",
        plane.api.path("karpenter.sh/v1", "NodePool", None, "general"),
        body=body,
        query={"fieldManager": manager},
        content_type="application/merge-patch+json",
    )


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


def test_a_whole_pool_is_applied_as_declared_and_then_left_alone(
    empty_api_server: ControlPlane, run: Run, declare: Callable[[Document], None]
) -> None:
    declare(general(weight=50, disruption={"budgets": [{"nodes": 0, "reason": "drifted"}, {"nodes": "100%"}]}))
    done = run("apply", "--yes")
    assert done.returncode == 0, done.stderr
    assert "old-spelling" in done.stdout
    pool = live(empty_api_server)
    assert pool["spec"]["weight"] == 50
    assert pool["spec"]["disruption"]["budgets"] == [{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "100%"}]
    version = pool["metadata"]["resourceVersion"]
    assert run("apply", "--yes").returncode == 0
    assert live(empty_api_server)["metadata"]["resourceVersion"] == version


def test_a_partial_pool_needs_the_pool_and_owns_only_what_it_says(
    empty_api_server: ControlPlane, run: Run, declare: Callable[[Document], None]
) -> None:
    declare(partial(disruption={"budgets": [{"nodes": "50%"}]}))
    assert "pool-not-there" in run("apply", "--yes").stdout
    assert empty_api_server.api.get(*POOL) is None
    empty_api_server.api.apply(general(weight=7), manager="platform-team")
    assert run("apply", "--yes").returncode == 0
    pool = live(empty_api_server)
    assert pool["spec"]["disruption"]["budgets"] == [{"nodes": "50%"}]
    assert owners(pool, "weight") == ["platform-team"]
    assert owners(pool, "template") == ["platform-team"]
    assert "headroom" in owners(pool, "disruption")


OVERRIDDEN = {"name": "general", "annotations": {"headroom.dev/ssa": "Override"}}


def test_a_whole_pool_becomes_partial_once_somebody_else_owns_its_template(
    empty_api_server: ControlPlane, run: Run, declare: Callable[[Document], None]
) -> None:
    declare(general(weight=7))
    assert run("apply", "--yes").returncode == 0
    declare(partial(disruption={"budgets": [{"nodes": "50%"}]}) | {"metadata": OVERRIDDEN})
    refused = run("apply", "--yes")
    assert "pool-becomes-partial" in refused.stdout
    assert live(empty_api_server)["spec"]["disruption"].get("budgets") != [{"nodes": "50%"}]
    (command,) = [line for line in refused.stdout.splitlines() if "kubectl get nodepool" in line]
    words = "kubectl get nodepool" + command.partition("kubectl get nodepool")[2]
    kubeconfig = {"KUBECONFIG": str(empty_api_server.kubeconfig())}
    subprocess.run(["bash", "-c", words], env={**os.environ, **kubeconfig}, check=True, capture_output=True)
    assert run("apply", "--yes").returncode == 0
    pool = live(empty_api_server)
    assert pool["spec"]["disruption"]["budgets"] == [{"nodes": "50%"}]
    assert owners(pool, "template") == ["platform-team"]
    assert pool["spec"]["weight"] == 7


def test_what_a_person_changed_is_put_back(
    empty_api_server: ControlPlane, run: Run, declare: Callable[[Document], None]
) -> None:
    declare(general(weight=50))
    run("apply", "--yes")
    patch(empty_api_server, {"spec": {"weight": 10}}, "kubectl-patch")
    done = run("plan")
    assert "spec.weight: 10 → 50" in done.stdout
    assert run("apply", "--yes").returncode == 0
    pool = live(empty_api_server)
    assert pool["spec"]["weight"] == 50
    assert owners(pool, "weight") == ["headroom"]


def test_what_a_controller_took_since_is_a_conflict_and_no_fight(
    empty_api_server: ControlPlane, run: Run, declare: Callable[[Document], None]
) -> None:
    declare(general(weight=50))
    run("apply", "--yes")
    patch(empty_api_server, {"spec": {"weight": 10}}, "weight-controller")
    done = run("apply", "--yes")
    assert done.returncode == 1
    assert 'spec.weight belongs to "weight-controller"' in done.stdout + done.stderr
    assert live(empty_api_server)["spec"]["weight"] == 10


def test_a_field_that_the_served_definition_lacks_leaves_the_pool_as_it_is(
    empty_api_server: ControlPlane, run: Run, declare: Callable[[Document], None]
) -> None:
    declare(general(weight=50))
    assert run("apply", "--yes").returncode == 0
    before = live(empty_api_server)
    declare(general(weight=60, shape="round"))
    planned = run("plan")
    assert "spec.shape is not a field of NodePool in karpenter.sh/v1 as the cluster serves it" in planned.stdout
    assert "[field-not-served]" in planned.stdout
    applied = run("apply", "--yes")
    assert "field-not-served" in applied.stdout
    assert live(empty_api_server) == before
