"""A seeded fuzzer of whole passes: whatever Git and the cluster hold, a healthy buffer beside it is served in the same passes.

Documents are altered as in `test_hostile_manifests`, with aliases, zeros and nulls. Objects of the cluster are altered too and put straight
into its store, past every validation. `HEADROOM_FUZZ=10000` tries so many inputs; a failure names its seed, and `HEADROOM_FUZZ_SEED`
repeats that one alone.
"""

from __future__ import annotations

import json
import os
import random
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import yaml

from reconciler.cluster.resources import BY_KIND, group_of
from reconciler.manifests.documents.load import load_file
from reconciler.manifests.kinds import kind_of
from reconciler.model.findings import Finding, Severity
from reconciler.model.nodes import InstanceType
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.ports import Catalog
from reconciler.settings.settings import Settings
from reconciler.wiring.session import make_cycle
from tests.builders import manifest
from tests.fakes.clock import ManualClock
from tests.fakes.cluster import FakeCluster
from tests.fakes.embedded import LARGE, SMALL, buffer, node_pool, pool_ref
from tests.fakes.source import FakeSource
from tests.properties.test_hostile_manifests import DOCUMENTS, KINDS, SHARDS, altered, check_each

INPUTS = int(os.environ.get("HEADROOM_FUZZ", "140"))
_POD_SPEC: dict[str, Any] = {
    "containers": [{"name": "a", "image": "pause", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]
}
_CONSUMES = {
    "autoscaling.x-k8s.io/consume-provisioning-request": "train",
    "autoscaling.x-k8s.io/provisioning-class-name": "check-capacity.autoscaling.x-k8s.io",
}
_RULED_POD_SPEC = {
    **_POD_SPEC,
    "nodeSelector": {"a": "b"},
    "priority": 5,
    "tolerations": [{"key": "x", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ],
}
_CLAIM_MARKS = {
    "labels": {"karpenter.sh/nodepool": "h", "headroom.dev/placeholder": "true", "headroom.dev/attempt": "u.1"},
    "annotations": {"headroom.dev/holds": "CapacityBuffer/shop/h=1", "karpenter.sh/do-not-disrupt": "true"},
}


def _shop(version: str, kind: str, spec: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return manifest(version, kind, "h", "shop", spec=spec, **fields)


_LIVE: tuple[dict[str, Any], ...] = (
    _shop("v1", "Pod", _POD_SPEC),
    _shop("v1", "Pod", _RULED_POD_SPEC, metadata={"annotations": _CONSUMES}),
    manifest(
        "v1",
        "Node",
        "h",
        metadata={"labels": {"karpenter.sh/nodepool": "h", "topology.kubernetes.io/zone": "a"}},
        spec={"taints": [{"key": "a", "effect": "NoSchedule"}], "providerID": "kwok://h"},
        status={
            "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T12:00:00Z"}],
        },
    ),
    manifest(
        "karpenter.sh/v1",
        "NodeClaim",
        "h",
        metadata=_CLAIM_MARKS,
        spec={
            "nodeClassRef": {"group": "g", "kind": "K", "name": "default"},
            "requirements": [{"key": "cores", "operator": "Gt", "values": ["4"]}],
            "resources": {"requests": {"cpu": "1"}},
            "expireAfter": "720h",
        },
        status={"capacity": {"cpu": "2"}, "conditions": [{"type": "Launched", "status": "True"}]},
    ),
    _shop(
        "apps/v1",
        "Deployment",
        {"replicas": 2, "selector": {"matchLabels": {"app": "h"}}, "template": {"spec": _POD_SPEC}},
    ),
    _shop(
        "apps/v1", "DaemonSet", {"selector": {}, "template": {"spec": {**_POD_SPEC, "nodeSelector": {"nowhere": "x"}}}}
    ),
    _shop(
        "policy/v1",
        "PodDisruptionBudget",
        {"minAvailable": "50%", "selector": {"matchLabels": {"app": "h"}}},
        status={"disruptionsAllowed": 0},
    ),
    _shop(
        "v1",
        "ResourceQuota",
        {"hard": {"requests.cpu": "100", "pods": "1000"}},
        status={"used": {"requests.cpu": "1"}},
    ),
    manifest("scheduling.k8s.io/v1", "PriorityClass", "h", value=10),
    manifest("node.k8s.io/v1", "RuntimeClass", "h", overhead={"podFixed": {"cpu": "1"}}),
    manifest("storage.k8s.io/v1", "StorageClass", "h", provisioner="p"),
    _shop(
        "v1",
        "PersistentVolumeClaim",
        {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "h"},
    ),
    manifest(
        "v1",
        "PersistentVolume",
        "h",
        spec={"capacity": {"storage": "1Gi"}, "claimRef": {"namespace": "shop", "name": "h"}},
    ),
)


def healthy() -> str:
    """A buffer of two chunks on a NodePool that nothing else tolerates."""
    pods = {
        **_POD_SPEC,
        "nodeSelector": {"karpenter.sh/nodepool": "good"},
        "tolerations": [{"key": "good", "operator": "Exists"}],
    }
    template = manifest("v1", "PodTemplate", "good", "good", template={"spec": pods})
    own = buffer("good")
    own["metadata"]["namespace"] = "good"
    own["spec"] = {"podTemplateRef": {"name": "good"}, "replicas": 2}
    return yaml.safe_dump_all([template, own])


class Types(Catalog):
    """Two instance types, whatever the cluster shows."""

    @property
    def source(self) -> str:
        return "a test"

    def instance_types(self, view: ClusterView) -> tuple[InstanceType, ...]:
        del view
        return (LARGE, SMALL)


def put(cluster: FakeCluster, body: dict[str, Any]) -> None:
    """Straight into what headroom sees, as a watch would, if the cluster can have such an object at all."""
    metadata = body.get("metadata")
    group, name = group_of(str(body.get("apiVersion"))), str(body.get("kind"))
    resource = BY_KIND.get((group, name))
    if resource is None or not isinstance(metadata, dict):
        return
    namespace = "shop" if resource.namespaced else ""
    metadata |= {"name": "h"} | ({"namespace": namespace} if namespace else {})
    with suppress(UnicodeEncodeError):  # no API server sends such text
        json.dumps(body, ensure_ascii=False).encode()
        cluster.stored[ObjectRef(group, name, namespace, "h")] = body


def live_objects(draw: random.Random) -> list[dict[str, Any]]:
    """A few objects of the cluster, altered; those of declared kinds are the documents of the other fuzzer."""
    chosen = draw.choices(_LIVE, k=draw.randint(0, 3)) + draw.choices(DOCUMENTS, k=draw.randint(0, 2))
    return [altered(deepcopy(dict(body)), draw) for body in chosen]


def check(seed: int) -> None:
    draw = random.Random(seed)
    cluster, clock = FakeCluster(), ManualClock()
    pool = node_pool("good")
    pool["spec"]["template"]["spec"]["taints"] = [{"key": "good", "effect": "NoSchedule"}]
    cluster.stored[pool_ref("good")] = pool
    path, content = draw.choice(KINDS)(draw)
    source = FakeSource({"good.yaml": healthy()})
    source._tree = replace(source._tree, files={**source._tree.files, f"hostile/{path}": content})
    for body in live_objects(draw):
        put(cluster, body)
    cycle = make_cycle(Settings(), source=source, cluster=cluster, catalog=Types(), clock=clock)
    for _ in range(2):
        result = cycle.run("fuzz")
        assert result.failure is None, result.failure
        clock.advance(10)
    findings: tuple[Finding, ...] = result.required_plan.findings
    # An object past every validation may have a form that no rule was written for. A document never makes headroom fail.
    broken = [item for item in findings if item.position is not None and "headroom failed" in item.message]
    assert not broken, broken
    served = next(outcome for outcome in result.required_plan.demands if outcome.demand.ref.name == "good")
    assert served.on_existing + served.on_new == 2, served
    in_force = {item.ref for item in cycle._manifests.last.manifests} if cycle._manifests.last else set()
    for item in load_file(path, content):
        kind = None if isinstance(item, Finding) else kind_of(group_of(item.api_version), item.kind)
        if kind is not None and kind.applied and not isinstance(item, Finding):
            assert kind.ref_of(item.value) in in_force or findings, "a document that is not in force has a finding"
    assert all(len(finding.message) <= 1001 for finding in findings)
    assert {finding.severity for finding in findings} <= set(Severity)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_whatever_there_is_a_healthy_buffer_is_served(shard: int) -> None:
    check_each(shard, INPUTS, check)
