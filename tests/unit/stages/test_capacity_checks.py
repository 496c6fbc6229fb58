"""Passes over check-capacity requests: the answer, the booking, and who may have the room."""

from __future__ import annotations

from datetime import timedelta

from reconciler.model.refs import ObjectRef
from tests.fakes.embedded import Document, workload
from tests.fakes.requests import ATOMIC, CHECK, CLASS_NAME, CONSUME, BatchShop, pod_template, request, request_ref

FOUND = ("True", "CapacityIsFound")
NOT_FOUND = ("False", "CapacityIsNotFound")


def with_nodes(count: int = 1) -> BatchShop:
    """Nodes that nobody uses, each with room for three workers."""
    shop = BatchShop()
    for number in range(count):
        shop.sandbox.add_node(f"free-{number}", "m-4x", cpu="3")
    return shop


def test_what_fits_is_found_and_booked() -> None:
    shop = with_nodes()
    shop.cluster.apply(request(count=3))
    shop.settle()
    assert shop.conditions() == {"Accepted": ("True", "Accepted"), "CapacityAvailable": FOUND, "Provisioned": FOUND}
    assert shop.held() == ["free-0"]


def test_what_does_not_fit_together_is_not_found_and_makes_no_node() -> None:
    shop = with_nodes()
    shop.cluster.apply(request(count=4))
    shop.settle()
    assert shop.conditions() == {
        "Accepted": ("True", "Accepted"),
        "CapacityAvailable": NOT_FOUND,
        "Provisioned": NOT_FOUND,
    }
    assert shop.claims() == ["free-0"]
    assert shop.held() == []


def test_a_check_that_is_not_to_be_repeated_fails() -> None:
    shop = with_nodes()
    shop.cluster.apply(request(count=4, parameters={"noRetry": "true"}))
    shop.settle()
    assert shop.conditions()["Failed"] == ("True", "CapacityIsNotFound")


def test_what_is_ignored_of_its_parameters_is_told() -> None:
    shop = with_nodes()
    shop.cluster.apply(request(count=4, parameters={"noRetry": "TRUE", "zone": "a"}))
    shop.settle()
    assert shop.conditions()["Provisioned"] == NOT_FOUND
    accepted = next(item for item in shop.outcome().conditions if item.type == "Accepted")
    assert accepted.message == (
        "the request is valid and its pod templates are there; "
        'noRetry must be "true" or "false", not \'TRUE\'; the check is repeated; check-capacity has no parameter zone'
    )


def test_a_life_time_that_no_clock_can_count_is_no_life_time() -> None:
    shop = with_nodes()
    shop.cluster.apply(request(count=3, parameters={"ValidUntilSeconds": "9" * 15}))
    shop.settle()
    assert shop.conditions()["Provisioned"] == FOUND


def test_a_second_request_does_not_count_the_same_room() -> None:
    shop = with_nodes()
    shop.cluster.apply(request("first", count=2))
    shop.settle()
    shop.cluster.apply(request("second", count=2))
    shop.settle()
    assert shop.conditions("first")["Provisioned"] == FOUND
    assert shop.conditions("second")["Provisioned"] == NOT_FOUND


def test_two_at_once_do_not_count_the_same_room_and_the_older_has_it() -> None:
    shop = with_nodes()
    shop.cluster.apply(request("younger-by-name", count=2))
    shop.sandbox.wait(1)
    shop.cluster.apply(request("a-first-by-name", count=3))
    shop.settle()
    assert shop.conditions("younger-by-name")["Provisioned"] == FOUND
    assert shop.conditions("a-first-by-name")["Provisioned"] == NOT_FOUND


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


def test_the_booking_ends_at_its_time_and_its_nodes_are_released() -> None:
    shop = with_nodes()
    shop.cluster.apply(request(count=3))
    began = shop.sandbox.clock.now()
    shop.run()
    edge = shop.cycle.next_edge(began)
    assert edge is not None
    assert edge.at == began + timedelta(minutes=10)
    shop.wait(edge.at - began)
    shop.run()
    assert shop.conditions()["BookingExpired"] == ("True", "CapacityReservationTimeExpired")
    assert shop.conditions()["Provisioned"] == FOUND
    assert shop.held() == []


def test_a_missing_pod_template_waits() -> None:
    shop = with_nodes()
    shop.cluster.apply(request(template="later"))
    shop.settle()
    assert shop.conditions() == {"Accepted": ("False", "PodTemplateNotFound")}
    shop.cluster.apply(pod_template("later"))
    shop.settle()
    assert shop.conditions()["Provisioned"] == FOUND


def test_pods_that_wait_have_the_room_before_a_request() -> None:
    shop = with_nodes()
    shop.cluster.apply(workload(replicas=2, cpu="1500m"))
    shop.cluster.apply(request(count=1))
    shop.settle()
    assert shop.conditions()["Provisioned"] == NOT_FOUND


def test_pods_that_ran_and_ended_between_two_passes_have_used_the_booking() -> None:
    shop = with_nodes()
    shop.cluster.apply(request(count=2))
    shop.settle()

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
