"""Disruption budgets from Git on real Karpenter: it allows what `headroom budgets` says, and takes no more than that."""

from __future__ import annotations

import json
import os
import re
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import Document, condition
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.shop import CLAIM, POOL, Shop, deployment
from tests.git_repository import GitRepository
from tests.headroom_command import headroom

pytestmark = pytest.mark.e2e

UNBOUNDED = 2147483647
METRIC = re.compile(
    r'^karpenter_nodepools_allowed_disruptions\{nodepool="general",reason="(\w+)"\} (\S+)$', re.MULTILINE
)
NODES = 4
CLOSED = "[{nodes: '0'}]"

POOL_OF_ONE_TYPE = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: general
spec:
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 0s
    budgets: {budgets}
  template:
    metadata:
      labels: {{image: {image}, revision: {revision}}}
    spec:
      nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}
      expireAfter: 720h
      requirements:
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux]}}
"""


def pool(budgets: str, *, image: str = "new", revision: str = "first") -> str:
    return POOL_OF_ONE_TYPE.format(budgets=budgets, image=image, revision=revision)


def one_pod_a_node(replicas: int) -> Document:
    """Pods of the old image: what has drifted to the new one is a candidate, and cannot be replaced."""
    alone = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}}
    return deployment(replicas, nodeSelector={"image": "old"}, affinity=affinity)


class Budgets:
    """What headroom says, what Karpenter says, and what is there."""

    def __init__(self, plane: ControlPlane, repository: GitRepository, kubeconfig: Path) -> None:
        self.api = plane.api
        self._plane = plane
        self._repository = repository
        self._kubeconfig = kubeconfig

    def push(self, document: str) -> None:
        """Commit the pool's document, and wait until the live pool has its budgets and template."""
        self._repository.commit({"nodepool.yaml": document})
        declared = yaml.safe_load(document)["spec"]

        def landed() -> bool:
            spec = (self.api.get(*POOL, "general") or {})["spec"]
            return bool(spec["disruption"] == declared["disruption"] and spec["template"] == declared["template"])

        eventually(landed, within=60, what="the pushed budgets are on the NodePool", every=0.5)

    def predicted(self) -> dict[str, dict[str, Any]]:
        """The rows of `headroom budgets` by reason."""
        words = ("budgets", "--output=json", "--repo=.", "--revision=main", "--cluster=kubeconfig")
        environment = {**os.environ, "KUBECONFIG": str(self._kubeconfig)}
        done = headroom(*words, folder=self._repository.work, environment=environment)
        assert done.returncode == 0, done.stderr
        return {row["reason"]: row for row in json.loads(done.stdout)["budgets"] if row["nodePool"] == "general"}

    def metric(self) -> dict[str, int]:
        with urllib.request.urlopen(self._plane.karpenter_metrics_url, timeout=10) as response:
            text = response.read().decode()
        return {reason: round(float(value)) for reason, value in METRIC.findall(text)}

    def claims(self) -> list[Document]:
        return self.api.list(*CLAIM)

    def drifted(self) -> set[str]:
        return {claim["metadata"]["name"] for claim in self.claims() if condition(claim, "Drifted") == "True"}

    def agree(self, expected: Mapping[str, int]) -> None:
        """Headroom predicts these budgets, and Karpenter comes to say the same. Each must differ from the last one told, or
        be the first: Karpenter refreshes its metric only while a node is a candidate."""
        rows = self.predicted()
        said = {reason: UNBOUNDED if rows[reason]["budget"] is None else rows[reason]["budget"] for reason in expected}
        assert said == expected, rows

        def same() -> bool:
            metric = self.metric()
            assert {reason: metric.get(reason) for reason in expected} == expected, metric
            return True

        eventually(same, within=60, what=f"Karpenter's metric is {dict(expected)}", every=0.5)


@pytest.fixture
def budgets(empty_control_plane: ControlPlane, repository: GitRepository, kubeconfig: Path) -> Budgets:
    return Budgets(empty_control_plane, repository, kubeconfig)


