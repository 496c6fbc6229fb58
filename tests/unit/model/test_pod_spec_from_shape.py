"""A shape that is written as a PodSpec and read again is the same shape."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.manifests.pods.pod_shape import pod_spec_from, shape_of
from reconciler.model.pod_spec_from_shape import pod_spec_of
from tests.builders import shape

TERM = {
    "topologyKey": "zone",
    "labelSelector": {"matchLabels": {"app": "web"}},
    "namespaces": ["other"],
    "namespaceSelector": {},
    "mismatchLabelKeys": ["hash"],
}
EVERYTHING: dict[str, Any] = {
    "containers": [
        {
            "name": "chunk",
            "resources": {"requests": {"cpu": "1500m", "memory": "1Gi", "example.com/gpu": "2"}},
            "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "UDP", "hostIP": "10.0.0.1"}],
        }
    ],
    "nodeSelector": {"disk": "ssd"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [{"key": "arch", "operator": "In", "values": ["a", "b"]}],
                        "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}],
                    }
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 3, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
            ],
        },
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [TERM],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": TERM}],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM | {"labelSelector": {}}]},
    },
    "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, {"operator": "Exists"}],
    "topologySpreadConstraints": [
        {
            "topologyKey": "zone",
            "maxSkew": 2,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},
            "minDomains": 3,
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
            "matchLabelKeys": ["hash"],
        },
        {"topologyKey": "host", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
    ],
    "priorityClassName": "high",
    "schedulerName": "other",
}


@pytest.mark.parametrize("spec", [EVERYTHING, {"containers": [{"name": "chunk"}]}], ids=["everything", "nothing"])
def test_written_and_read_again_it_is_the_same(spec: dict[str, Any]) -> None:
    before = shape_of(pod_spec_from(spec), namespace="shop", labels={})
    assert shape_of(pod_spec_from(pod_spec_of(before)), namespace="shop", labels={}) == before


def test_what_is_absent_is_left_out() -> None:
    assert pod_spec_of(shape("2", "1Gi")) == {
        "containers": [{"name": "chunk", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}]
    }
