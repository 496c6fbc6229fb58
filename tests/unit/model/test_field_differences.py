"""What counts as a difference between a manifest and a live object, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.changes import FieldChange
from reconciler.model.field_differences import DiffRules
from reconciler.model.refs import path_text


def differences(declared: dict[str, Any], live: dict[str, Any], *, drops_empty: bool = False) -> list[FieldChange]:
    return list(DiffRules(drops_empty).differences(declared, live))


@pytest.mark.parametrize(
    ("declared", "live"),
    [
        ({"spec": {"weight": 10}}, {"spec": {"weight": 10, "limits": {"cpu": "4"}}, "status": {}}),
        ({"limits": {"cpu": 1, "memory": "1Gi"}}, {"limits": {"cpu": "1000m", "memory": "1024Mi"}}),
        ({"resources": {"requests": {"cpu": 0.5}}}, {"resources": {"requests": {"cpu": "500m"}}}),
        ({"totalCpu": 40}, {"totalCpu": "40"}),
        ({"expireAfter": "720h"}, {"expireAfter": "720h0m0s"}),
        ({"expireAfter": "Never"}, {"expireAfter": "Never"}),
        ({"list": [{"name": "a"}]}, {"list": [{"name": "a", "protocol": "TCP"}]}),
        ({"gone": None}, {}),
    ],
)
def test_equal_but_for_spelling_and_what_others_added(declared: dict[str, Any], live: dict[str, Any]) -> None:
    assert differences(declared, live) == []


@pytest.mark.parametrize(
    ("declared", "live", "path", "before"),
    [
        ({"spec": {"weight": 10}}, {"spec": {"weight": 5}}, "spec.weight", 5),
        ({"spec": {"weight": 10}}, {}, "spec", None),
        ({"limits": {"cpu": "2"}}, {"limits": {"cpu": "1"}}, "limits.cpu", "1"),
        ({"nodes": "10"}, {"nodes": 10}, "nodes", 10),
        ({"on": True}, {"on": 1}, "on", 1),
        ({"budgets": []}, {}, "budgets", None),
        ({"list": ["a", "b"]}, {"list": ["b", "a"]}, "list[0]", "b"),
        ({"list": ["a"]}, {"list": ["a", "b"]}, "list", ["a", "b"]),
        ({"a": {"b.c/d": 1}}, {"a": {"b.c/d": 2}}, "a['b.c/d']", 2),
        ({"limits": {"cpu": "many"}}, {"limits": {"cpu": "1"}}, "limits.cpu", "1"),
    ],
)
def test_differences_are_named_by_path(
    declared: dict[str, Any],
    live: dict[str, Any],
    path: str,
    before: object,
) -> None:
    first = differences(declared, live)[0]
    assert (first.path, first.before) == (path, before)


def test_empty_lists_and_maps_of_kubernetes_own_kinds_are_not_stored() -> None:
    assert differences({"volumes": [], "labels": {}}, {}, drops_empty=True) == []


def test_paths_read_as_in_findings() -> None:
    assert path_text(("spec", "disruption", "budgets", 0, "nodes")) == "spec.disruption.budgets[0].nodes"
    assert (
        path_text(("metadata", "annotations", "headroom.dev/source")) == "metadata.annotations['headroom.dev/source']"
    )
