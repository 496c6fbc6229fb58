"""Compiled budgets on real Karpenter: it takes the NodePool as valid and changes nothing of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import node_class, node_pool
from tests.controlplane.rest import Document, condition

pytestmark = pytest.mark.e2e

ZONE = "Australia/Lord_Howe"
WINDOWS = "0 22 * * mon-fri for 8h\n0 2 1,15 * * for 4h Drifted"


def applied(plane: ControlPlane, folder: Path) -> Document:
    done = subprocess.run(
        [sys.executable, "-m", "reconciler", "apply", "--yes", "--repo", str(folder), "--cluster", "kubeconfig"],
        env=os.environ | {"KUBECONFIG": str(plane.kubeconfig())},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = plane.api.get("karpenter.sh/v1", "NodePool", "local")
    assert found is not None
    return found


def is_valid(plane: ControlPlane, generation: int) -> bool:
    pool = plane.api.get("karpenter.sh/v1", "NodePool", "local")
    assert pool is not None
    assert condition(pool, "ValidationSucceeded") == "True", pool.get("status")
    assert condition(pool, "Ready") == "True", pool.get("status")
    assert pool["metadata"]["generation"] == generation
    return True


def test_karpenter_takes_the_compiled_form(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = empty_control_plane
    plane.api.apply(node_class())
    soon = datetime.now(UTC) + timedelta(days=1)
    office = {"nodes": "0", "schedule": f"{soon.minute} {soon.hour} * * mon-fri", "duration": "8h30m"}
    document = node_pool("local", disruption={"consolidateAfter": "1m", "budgets": [office, {"nodes": "10%"}]})
    document["metadata"]["annotations"] = {"headroom.dev/timezone": ZONE, "headroom.dev/allow-windows": WINDOWS}
    (tmp_path / "pools.json").write_text(json.dumps(document))
    pool = applied(plane, tmp_path)
    budgets = pool["spec"]["disruption"]["budgets"]
    assert len(budgets) > 10
    eventually(lambda: is_valid(plane, pool["metadata"]["generation"]), within=60, what="Karpenter takes it as valid")
