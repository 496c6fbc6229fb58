"""What `headroom diff` says of NodePool limits that are below what the cluster's nodes use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.two_folders import POOL, Document, Folders


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path, {"nodes": [node("one"), node("two")]})


def node(name: str) -> Document:
    labels = {
        "karpenter.sh/nodepool": "general",
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
        "node.kubernetes.io/instance-type": "m-8x",
        "topology.kubernetes.io/zone": "zone-a",
        "kubernetes.io/hostname": name,
    }
    resources = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pool(limit: int) -> dict[str, str]:
    return {"pool.yaml": POOL.replace("400", str(limit))}


def test_a_limit_below_what_is_used_is_a_warning(folders: Folders) -> None:
    """Nothing was found that speaks against merging."""
    text = folders.diff(pool(10), before=pool(400)).stdout
    assert "warning: NodePool/general: it is over its cpu limit of 10: 16 used [pool-over-limit]" in text
    assert "1 new warning" in text.splitlines()[1]
    assert text.splitlines()[-1] == "Look at the warnings before you merge."


def test_a_limit_that_is_just_kept_or_was_exceeded_before_is_none(folders: Folders) -> None:
    assert "pool-over-limit" not in folders.diff(pool(16), before=pool(400)).stdout
    assert "pool-over-limit" not in folders.diff(pool(8), before=pool(10)).stdout
