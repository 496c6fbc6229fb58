"""A document that another one names has errors: it is there, and is not said to be missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconciler.cli.application import application
from tests.manifests import BY_DEPLOYMENT, buffer, node_pool, pod_template, request, schedule

NODE_CLASS_BUFFER = """
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata: {name: spare, namespace: shop}
spec:
  targetRef: {apiGroup: karpenter.sh, kind: NodePool, name: web}
  capacity: {nodeClass: {totalCpu: 4, totalMem: 8Gi}}
"""
DEPLOYMENT = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {template: {spec: {containers: [{name: main, resources: {requests: {cpu: lots}}}]}}}
"""


@pytest.mark.parametrize(
    ("naming", "named", "words"),
    [
        (buffer("spare", "replicas: 3"), pod_template("web", "cpu: lots"), "PodTemplate/shop/web has errors"),
        (request(), pod_template("web", "cpu: lots"), "PodTemplate/shop/web has errors"),
        (buffer("spare", "replicas: 3", of=BY_DEPLOYMENT), DEPLOYMENT, "Deployment/shop/web has errors"),
        (
            buffer("spare", replicas_from="web"),
            schedule("web", 1, "hours: 9", "hours: 17", zone="Europe/Atlantis"),
            "MetricsProducer/shop/web has errors",
        ),
        (NODE_CLASS_BUFFER, node_pool("web", "limits: {cpu: lots}"), "NodePool/web has errors"),
    ],
    ids=["buffer of a template", "request", "buffer of a Deployment", "schedule", "buffer of a NodePool"],
)
def test_a_document_with_errors_is_not_said_to_be_missing(naming: str, named: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(naming + named)
    (tmp_path / "cluster").mkdir()
    asked = ["plan", "--repo", str(tmp_path), "--cluster", f"snapshot:{tmp_path}/cluster", "--output", "json"]
    plan = json.loads(CliRunner().invoke(application, asked, catch_exceptions=False).stdout)
    own = next(item for item in plan["findings"] if item["severity"] == "error" and item["name"] == "web")
    condition = plan["demands"][0]["conditions"][0]
    place = f"shop.yaml:{own['line']}:{own['column']}"
    assert f"{words} ({place}), and no earlier version of it is known" in condition["message"]
    assert "does not exist" not in json.dumps(plan)
