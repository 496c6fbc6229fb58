"""The newest live pod of a workload, by any selector."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.demand.resolve import LivePods
from reconciler.model.pods import Pod
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from tests.builders import deployment, pod, shape

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def made(name: str, minutes: int, **labels: str) -> Pod:
    return replace(pod(name, pod_shape=shape(labels=labels)), created=NOON - timedelta(minutes=minutes))


PODS = (
    made("a", 5, app="web", tier="front"),
    made("b", 3, app="web", tier="back"),
    made("c", 1, app="api", tier="front"),
    replace(made("d", 0, app="web", tier="front"), namespace="other"),
    replace(made("e", 0, app="web", tier="front"), deleting=True),
)


@pytest.mark.parametrize(
    ("selector", "newest"),
    [
        (LabelSelector((("app", "web"),)), "b"),
        (LabelSelector((("app", "web"), ("tier", "front"))), "a"),
        (LabelSelector((("app", "web"),), (Requirement("tier", Operator.NOT_IN, ("back",)),)), "a"),
        (LabelSelector((), (Requirement("app", Operator.EXISTS),)), "c"),
        (LabelSelector(), "c"),
        (LabelSelector((("app", "db"),)), None),
        (LabelSelector((("app", "web"), ("new", "x"))), None),
        (None, None),
    ],
)
def test_the_newest_that_the_selector_matches(selector: LabelSelector | None, newest: str | None) -> None:
    found = LivePods(PODS).newest(replace(deployment(), selector=selector))
    assert (None if found is None else found.name) == newest


def test_pods_of_one_age_are_taken_by_name_and_one_without_an_age_last() -> None:
    alike = shape(labels={"app": "web"})
    pods = [replace(pod(name, pod_shape=alike), created=NOON) for name in ("x", "z", "y")]
    selecting = replace(deployment(), selector=LabelSelector((("app", "web"),)))
    for order in (pods, pods[::-1]):
        found = LivePods([*order, replace(pod("zz", pod_shape=alike), created=None)]).newest(selecting)
        assert found is not None
        assert found.name == "z"
