"""`headroom.dev/reserve` on real Karpenter, with what docs/reserved-nodes.md tells its reader to write.

Its nodes take the request's own pods and no others, and are everybody's afterwards.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.builders import manifest
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import condition
from tests.docs.yaml_blocks import yaml_blocks
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.research import Research, node_pool
from tests.e2e.shop import CLAIM
from tests.fakes.requests import MADE
from tests.git_repository import GitRepository

pytestmark = pytest.mark.e2e

KEY = "headroom.dev/reserved"
DECLARED, (JOB,) = yaml_blocks("reserved-nodes.md")
HALF = {"requests": {"cpu": "2", "memory": "64Mi"}}
"""Of a node: no worker fits beside it."""
CONTAINER = {"name": "main", "image": "main:1", "resources": HALF}
STRANGER = manifest("v1", "Pod", "stranger", "research", spec={"containers": [CONTAINER]})


def reserved(research: Research) -> set[str]:
    nodes = research.api.list("v1", "Node")
    return {
        node["metadata"]["name"]
        for node in nodes
        if any(taint["key"] == KEY for taint in node["spec"].get("taints") or ())
    }


def nodes_of(research: Research, name: str, count: int) -> set[str]:
    """Where the pod of this name is, or those of this Job: so many must have a node."""
    pods = research.api.list("v1", "Pod", namespace="research")
    found = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods}
    own = {pod: node for pod, node in found.items() if pod.startswith(name)}
    assert len(own) == count, found
    assert all(own.values()), found
    return set(own.values())


def test_only_its_own_pods_come_to_its_nodes_until_all_have_come(
    empty_control_plane: ControlPlane, repository: GitRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    research = Research(empty_control_plane)
    repository.commit({"capacity.yaml": yaml.safe_dump_all([node_pool(cpu="4"), *DECLARED])})
    with DaemonProcess(repository.work, kubeconfig, tmp_path) as daemon:
        daemon.wait_until_ready()
        research.wait_for("train", "Provisioned", MADE, within=120)
        nodes = reserved(research)
        assert len(nodes) == 2
        research.api.create(STRANGER)
        away = eventually(lambda: nodes_of(research, "stranger", 1), within=90, what="the stranger's node", every=0.5)
        assert not away & nodes
        assert reserved(research) == nodes
        research.api.create(JOB)
        where = eventually(lambda: nodes_of(research, "training", 2), within=60, what="the Job's nodes", every=0.5)
        assert where == nodes
        research.wait_for("train", "BookingExpired", ("True", "CapacityBookingConsumed"), within=60)
        eventually(lambda: not reserved(research), within=60, what="its nodes are everybody's", every=0.5)
        claims = research.api.list(*CLAIM)
        assert len(claims) == 3
        assert not [claim["metadata"]["name"] for claim in claims if condition(claim, "Drifted") == "True"]
