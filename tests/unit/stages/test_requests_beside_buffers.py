"""A check and a buffer with room for one pod on the only free node, in each order of arrival."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.nodes import HOLDS_ANNOTATION
from tests.fakes.requests import BatchShop, pod_template, request, request_ref

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


@pytest.mark.parametrize("annotations", [{}, OPT_OUT])
@pytest.mark.parametrize("older", ["request", "buffer"])
def test_of_both_in_one_pass_the_request_has_the_room(older: str, annotations: dict[str, str]) -> None:
    """A buffer that holds nothing yet keeps nothing from anybody."""
    shop = shop_with_one_node()
    both = [request(), buffer(annotations)]
    for document in both if older == "request" else reversed(both):
        shop.cluster.apply(document)
        shop.sandbox.wait(1)
    shop.settle()
    assert shop.conditions()["Provisioned"] == FOUND
    assert len(shop.claims()) == 2


@pytest.mark.parametrize("annotations", [{}, OPT_OUT])
def test_a_booking_keeps_its_room_from_a_buffer_after_a_restart(annotations: dict[str, str]) -> None:
    shop = shop_with_one_node()
    shop.cluster.apply(request())
    shop.settle()
    shop.restart()
    shop.cluster.apply(buffer(annotations))
    shop.settle()
    assert shop.conditions()["Provisioned"] == FOUND
    held_for = {claim.name: claim.annotation(HOLDS_ANNOTATION) or "" for claim in shop.cluster.view().node_claims}
    assert str(request_ref()) in held_for.pop("free")
    ((_, words),) = held_for.items()
    assert "CapacityBuffer/shop/spare" in words
