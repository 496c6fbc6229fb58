"""Passes over check-capacity requests: the answer, the booking, their own pods, and buffers beside them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.refs import ObjectRef
from tests import manifests
from tests.fakes.embedded import Document, node_pool, workload_ref
from tests.fakes.requests import (
    ATOMIC,
    CHECK,
    CLASS_NAME,
    CONSUME,
    FOUND,
    NOT_FOUND,
    BatchShop,
    pod_template,
    pods_of,
    request,
    request_ref,
)

# Passes over check-capacity requests: the answer, the booking, and who may have the room.


def test_what_is_ignored_of_its_parameters_is_told() -> None:
    shop = BatchShop(nodes=1).given(request(count=4, parameters={"noRetry": "TRUE", "zone": "a"}))
    assert shop.conditions()["Provisioned"] == NOT_FOUND
    accepted = next(item for item in shop.outcome().conditions if item.type == "Accepted")
    assert accepted.message == (
        "the request is valid and its pod templates are there; "
        'noRetry must be "true" or "false", not \'TRUE\'; the check is repeated; check-capacity has no parameter zone'
    )


def test_a_life_time_that_no_clock_can_count_is_no_life_time() -> None:
    shop = BatchShop(nodes=1).given(request(count=3, parameters={"ValidUntilSeconds": "9" * 15}))
    assert shop.conditions()["Provisioned"] == FOUND


def test_a_node_on_its_way_is_no_room_yet() -> None:
    shop = BatchShop()
    shop.cluster.apply(request("maker", count=3, class_name=ATOMIC))
    shop.run()
    shop.cluster.delete(request_ref("maker"))
    shop.cluster.apply(request(count=1))
    shop.run()
    assert shop.conditions()["Provisioned"] == NOT_FOUND
    shop.settle()
    assert shop.conditions()["Provisioned"] == FOUND


def test_pods_that_ran_and_ended_between_two_passes_have_used_the_booking() -> None:
    shop = BatchShop(nodes=1).given(request(count=2))

    def end(body: Document) -> None:
        body["status"] = {"phase": "Succeeded"}

    for number in range(2):
        metadata = {
            "name": f"worker-{number}",
            "namespace": "shop",
            "annotations": {CONSUME: "train", CLASS_NAME: CHECK},
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_template()["template"]["spec"]}
        shop.cluster.apply(pod)
        shop.sandbox.wait(2)
        shop.cluster._world.store.change(ObjectRef("", "Pod", "shop", f"worker-{number}"), end, "kubelet")
    shop.settle()
    assert shop.conditions()["BookingExpired"] == ("True", "CapacityBookingConsumed")
    assert shop.held() == []


# Passes over requests whose pods exist already: none of them is asked for twice.

CONSUMED = ("True", "CapacityBookingConsumed")


def own_pods(count: int, *, class_name: str = ATOMIC, cpu: str = "3") -> Document:
    return pods_of("train", count, class_name=class_name, cpu=cpu)


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
    assert shop.cluster.view().inventory.records == {}


def test_pods_that_come_while_its_nodes_are_on_their_way_wait_for_those() -> None:
    shop = shop_of_large_pods()
    shop.cluster.apply(request(count=3, class_name=ATOMIC, template="large"))
    shop.run()
    shop.settle(own_pods(3), passes=12)
    assert len(shop.claims()) == 3
    assert shop.conditions()["BookingExpired"] == CONSUMED


@pytest.mark.parametrize("pods", [0, 1, 3])
def test_a_check_counts_its_own_pods(pods: int) -> None:
    shop = BatchShop(pool=node_pool(limits={"cpu": "4"}))
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.cluster.apply(own_pods(pods, class_name=CHECK, cpu="1"))
    shop.wait(timedelta(seconds=5))
    shop.settle(request(count=3))
    assert shop.conditions()["Provisioned"] == FOUND
    assert shop.claims() == ["free"]


def test_a_check_says_no_as_long_as_its_own_pods_have_no_room() -> None:
    shop = BatchShop(pool=node_pool(limits={"cpu": "4"}))
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.cluster.apply(own_pods(4, class_name=CHECK, cpu="1"))
    shop.wait(timedelta(seconds=5))
    shop.settle(request(count=4))
    assert shop.conditions()["Provisioned"] == NOT_FOUND


def test_behind_a_gate_the_pods_of_a_check_wait_for_the_answer_and_no_node_is_made() -> None:
    shop = BatchShop(provisions_pending=True)
    document = own_pods(3, class_name=CHECK, cpu="1")
    document["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/capacity"}]
    shop.settle(document, request(count=3))
    assert shop.conditions()["Provisioned"] == NOT_FOUND
    assert shop.claims() == []
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.settle()
    assert shop.conditions()["Provisioned"] == FOUND
    for pod in shop.cluster.view().pods:
        ref = ObjectRef("", "Pod", pod.namespace, pod.name)
        shop.sandbox.change(ref, lambda body: body["spec"].pop("schedulingGates"), "kubectl")
    shop.settle()
    assert set(shop.sandbox.where().values()) == {"node-free"}
    assert shop.claims() == ["free"]


# A check and a buffer with room for one pod on the only free node, in each order of arrival.

OPT_OUT = {"serves_requests": "false"}


def buffer(marks: dict[str, str]) -> Document:
    return manifests.document(manifests.buffer("spare", "replicas: 1", of="podTemplateRef: {name: worker}", **marks))


def shop_with_one_node() -> BatchShop:
    shop = BatchShop()
    shop.cluster.apply(pod_template(cpu="2"))
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    return shop


@pytest.mark.parametrize("marks", [{}, OPT_OUT, {"serves_requests": "true"}])
def test_a_buffer_that_comes_later_gets_a_node_of_its_own(marks: dict[str, str]) -> None:
    shop = shop_with_one_node().given(request())
    shop.settle(buffer(marks))
    assert shop.conditions()["Provisioned"] == FOUND
    assert len(shop.claims()) == 2


def test_a_request_that_comes_later_takes_the_room_and_the_buffer_refills() -> None:
    shop = shop_with_one_node().given(buffer({}))
    assert shop.claims() == ["free"]
    shop.settle(request())
    assert shop.conditions()["Provisioned"] == FOUND
    assert len(shop.claims()) == 2


def test_a_buffer_that_serves_no_request_keeps_its_room() -> None:
    shop = shop_with_one_node().given(buffer(OPT_OUT))
    assert shop.claims() == ["free"]
    shop.settle(request())
    assert shop.conditions()["Provisioned"] == NOT_FOUND
    assert shop.claims() == ["free"]
