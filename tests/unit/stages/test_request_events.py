"""Events of requests: told once, on the request and on pods that wait for it."""

from __future__ import annotations

from datetime import timedelta

from tests.fakes.embedded import Document, node_pool, workload
from tests.fakes.requests import ATOMIC, CHECK, CLASS_NAME, CONSUME, BatchShop, request


def told(shop: BatchShop, kind: str = "ProvisioningRequest") -> list[tuple[str, str]]:
    """Kind and reason of every event on objects of a kind, repeated ones once."""
    return [(item.event.kind, item.event.reason) for item in shop.cluster.events if item.event.ref.kind == kind]


def consumer() -> Document:
    document = workload("job", replicas=7, cpu="1")
    document["spec"]["template"]["metadata"]["annotations"] = {CONSUME: "train", CLASS_NAME: CHECK}
    return document


def test_each_step_of_an_atomic_request_is_told_once() -> None:
    shop = BatchShop()
    shop.cluster.apply(request(count=9, class_name=ATOMIC))
    shop.settle()
    shop.wait(timedelta(minutes=10))
    shop.settle()
    assert told(shop) == [
        ("Normal", "AttemptUnderWay"),
        ("Normal", "CapacityIsProvisioned"),
        ("Normal", "CapacityReservationTimeExpired"),
    ]


def test_pods_that_wait_for_a_request_are_told_and_five_are_enough() -> None:
    shop = BatchShop(pool=node_pool(limits={"cpu": "1"}))
    shop.cluster.apply(consumer())
    shop.cluster.apply(request(count=7, parameters={"noRetry": "true"}))
    shop.settle()
    assert ("Warning", "CapacityIsNotFound") in told(shop)
    pods = [
        item
        for item in shop.cluster.events
        if item.event.ref.kind == "Pod" and item.event.reason == "CapacityIsNotFound"
    ]
    assert len({item.event.ref for item in pods}) == 5
