"""Passes over requests whose pods exist already: none of them is asked for twice."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.refs import ObjectRef
from tests.fakes.embedded import Document, node_pool, workload, workload_ref
from tests.fakes.requests import ATOMIC, CHECK, CLASS_NAME, CONSUME, BatchShop, pod_template, request

CONSUMED = ("True", "CapacityBookingConsumed")


def own_pods(count: int, *, class_name: str = ATOMIC, cpu: str = "3") -> Document:
    document = workload("train", replicas=count, cpu=cpu)
    document["spec"]["template"]["metadata"]["annotations"] = {CONSUME: "train", CLASS_NAME: class_name}
    return document


def shop_of_large_pods() -> BatchShop:
    shop = BatchShop(provisions_pending=True)
    shop.cluster.apply(pod_template("large", cpu="3"))
    return shop


@pytest.mark.parametrize("pods", [1, 3])
@pytest.mark.parametrize("wait", [0, 30])
def test_request_and_pods_together_make_as_many_nodes_as_are_needed(pods: int, wait: int) -> None:
    """Karpenter makes nodes for the pods that wait, headroom for the rest. wait: seconds between them and the first pass."""
    shop = shop_of_large_pods()
    shop.cluster.apply(request(count=3, class_name=ATOMIC, template="large"))
    shop.cluster.apply(own_pods(pods))
    shop.wait(timedelta(seconds=wait))
    made: set[str] = set()
    for number in range(14):
        made.update(shop.claims())
        shop.run()
        made.update(shop.claims())
        shop.sandbox.wait(5)
        if number == 10:
            shop.cluster.scale(workload_ref("train"), 3)
    assert len(made) == 3
    assert shop.conditions()["BookingExpired"] == CONSUMED


def test_while_all_of_its_pods_wait_no_attempt_begins() -> None:
    shop = BatchShop()
    shop.cluster.apply(pod_template("large", cpu="3"))
    shop.cluster.apply(request(count=3, class_name=ATOMIC, template="large"))
    shop.cluster.apply(own_pods(3))
    shop.wait(timedelta(seconds=0))
    shop.settle(passes=2)
    assert shop.claims() == []
    assert shop.conditions()["Provisioned"] == ("False", "PodsWaitForNodes")
    assert shop.cluster.view().inventory.memory == {}


def test_pods_that_come_while_its_nodes_are_on_their_way_wait_for_those() -> None:
    shop = shop_of_large_pods()
    shop.cluster.apply(request(count=3, class_name=ATOMIC, template="large"))
    shop.run()
    shop.cluster.apply(own_pods(3))
    shop.settle(passes=12)
    assert len(shop.claims()) == 3
    assert shop.conditions()["BookingExpired"] == CONSUMED


@pytest.mark.parametrize("pods", [0, 1, 3])
def test_a_check_counts_its_own_pods(pods: int) -> None:
    shop = BatchShop(pool=node_pool(limits={"cpu": "4"}))
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.cluster.apply(own_pods(pods, class_name=CHECK, cpu="1"))
    shop.wait(timedelta(seconds=5))
    shop.cluster.apply(request(count=3))
    shop.settle()
    assert shop.conditions()["Provisioned"] == ("True", "CapacityIsFound")
    assert shop.claims() == ["free"]


def test_a_check_says_no_as_long_as_its_own_pods_have_no_room() -> None:
    shop = BatchShop(pool=node_pool(limits={"cpu": "4"}))
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.cluster.apply(own_pods(4, class_name=CHECK, cpu="1"))
    shop.wait(timedelta(seconds=5))
    shop.cluster.apply(request(count=4))
    shop.settle()
    assert shop.conditions()["Provisioned"] == ("False", "CapacityIsNotFound")


def test_behind_a_gate_the_pods_of_a_check_wait_for_the_answer_and_no_node_is_made() -> None:
    shop = BatchShop(provisions_pending=True)
    document = own_pods(3, class_name=CHECK, cpu="1")
    document["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/capacity"}]
    shop.cluster.apply(document)
    shop.cluster.apply(request(count=3))
    shop.settle()
    assert shop.conditions()["Provisioned"] == ("False", "CapacityIsNotFound")
    assert shop.claims() == []
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.settle()
    assert shop.conditions()["Provisioned"] == ("True", "CapacityIsFound")
    for pod in shop.cluster.view().pods:
        ref = ObjectRef("", "Pod", pod.namespace, pod.name)
        shop.sandbox.change(ref, lambda body: body["spec"].pop("schedulingGates"), "kubectl")
    shop.settle()
    assert set(shop.sandbox.where().values()) == {"node-free"}
    assert shop.claims() == ["free"]
