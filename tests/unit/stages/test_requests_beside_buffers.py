"""A check and a buffer with room for one pod on the only free node, in each order of arrival."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.requests import BatchShop, pod_template, request

FOUND = ("True", "CapacityIsFound")
NOT_FOUND = ("False", "CapacityIsNotFound")
OPT_OUT = {"headroom.dev/serves-requests": "false"}


def buffer(annotations: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "spare", "namespace": "shop", "annotations": annotations},
        "spec": {"podTemplateRef": {"name": "worker"}, "replicas": 1},
    }


def shop_with_one_node() -> BatchShop:
    shop = BatchShop()
    shop.cluster.apply(pod_template(cpu="2"))
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    return shop


@pytest.mark.parametrize("annotations", [{}, OPT_OUT, {"headroom.dev/serves-requests": "true"}])
def test_a_buffer_that_comes_later_gets_a_node_of_its_own(annotations: dict[str, str]) -> None:
    shop = shop_with_one_node()
    shop.cluster.apply(request())
    shop.settle()
    shop.cluster.apply(buffer(annotations))
    shop.settle()
    assert shop.conditions()["Provisioned"] == FOUND
    assert len(shop.claims()) == 2


def test_a_request_that_comes_later_takes_the_room_and_the_buffer_refills() -> None:
    shop = shop_with_one_node()
    shop.cluster.apply(buffer({}))
    shop.settle()
    assert shop.claims() == ["free"]
    shop.cluster.apply(request())
    shop.settle()
    assert shop.conditions()["Provisioned"] == FOUND
    assert len(shop.claims()) == 2


def test_a_buffer_that_serves_no_request_keeps_its_room() -> None:
    shop = shop_with_one_node()
    shop.cluster.apply(buffer(OPT_OUT))
    shop.settle()
    assert shop.claims() == ["free"]
    shop.cluster.apply(request())
    shop.settle()
    assert shop.conditions()["Provisioned"] == NOT_FOUND
    assert shop.claims() == ["free"]
