"""A whole pass over a snapshot with a pod that waits for the node that kube-scheduler has chosen for it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.cluster.resources import NODES, PODS
from reconciler.cluster.snapshot.capture import capture
from reconciler.model.changes import Plan
from reconciler.model.errors import Invalid
from reconciler.report.explanation import explanation
from reconciler.settings.load import load_settings
from reconciler.wiring.session import open_session
from tests.unit.cluster.documents import node, pod

NOW = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)


def what_if(folder: Path, chosen: str, hostnames: tuple[str, str] = ("node-1", "node-2")) -> Plan:
    """Two nodes of 3.9 CPUs; on the first a pod of 3 CPUs ends, for which another of 3 waits."""
    ending = pod("ending", cpu="3")
    ending["metadata"]["deletionTimestamp"] = "2026-11-21T07:29:50Z"
    pods = [
        ending,
        pod("running", cpu="3", node="node-2"),
        pod("chosen", cpu="3", node=None, phase="Pending", nominatedNodeName=chosen),
    ]
    nodes = [
        node(name, labels={"kubernetes.io/hostname": hostname})
        for name, hostname in zip(("node-1", "node-2"), hostnames, strict=True)
    ]
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
    plan = what_if(tmp_path, "node-1")

    assert plan.demands == ()
    assert plan.findings == ()
    (note,) = plan.notes
    assert note.startswith("Pod/shop/chosen waits for room on node-1, which kube-scheduler has chosen for it")


def test_its_explanation_is_that_sentence(tmp_path: Path) -> None:
    plan = what_if(tmp_path, "node-1")

    with pytest.raises(Invalid) as error:
        explanation(plan, "Pod/shop/chosen")

    assert error.value.hint == plan.notes[0]


def test_with_its_node_gone_it_waits_like_any_other(tmp_path: Path) -> None:
    plan = what_if(tmp_path, "node-9")

    assert [(str(item.demand.ref), item.unplaced) for item in plan.demands] == [("Pod/shop/chosen", 1)]
    assert plan.notes[0].startswith("Pod/shop/chosen was to go to node-9, which is gone or takes no pods")


def test_nodes_that_share_a_hostname_are_a_finding(tmp_path: Path) -> None:
    plan = what_if(tmp_path, "node-1", hostnames=("same", "same"))

    assert [(finding.code, str(finding.ref)) for finding in plan.findings] == [("shared-hostname", "Node/node-1")]
