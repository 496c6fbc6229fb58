"""The rules in headroom's own definition of Buffer: a real API server refuses what `headroom validate` calls an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.manifests.repository.declared import read
from reconciler.model.findings import Severity
from tests.builders import manifest
from tests.controlplane import ControlPlane
from tests.controlplane.definitions import defined
from tests.controlplane.rest import Document
from tests.integration.real_cluster import refusal

pytestmark = pytest.mark.e2e

POOL = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "general"}
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


@pytest.fixture(scope="module")
def server(api_server: ControlPlane) -> Iterator[ControlPlane]:
    with defined(api_server.api, "Buffer"):
        yield api_server


def of_percent(percent: dict[str, Any], **spec: Any) -> Document:
    return document({"targetRef": WEB, "capacity": {"replicas": {"percent": percent}}, **spec})


def of_node_class(replicas: int | None = None, **node_class: Any) -> Document:
    capacity = {"nodeClass": {"totalCpu": "4", "totalMem": "8Gi", **node_class}}
    return document({"targetRef": POOL, "capacity": capacity, **({} if replicas is None else {"replicas": replicas})})


def dedicated(selector: dict[str, Any]) -> Document:
    pods = {"replicaNum": 1, "podSpec": {"containers": [{"name": "main"}]}}
    return document({"capacity": {"pods": pods}, "podSelector": selector})


def document(spec: dict[str, Any]) -> Document:
    return manifest("autoscaling.x-k8s.io/v1alpha1", "Buffer", "b", "default", spec=spec)


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (of_percent({"percent": 10, "minCount": 3, "maxCount": 2}), "minCount must be at most maxCount"),
        (of_percent({"percent": 10, "minCount": 2, "maxCount": 2}), ""),
        (of_percent({"percent": 10, "minCount": 2}), ""),
        (of_node_class(perChunkResources={"cpu": "4001m"}), "one chunk must ask for at most totalCpu"),
        (of_node_class(perChunkResources={"cpu": 5}), "one chunk must ask for at most totalCpu"),
        (of_node_class(totalCpu=4, perChunkResources={"cpu": "4"}), ""),
        (of_node_class(perChunkResources={"cpu": "500m", "memory": "9Gi"}), "one chunk must ask for at most totalMem"),
        (of_node_class(perChunkResources={"memory": "8192Mi"}), ""),
        (of_node_class(perChunkResources={"cpu": "1", "nvidia.com/gpu": "8"}), ""),
        (of_node_class(), ""),
        (dedicated({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}), ""),
        (dedicated({"matchExpressions": [{"key": "app", "operator": "Like"}]}), "Unsupported value"),
        (dedicated({"matchExpressions": [{"key": "app", "operator": "In"}]}), "In and NotIn need values"),
        (dedicated({"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["x"]}]}), "have none"),
        (dedicated({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), ""),
        (of_percent({"percent": 10}, replicas=2), ""),
        (of_node_class(replicas=2), "replicas counts pods"),
        (of_percent({"percent": 10}, refillStrategy="none", fillDeadlineSeconds=1), ""),
        (of_percent({"percent": 10}, refillStrategy="none", fillDeadlineSeconds=0), "greater than or equal to 1"),
        (of_percent({"percent": 10}, refillStrategy="recreateUpToLimit"), "Unsupported value"),
    ],
)
def test_a_buffer_is_judged_alike(server: ControlPlane, buffer: Document, message: str) -> None:
    said = refusal(server.api, buffer)
    assert message in said
    errors = [
        item for item in read({"b.json": json.dumps(buffer).encode()}).findings if item.severity is Severity.ERROR
    ]
    assert bool(errors) == bool(said) == bool(message)
