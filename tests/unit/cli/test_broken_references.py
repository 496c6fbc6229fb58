"""A document that another one names has errors: it is there, and is not said to be missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconciler.cli.application import application

BUFFER = """
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {{name: spare, namespace: shop{annotations}}}
spec:
  {spec}
---
"""
REQUEST = """
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: train, namespace: shop}
spec:
  provisioningClassName: check-capacity.autoscaling.x-k8s.io
  podSets: [{count: 2, podTemplateRef: {name: web}}]
---
"""
POD_TEMPLATE = """
apiVersion: v1
kind: PodTemplate
metadata: {name: web, namespace: shop}
template: {spec: {containers: [{name: main, resources: {requests: {cpu: lots}}}]}}
"""
NODE_CLASS_BUFFER = """
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata: {name: spare, namespace: shop}
spec:
  targetRef: {apiGroup: karpenter.sh, kind: NodePool, name: web}
  capacity: {nodeClass: {totalCpu: 4, totalMem: 8Gi}}
---
"""
NODE_POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: web}
spec: {limits: {cpu: lots}, template: {spec: {requirements: []}}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {template: {spec: {containers: [{name: main, resources: {requests: {cpu: lots}}}]}}}
"""
SCHEDULE = """
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: web, namespace: shop}
spec: {schedule: {timezone: Europe/Atlantis, defaultReplicas: 1}}
"""


def buffer(spec: str, annotations: str = "") -> str:
    return BUFFER.format(spec=spec, annotations=annotations)


@pytest.mark.parametrize(
    ("naming", "named", "words"),
    [
        (buffer("{replicas: 3, podTemplateRef: {name: web}}"), POD_TEMPLATE, "PodTemplate/shop/web has errors"),
        (REQUEST, POD_TEMPLATE, "PodTemplate/shop/web has errors"),
        (
            buffer("{replicas: 3, scalableRef: {apiGroup: apps, kind: Deployment, name: web}}"),
            DEPLOYMENT,
            "Deployment/shop/web has errors",
        ),
        (
            buffer("{podTemplateRef: {name: web}}", ", annotations: {headroom.dev/replicas-from: web}"),
            SCHEDULE,
            "MetricsProducer/shop/web has errors",
        ),
        (NODE_CLASS_BUFFER, NODE_POOL, "NodePool/web has errors"),
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
