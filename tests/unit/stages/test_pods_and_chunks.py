"""Pods that wait, leave or are nominated, beside the chunks of buffers: whole passes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.cluster.resources import NODES, PODS
from reconciler.model.changes import Plan
from reconciler.model.errors import Invalid
from reconciler.report.explanation import explanation
from reconciler.settings.load import load_settings
from reconciler.stages.state import PassResult
from reconciler.wiring.session import open_session
from tests.examples.unplaceable import cases, write_snapshot
from tests.fakes.embedded import LARGE, SMALL, buffer, node_pool, workload
from tests.fakes.kept_cluster import KeptCluster
from tests.headroom_command import headroom
from tests.unit.cluster.documents import capture, node, pod

# At a NodePool's limit pending pods come before chunks, though headroom makes no node for them.

CHUNK = "1500m"
LARGE_POD = "6"


def shop_with(limit: str, *, pods: int = 0, chunks: int = 1) -> KeptCluster:
    """Chunks that fit a node of two cores; pods that need one of eight."""
    shop = KeptCluster(instance_types=(SMALL, LARGE))
    shop.cluster.apply(node_pool(limits={"cpu": limit}))
    shop.cluster.apply(workload(replicas=0, cpu=CHUNK))
    shop.cluster.apply(workload("large", replicas=pods, cpu=LARGE_POD))
    shop.cluster.apply(buffer(replicas=chunks))
    return shop


def outcome(result: PassResult) -> tuple[int, int, str]:
    """Chunks on new nodes, chunks without a place, and why."""
    (found,) = result.required_plan.demands
    return found.on_new, found.unplaced, "; ".join(reason.example for reason in found.unplaced_reasons)


def test_what_pending_pods_need_of_a_limit_is_not_for_chunks() -> None:
    made, unplaced, why = outcome(shop_with("8", pods=1).cycle.run("test"))
    assert (made, unplaced) == (0, 1)
    assert "the nodes that pending pods need are counted in" in why


def test_chunks_have_what_pending_pods_leave_of_a_limit() -> None:
    assert outcome(shop_with("10", pods=1, chunks=2).cycle.run("test"))[:2] == (1, 1)
    assert outcome(shop_with("8", pods=0, chunks=2).cycle.run("test"))[:2] == (2, 0)


def test_chunks_whose_node_waiting_pods_would_take_come_after_karpenter_has_chosen_nodes_for_them() -> None:
    shop = shop_with("40", chunks=1)
    shop.cluster.apply(workload("many", replicas=3, cpu=CHUNK))
    first = shop.cycle.run("test")
    made, unplaced, why = outcome(first)
    assert (made, unplaced) == (0, 1)
    assert "Karpenter first chooses nodes for pods that wait" in why
    assert not shop.cluster.view().node_claims
    shop.keep(10)
    assert not shop.cluster.view().node_claims
    shop.keep(10)  # Karpenter has had its time
    assert shop.cluster.view().node_claims


def test_pods_that_no_node_could_ever_hold_keep_nothing_from_chunks() -> None:
    shop = shop_with("8")
    shop.cluster.apply(workload("huge", replicas=1, cpu="64"))
    assert outcome(shop.cycle.run("test"))[:2] == (1, 0)


def test_a_buffer_that_leaves_real_pods_no_room_is_named() -> None:
    shop = shop_with("8", chunks=2)
    shop.keep(30)
    assert len(shop.node_names()) == 2
    shop.cluster.apply(workload("large", replicas=1, cpu=LARGE_POD))
    findings = shop.cycle.run("test").required_plan.findings
    (found,) = [item for item in findings if item.code == "buffer-leaves-no-room"]
    assert str(found.ref) == "CapacityBuffer/shop/web"
    assert "NodePool general" in found.message
    assert "Pod/shop/large" in found.message


def test_no_buffer_is_named_where_the_limit_has_room_for_the_pods_too() -> None:
    shop = shop_with("16", chunks=2)
    shop.keep(30)
    shop.cluster.apply(workload("large", replicas=1, cpu=LARGE_POD))
    shop.cluster.apply(buffer(replicas=3))
    codes = {item.code for item in shop.cycle.run("test").required_plan.findings}
    assert "buffer-leaves-no-room" not in codes


def test_no_buffer_is_named_where_pods_wait_for_another_reason() -> None:
    shop = shop_with("4", chunks=2)
    shop.keep(30)
    shop.cluster.apply(workload("large", replicas=1, cpu=LARGE_POD))
    codes = {item.code for item in shop.cycle.run("test").required_plan.findings}
    assert "buffer-leaves-no-room" not in codes


# A whole pass over a snapshot with a node that is being deleted: where its pods would go.

ROOT = Path(__file__).resolve().parents[3]


def what_if(folder: Path, *words: str) -> dict[str, Any]:
    case = dict(cases()["cpu short by 200m"])
    case["nodes"] = {**case["nodes"], "node-3": {"zone": "zone-a", "type": "m-8x", "pool": "general", "deleting": True}}
    case["running"] = [
        *case["running"],
        {"name": "api-1", "node": "node-3", "requests": {"cpu": "1"}},
        {"name": "api-2", "node": "node-3", "requests": {"cpu": "3"}},
    ]
    (folder / "snapshot").mkdir()
    (folder / "repository").mkdir()
    write_snapshot(case, folder / "snapshot")
    where = ("--repo", str(folder / "repository"), "--cluster", f"snapshot:{folder / 'snapshot'}")
    done = headroom("plan", *words, *where, "--check-placement", "--output=json", folder=ROOT)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_one_fits_what_is_there_and_one_needs_a_new_node(tmp_path: Path) -> None:
    plan = what_if(tmp_path, "--include-pending")
    assert plan["findings"] == []
    assert plan["leaving"] == [{"node": "node-3", "placedOnExisting": 1, "placedOnNew": 1, "unplaced": 0}]
    assert plan["existing"] == [{"node": "node-1", "holds": [{"demand": "Pod/shop/api-1", "count": 1}]}]
    (made,) = plan["nodeClaims"]["create"]
    assert made["holds"] == [{"demand": "Pod/shop/api-2", "count": 1}]


# A whole pass over a snapshot with a pod that waits for the node that kube-scheduler has chosen for it.

NOW = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)


def what_if_nominated(folder: Path, chosen: str) -> Plan:
    """Two nodes of 3.9 CPUs; on the first a pod of 3 CPUs ends, for which another of 3 waits."""
    ending = pod("ending", cpu="3")
    ending["metadata"]["deletionTimestamp"] = "2026-11-21T07:29:50Z"
    pods = [
        ending,
        pod("running", cpu="3", node="node-2"),
        pod("chosen", cpu="3", node=None, phase="Pending", nominatedNodeName=chosen),
    ]
    nodes = [node(name, labels={"kubernetes.io/hostname": name}) for name in ("node-1", "node-2")]
    for document in nodes:
        document["spec"]["taints"] = []
    (folder / "repository").mkdir()
    capture(lambda resource: {PODS: pods, NODES: nodes}.get(resource, []), folder / "snapshot")
    settings = load_settings(
        None,
        environment={},
        flags={
            "repository": str(folder / "repository"),
            "cluster": f"snapshot:{folder / 'snapshot'}",
            "placement.check": True,
        },
    )
    with open_session(settings, now=NOW, progress=lambda _stage: None) as session:
        return session.cycle.plan(include_pending=True).required_plan


def test_it_is_left_to_that_node_and_the_plan_says_so(tmp_path: Path) -> None:
    plan = what_if_nominated(tmp_path, "node-1")

    assert plan.demands == ()
    assert plan.findings == ()
    (note,) = plan.notes
    assert "for Pod/shop/chosen on node-1: they count as running there" in note
    with pytest.raises(Invalid) as error:
        explanation(plan, "Pod/shop/chosen")
    assert error.value.hint == note, "its explanation is that sentence"
