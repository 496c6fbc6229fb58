"""The first hour with a cluster, typed word for word from the docs, on the real control plane.

Karpenter is no Service there, and the KWOK provider exports no prices: the line that forwards its port is left out, and the catalog is the
provider's own file. Up to the commit headroom has its own account, with which it can be seen that nothing is written. From there on whoever
types has their own rights, as on any cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.definitions import ALL, undefine
from tests.controlplane.documents import deployment, node_class, node_pool
from tests.controlplane.programs import find_data
from tests.controlplane.rest import condition
from tests.docs.first_hour import WITH_A_CLUSTER, first_hour, typed
from tests.e2e.daemon_process import USER
from tests.programs import program

pytestmark = pytest.mark.e2e

CPU = {"requirements": [{"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]}]}


@pytest.fixture
def without_definitions(empty_control_plane: ControlPlane) -> Iterator[None]:
    """What `headroom crd` brings is taken away afterwards: other tests find a cluster without it."""
    yield
    undefine(empty_control_plane.api, *ALL)


@pytest.mark.usefixtures("without_definitions")
def test_the_first_plan_writes_nothing_and_an_hour_later_the_buffer_is_full(
    empty_control_plane: ControlPlane, kubeconfig: Path, tmp_path: Path
) -> None:
    program("kubectl", install="kubectl")
    run_a_shop(empty_control_plane)
    lines = [line for line in first_hour(WITH_A_CLUSTER) if "port-forward" not in line]
    catalog = f"export HEADROOM_CATALOG={find_data('instance_types.json')}"
    lines = [catalog if line.startswith("export HEADROOM_CATALOG=") else line for line in lines]
    writes = lines.index("headroom crd | kubectl apply --server-side -f -")

    mark = empty_control_plane.audit_mark()
    done = typed(lines[:writes], tmp_path, KUBECONFIG=str(kubeconfig))
    see_the_plan(done, tmp_path / "capacity")
    asked = [event for event in empty_control_plane.audit_events(since=mark) if event.user == USER]
    assert asked
    assert [event for event in asked if event.is_write or event.resource == "secrets"] == []

    admin = str(empty_control_plane.kubeconfig())
    done = typed([catalog, *lines[writes:]], tmp_path / "capacity", KUBECONFIG=admin)
    assert {line: told for line, told in done.items() if told[0] != 0} == {}
    assert "settled: the cluster is as declared" in done["headroom run --path clusters/production --until-settled"][1]
    assert "FitsExistingCapacity" in done[lines[-1]][1]
    see_the_buffer(empty_control_plane)


def run_a_shop(plane: ControlPlane) -> None:
    """Nodes of four CPUs, and five pods of three each, which run."""
    api = plane.api
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


def see_the_plan(done: dict[str, tuple[int, str]], repository: Path) -> None:
    plans = [line for line in done if line.startswith("headroom plan")]
    assert {line: told for line, told in done.items() if told[0] != (1 if line in plans else 0)} == {}
    assert "The buffer is for Deployment/default/checkout" in done["headroom init"][1]
    assert len(plans) == 2
    for plan in plans:
        assert "CapacityBuffer/default/checkout: 3 chunks, 3 on new nodes" in done[plan][1]
        assert "  + general-headroom-" in done[plan][1]
        assert "/h\n" in done[plan][1]
        assert "3 nodes to create" in done[plan][1]
    written = repository / "clusters" / "production" / "buffers.yaml"
    assert yaml.safe_load(written.read_text())["spec"]["scalableRef"]["name"] == "checkout"


def see_the_buffer(plane: ControlPlane) -> None:
    """Three nodes more than the pods had, which Karpenter made, and a buffer that is full."""
    claims = plane.api.list("karpenter.sh/v1", "NodeClaim")
    placeholders = [item for item in claims if item["metadata"]["labels"].get("headroom.dev/placeholder") == "true"]
    assert len(placeholders) == 3
    assert all(condition(claim, "Ready") == "True" for claim in placeholders)
    full = plane.api.get("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "checkout", namespace="default")
    assert condition(full, "Provisioning") == "True"
