"""The pods that placement is measured with: the mix of Karpenter's own scheduling benchmark, always the same for a count.

A fifth each: plain, spread over zones, spread over hosts, together in one zone with their like, and apart from each other on
hosts. They are made as manifests, so that headroom's decoder and Karpenter read the very same pods.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from reconciler.cluster.decoding.decode import decode
from reconciler.cluster.decoding.pods import ShapePool
from reconciler.cluster.resources import PODS
from reconciler.demand.combine import pending_demands
from reconciler.model.demand import Demand
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    OPERATING_SYSTEM_LABEL,
    ZONE_LABEL,
    InstanceType,
    NodePool,
)
from reconciler.model.pods import Pod
from reconciler.model.view import ClusterView
from tests.builders import node_pool, one_of

CPUS = ("100m", "250m", "500m", "1", "1500m")
MEMORIES = ("100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi")
LABEL_VALUES = "abcdefg"
SEED = 42

Object = dict[str, Any]


def pod_manifests(count: int) -> list[Object]:
    """`count` pending pods; what five does not divide is plain."""
    random = Random(SEED)
    fifth = count // 5
    kinds = [_plain] * fifth + [_over_zones] * fifth + [_over_hosts] * fifth + [_together] * fifth + [_apart] * fifth
    kinds += [_plain] * (count - len(kinds))
    return [_pod(number, kind(random), random) for number, kind in enumerate(kinds)]


def decoded(manifests: list[Object]) -> tuple[Pod, ...]:
    """As the daemon holds them: equal shapes are one object."""
    shapes = ShapePool()
    found = []
    for manifest in manifests:
        value = decode(PODS, manifest, shapes).value
        assert isinstance(value, Pod)
        found.append(value)
    return tuple(sorted(found, key=lambda pod: (pod.namespace, pod.name)))


def demands_of(pods: tuple[Pod, ...]) -> tuple[Demand, ...]:
    """As `plan --include-pending` asks for them."""
    return pending_demands(ClusterView(pods=pods), include_pending=True)


def pool() -> NodePool:
    """On-demand Linux nodes of any type."""
    return node_pool(
        "general",
        requirements=(
            one_of(CAPACITY_TYPE_LABEL, "on-demand"),
            one_of(OPERATING_SYSTEM_LABEL, "linux"),
        ),
    )


def priced_by_zone(types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
    """The same types at 0.7, 0.9, 1.1 and 1.3 times their price in the four zones."""
    zones = sorted({item.zone for kind in types for item in kind.offerings})
    factors = dict(zip(zones, (0.7, 0.9, 1.1, 1.3), strict=True))
    return tuple(
        replace(kind, offerings=tuple(replace(item, price=item.price * factors[item.zone]) for item in kind.offerings))
        for kind in types
    )


def _pod(number: int, rule: Object, random: Random) -> Object:
    name = f"pod-{number:06}"
    requests = {"cpu": random.choice(CPUS), "memory": random.choice(MEMORIES)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": rule.pop("labels"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"containers": [{"name": "main", "image": "pause", "resources": {"requests": requests}}], **rule},
    }


def _plain(random: Random) -> Object:
    return {"labels": {"my-label": random.choice(LABEL_VALUES)}}


def _over_zones(random: Random) -> Object:
    return _spread(ZONE_LABEL, random)


def _over_hosts(random: Random) -> Object:
    return _spread(HOSTNAME_LABEL, random)


def _spread(key: str, random: Random) -> Object:
    """Label and selector are drawn apart: most of these pods do not count themselves."""
    own, counted = random.choice(LABEL_VALUES), random.choice(LABEL_VALUES)
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"my-label": counted}},
    }
    return {"labels": {"my-label": own}, "topologySpreadConstraints": [constraint]}


def _together(random: Random) -> Object:
    labels = {"my-affinity": random.choice(LABEL_VALUES)}
    return {"labels": labels, "affinity": {"podAffinity": _required(labels, ZONE_LABEL)}}


def _apart(_random: Random) -> Object:
    labels = {"app": "nginx"}
    return {"labels": labels, "affinity": {"podAntiAffinity": _required(labels, HOSTNAME_LABEL)}}


def _required(labels: dict[str, str], key: str) -> Object:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
