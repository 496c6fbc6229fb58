"""Passes over bookings that lose room, to a stranger's pod or with a node: what is lost is made good, and the Job never pays for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.fakes.embedded import Document, node_pool, workload, workload_ref
from tests.fakes.requests import ATOMIC, CLASS_NAME, CONSUME, BatchShop, pod_template, request, request_ref

MADE = ("True", "CapacityIsProvisioned")
LOST = ("True", "CapacityIsLost")
REVOKED, EXPIRED = "CapacityRevoked", "BookingExpired"


def booked(nodes: int = 3, **pool: Any) -> BatchShop:
    """A request for pods of which each has a node to itself, provisioned."""
    shop = BatchShop(pool=node_pool(**pool))
    shop.cluster.apply(pod_template("large", cpu="3"))
    shop.cluster.apply(request(count=nodes, class_name=ATOMIC, template="large"))
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert len(shop.held()) == nodes
    return shop


def stranger(shop: BatchShop, name: str = "stranger") -> None:
    """A pod that asks for nothing, and takes all of a booked node."""
    node = shop.cluster.view().nodes[0].name
    shop.cluster.apply(workload(name, cpu="3", nodeSelector={"kubernetes.io/hostname": node}))


def own_pods(count: int, **spec: Any) -> Document:
    document = workload("train", replicas=count, cpu="3", **spec)
    document["spec"]["template"]["metadata"]["annotations"] = {CONSUME: "train", CLASS_NAME: ATOMIC}
    return document


def ends(shop: BatchShop) -> dict[str, str]:
    """The conditions that end it, with their reasons."""
    return {name: reason for name, (_, reason) in shop.conditions().items() if name in {"Failed", REVOKED, EXPIRED}}


def message(shop: BatchShop) -> str:
    return next(item.message for item in shop.outcome().conditions if item.type == "Provisioned")


def test_what_a_stranger_takes_is_made_good_by_a_new_node() -> None:
    shop = booked()
    stranger(shop)
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert ends(shop) == {}
    assert len(shop.claims()) == 4
    assert len(shop.held()) == 3


def test_free_room_makes_good_before_a_new_node_does() -> None:
    shop = booked()
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    stranger(shop)
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert len(shop.claims()) == 4


@pytest.mark.parametrize("running", [0, 2])
def test_a_lost_node_is_made_good_however_many_pods_run(running: int) -> None:
    shop = booked()
    shop.cluster.apply(own_pods(running))
    shop.settle(passes=3)
    free = next(node.name for node in shop.cluster.view().nodes if node.name not in set(shop.sandbox.where().values()))
    shop.sandbox.cluster.lose(free)
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert ends(shop) == {}
    assert len(shop.claims()) == 3
    shop.cluster.scale(workload_ref("train"), 3)
    shop.settle()
    assert ends(shop) == {EXPIRED: "CapacityBookingConsumed"}
    assert len(shop.claims()) == 3


def test_with_the_pool_at_its_limit_it_waits_until_the_stranger_goes() -> None:
    shop = booked(limits={"cpu": "12"})
    stranger(shop)
    shop.settle()
    assert shop.conditions()["Provisioned"] == LOST
    assert ends(shop) == {}
    assert message(shop).startswith(
        "room for 3 pods was made; it is booked for 10m; the room of 1 of them is gone, and is made good as soon as there is other room: "
        "NodePool general"
    )
    assert len(shop.held()) == 2, "the rest stays booked"
    shop.cluster.scale(workload_ref("stranger"), 0)
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert "gone" not in message(shop)
    assert len(shop.held()) == 3


def test_what_cannot_be_had_for_as_long_as_the_booking_lasts_is_revoked() -> None:
    shop = booked(limits={"cpu": "12"}, consolidate_after="0s")
    stranger(shop)
    shop.settle()
    shop.wait(timedelta(minutes=8))
    shop.run()
    assert ends(shop) == {}
    shop.wait(timedelta(minutes=2))
    shop.settle()
    assert ends(shop) == {REVOKED: "CapacityIsGone"}
    assert shop.held() == []
    assert len(shop.claims()) == 1, "the stranger's"


def test_a_request_of_which_pods_run_is_never_revoked() -> None:
    shop = booked(limits={"cpu": "12"})
    shop.cluster.apply(own_pods(2))
    shop.settle(passes=3)
    taken = set(shop.sandbox.where().values())
    node = next(node.name for node in shop.cluster.view().nodes if node.name not in taken)
    shop.cluster.apply(workload("stranger", cpu="3", nodeSelector={"kubernetes.io/hostname": node}))
    shop.settle()
    assert shop.conditions()["Provisioned"] == LOST
    shop.wait(timedelta(minutes=10))
    shop.settle()
    assert ends(shop) == {EXPIRED: "CapacityReservationTimeExpired"}


def test_a_loss_during_a_stock_out_is_made_good_once_that_ends() -> None:
    shop = booked()
    for zone in ("zone-a", "zone-b"):
        shop.cluster.set_stock("m-4x", zone, "on-demand", available=False)
    shop.sandbox.cluster.lose(shop.cluster.view().nodes[0].name)
    shop.settle()
    assert shop.conditions()["Provisioned"] == LOST
    for zone in ("zone-a", "zone-b"):
        shop.cluster.set_stock("m-4x", zone, "on-demand", available=True)
    shop.settle(passes=40)
    assert shop.conditions()["Provisioned"] == MADE
    assert len(shop.claims()) == 3


def test_nodes_that_make_good_go_with_the_request() -> None:
    shop = booked(consolidate_after="0s")
    stranger(shop)
    shop.settle()
    shop.cluster.delete(request_ref())
    shop.settle(passes=20)
    assert len(shop.claims()) == 1, "the stranger's"


def test_a_loss_is_told_once_and_so_is_that_it_is_made_good() -> None:
    shop = booked(limits={"cpu": "12"})
    stranger(shop)
    shop.settle()
    shop.cluster.scale(workload_ref("stranger"), 0)
    shop.settle()
    told = {item.event.reason: item.count for item in shop.cluster.events if item.event.ref == request_ref()}
    assert told == {"AttemptUnderWay": 1, "CapacityIsProvisioned": 2, "CapacityIsLost": 1}
