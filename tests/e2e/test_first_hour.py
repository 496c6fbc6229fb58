"""The first hour with a cluster, typed word for word from the docs, on the real control plane.

Karpenter is no Service there, and the KWOK provider exports no prices: the line that forwards its port is left out, and the catalog is the
provider's own file.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import deployment, node_class, node_pool
from tests.controlplane.programs import find_data
from tests.docs.first_hour import WITH_A_CLUSTER, first_hour, typed
from tests.e2e.daemon_process import USER

pytestmark = pytest.mark.e2e

CPU = {"requirements": [{"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]}]}


def test_the_first_plan_shows_a_node_and_its_price_and_nothing_is_written(
    empty_control_plane: ControlPlane, kubeconfig: Path, tmp_path: Path
) -> None:
    api = empty_control_plane.api
    api.apply(node_class())
    pool = node_pool("general")
    pool["spec"]["template"]["spec"]["requirements"] += CPU["requirements"]
    api.apply(pool)
    api.apply(deployment("small", replicas=1, cpu="3"))
    api.apply(deployment("checkout", replicas=4, cpu="3"))

    def runs() -> bool:
        pods = api.list("v1", "Pod", namespace="default")
        return len(pods) == 5 and all(pod["status"].get("phase") == "Running" for pod in pods)

    eventually(runs, within=120, what="the five pods run", every=0.5)
    lines = [line for line in first_hour(WITH_A_CLUSTER) if not line.startswith("kubectl ")]
    catalog = f"export HEADROOM_CATALOG={find_data('instance_types.json')}"
    lines = [catalog if line.startswith("export HEADROOM_CATALOG=") else line for line in lines]
    mark = empty_control_plane.audit_mark()
    done = typed(lines, tmp_path, KUBECONFIG=str(kubeconfig))

    plans = [line for line in lines if line.startswith("headroom plan")]
    assert {line: told for line, told in done.items() if told[0] != (1 if line in plans else 0)} == {}
    assert "The buffer is for Deployment/default/checkout" in done["headroom init"][1]
    assert len(plans) == 2
    for plan in plans:
        assert "CapacityBuffer/default/checkout  3 chunks: 3 on new nodes" in done[plan][1]
        assert "NodeClaim general-headroom-" in done[plan][1]
        assert "/h\n" in done[plan][1]
        assert "3 nodes to create" in done[plan][1]
    written = tmp_path / "capacity" / "clusters" / "production" / "buffers.yaml"
    assert yaml.safe_load(written.read_text())["spec"]["scalableRef"]["name"] == "checkout"

    asked = [event for event in empty_control_plane.audit_events(since=mark) if event.user == USER]
    assert asked
    assert [event for event in asked if event.is_write or event.resource == "secrets"] == []