BUDGETS = (
    # Forty percent of three nodes, rounded up.
    ("[{nodes: 40%}]", 2, 2),
    # One window that is open, one that is not; nothing names Underutilized.
    (
        (
            "[{nodes: '1', reasons: [Drifted], schedule: '* * * * *', duration: 1h},"
            " {nodes: '0', schedule: '0 0 29 2 *', duration: 1m}]"
        ),
        UNBOUNDED,
        1,
    ),
    # A weekday that Karpenter's parser refuses closes the pool for every reason.
    ("[{nodes: '5', reasons: [Empty], schedule: '0 0 * * 7', duration: 1h}]", 0, 0),
    # 30 February never comes, and counts as always open.
    ("[{nodes: 34%, schedule: '0 0 30 2 *', duration: 1h}]", 2, 2),
    # An empty list of reasons matches nothing; no budgets at all bound nothing.
    ("[{nodes: '0', reasons: []}, {nodes: '3', reasons: [Underutilized]}]", 3, UNBOUNDED),
)
"""Budgets as written, and how many nodes they allow for Underutilized and for Drifted while three of them are there."""


def test_karpenter_allows_what_headroom_predicts_and_takes_no_more(
    shop: Shop, budgets: Budgets, repository: GitRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    repository.commit({"nodepool.yaml": pool(CLOSED, image="old")})
    with DaemonProcess(repository.work, kubeconfig, tmp_path):
        shop.api.apply(one_pod_a_node(NODES))
        eventually(lambda: len(shop.running()) == NODES, within=120, what="a pod runs on each of four nodes", every=0.5)
        budgets.push(pool(CLOSED))
        eventually(lambda: len(budgets.drifted()) == NODES, within=90, what="all four nodes have drifted", every=0.5)
        shop.scale(NODES - 1)
        eventually(lambda: len(shop.pods()) == NODES - 1, within=60, what="one node is empty", every=0.5)

        budgets.agree({"Underutilized": 0, "Empty": 0, "Drifted": 0})
        assert len(budgets.claims()) == NODES

        # Drift is blocked and emptiness allowed. The drifted nodes with pods stay, the empty one goes.
        held = {pod["spec"]["nodeName"] for pod in shop.running()}
        budgets.push(pool("[{nodes: '0', reasons: [Drifted, Underutilized]}, {nodes: '2', reasons: [Empty]}]"))
        budgets.agree({"Empty": 2, "Drifted": 0})
        eventually(lambda: len(budgets.claims()) == NODES - 1, within=60, what="the empty node is gone", every=0.2)
        assert {claim["status"]["nodeName"] for claim in budgets.claims()} == held
        assert len(budgets.drifted()) == NODES - 1

        for written, underutilized, drifted in BUDGETS:
            budgets.push(pool(written))
            budgets.agree({"Underutilized": underutilized, "Drifted": drifted})
            assert len(budgets.claims()) == NODES - 1

        # The old image is back, on nodes of another revision: drift goes on, one node at a time.
        one = "[{nodes: '1', reasons: [Drifted]}, {nodes: '0', reasons: [Underutilized]}]"
        budgets.push(pool(one))
        budgets.agree({"Drifted": 1})
        old = budgets.drifted()
        budgets.push(pool(one, image="old", revision="second"))
        most = 0

        def all_replaced() -> bool:
            nonlocal most
            most = max(most, len(_disrupting(budgets)))
            assert most <= 1, _disrupting(budgets)
            return not old & {claim["metadata"]["name"] for claim in budgets.claims()}

        eventually(all_replaced, within=240, what="every drifted node is replaced", every=0.1)
        assert most == 1


def _disrupting(budgets: Budgets) -> set[str]:
    """Nodes that Karpenter has chosen: tainted, or their NodeClaims deleted."""
    going = {
        claim["status"].get("nodeName", "") for claim in budgets.claims() if claim["metadata"].get("deletionTimestamp")
    }
    tainted = {
        node["metadata"]["name"]
        for node in budgets.api.list("v1", "Node")
        if any(taint["key"] == "karpenter.sh/disrupted" for taint in node["spec"].get("taints", ()))
    }
    return going | tainted
