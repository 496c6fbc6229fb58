"""Which Deployment a first buffer is for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.buffers import Buffer
from reconciler.model.pods import PodShape
from reconciler.model.refs import ObjectRef
from reconciler.scaffold.candidate import candidate, chunks_for
from tests.builders import buffer, deployment


def test_the_largest_deployment_is_chosen_and_of_equal_ones_the_first_by_name() -> None:
    found = candidate([deployment("a", replicas=2), deployment("c", replicas=7), deployment("b", replicas=7)], [])
    assert found is not None
    assert found.ref.name == "b"


@pytest.mark.parametrize("namespace", ["kube-system", "headroom-system"])
def test_the_clusters_own_deployments_are_passed_over(namespace: str) -> None:
    assert candidate([deployment("coredns", namespace=namespace)], []) is None


@pytest.mark.parametrize("replicas", [None, 0])
def test_one_without_pods_is_passed_over(replicas: int | None) -> None:
    assert candidate([deployment(replicas=replicas)], []) is None


def test_pods_without_requests_are_passed_over() -> None:
    assert candidate([deployment(pod_shape=PodShape("shop")), replace(deployment("bare"), shape=None)], []) is None


def test_other_kinds_are_passed_over() -> None:
    stateful = replace(deployment(), ref=ObjectRef("apps", "StatefulSet", "shop", "web"))
    assert candidate([stateful], []) is None


@pytest.mark.parametrize("taken", [buffer("spare", target="web"), buffer("web", target="api")])
def test_one_that_has_a_buffer_or_whose_name_a_buffer_has_is_passed_over(taken: Buffer) -> None:
    found = candidate([deployment("web", replicas=9), deployment("cart", replicas=1)], [taken])
    assert found is not None
    assert found.ref.name == "cart"


@pytest.mark.parametrize(("replicas", "chunks"), [(1, 3), (15, 3), (16, 4), (20, 4), (21, 5), (100, 20)])
def test_a_buffer_is_a_fifth_and_at_least_three(replicas: int, chunks: int) -> None:
    assert chunks_for(replicas) == chunks
