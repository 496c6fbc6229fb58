"""Written selectors and pod specs: what is read again is the same."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.manifests.pods.pod_shape import pod_spec_from, shape_of
from reconciler.model.errors import Invalid
from reconciler.model.pod_spec_from_shape import pod_spec_of
from reconciler.model.requirements import parse_selector
from tests.builders import shape

# Label selectors written as one line, as scales and `headroom.dev/percent-of` have them.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("app=web", True),
        ("app==web", True),
        ("app = web", True),
        ("app=shop", False),
        ("app!=shop", True),
        ("app!=web", False),
        ("app in (shop, web)", True),
        ("app in(web)", True),
        ("app in (shop)", False),
        ("app notin (shop,db)", True),
        ("tier", True),
        ("other", False),
        ("!other", True),
        ("!tier", False),
        ("app=web,tier in (front,back),!other", True),
        ("app=web,tier in (back)", False),
        ("tier=", False),
        ("example.com/team!=a", True),
        ("in", False),
    ],
)
def test_a_written_selector(text: str, expected: bool) -> None:  # noqa: FBT001 - the case
    assert parse_selector(text).matches({"app": "web", "tier": "front"}) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "app=web,",
        "app=web tier=a",
        "app in web",
        "app in ()",
        "app in (a",
        "app)",
        "a>1",
        "=web",
        "!",
        "app=-",
        "a=b=c",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_selector(text)
    assert caught.value.hint == "write parts such as app=web, tier in (a,b), !legacy, with commas between"


def test_a_long_text_is_read_at_once_and_shown_in_part() -> None:
    with pytest.raises(Invalid) as caught:
        parse_selector("," * 500_000 + "(")
    assert len(caught.value.message) < 100
    assert len(parse_selector(f"app in ({','.join(['web'] * 100_000)})").expressions) == 1


# A shape that is written as a PodSpec and read again is the same shape.

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
