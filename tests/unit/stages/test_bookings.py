"""Passes over booked capacity: who may take it, what uses it up, what becomes of it, and how a loss is made good."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.nodes import HOSTNAME_LABEL, node_ref
from reconciler.model.refs import ObjectRef
from tests.builders import manifest
from tests.fakes.embedded import Document, node_pool, workload, workload_ref
from tests.fakes.requests import (
    ATOMIC,
    CHECK,
    CLASS_NAME,
    CONSUME,
    FOUND,
    MADE,
    BatchShop,
    pod_template,
    pods_of,
    request,
    request_ref,
)

# Passes over booked capacity: who may take it, what uses it up, and what becomes of it when its node goes.

OLD_CONSUME = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"
OLD_CLASS = "cluster-autoscaler.kubernetes.io/provisioning-class-name"


def consumers(replicas: int, *, old: bool = False) -> Document:
    names = (OLD_CONSUME, OLD_CLASS) if old else (CONSUME, CLASS_NAME)
    return workload("job", replicas=replicas, cpu="1", annotations=dict(zip(names, ("train", CHECK), strict=True)))


def booked(shop: BatchShop) -> int | None:
    """Chunks that are still booked."""
    return shop.outcome().demand.desired


@pytest.mark.parametrize("old", [False, True])
def test_its_pods_use_a_booking_up(*, old: bool) -> None:
    shop = BatchShop(nodes=1).given(request(count=3))
    assert booked(shop) == 3
    shop.settle(consumers(2, old=old))
    assert booked(shop) == 1
    shop.cluster.scale(workload_ref("job"), 3)
    shop.settle()
    assert shop.conditions()["BookingExpired"] == ("True", "CapacityBookingConsumed")
    assert shop.conditions()["Provisioned"] == FOUND


def annotated(shop: BatchShop, annotations: dict[str, str], *, cpu: str = "1") -> list[tuple[str, str, str]]:
    """Code, message and hint of the findings on two new pods with these annotations."""
    shop.cluster.delete(workload_ref("job"))
    shop.sandbox.wait(60)
    shop.cluster.apply(workload("job", replicas=2, cpu=cpu, annotations=annotations))
    shop.sandbox.wait(5)
    found = [item for item in shop.plan().findings if item.ref is not None and item.ref.kind == "Pod"]
    assert all(item.position is None for item in found)
    return [(item.code, item.message, item.hint) for item in found]


def test_pods_with_one_annotation_of_the_two_are_told_of_the_other() -> None:
    shop = BatchShop(nodes=1).given(request(count=3))
    assert annotated(shop, {CONSUME: "train", CLASS_NAME: CHECK}) == []
    ((code, message, hint),) = annotated(shop, {CONSUME: "train"})
    assert code == "half-consumption"
    assert message.startswith(
        f"{CONSUME} names ProvisioningRequest/shop/train without {CLASS_NAME} beside it: both are"
    )
    assert "(2 pods of ReplicaSet/job-" in message
    assert hint == f"add {CLASS_NAME}: {CHECK} to the pod's template"
    ((code, message, _),) = annotated(shop, {OLD_CLASS: CHECK})
    assert code == "half-consumption"
    assert message.startswith(f"{OLD_CLASS} has no effect without {CONSUME} (2 pods of ReplicaSet/job-")


def test_pods_that_wait_for_a_request_that_is_not_there_are_told() -> None:
    shop = BatchShop(nodes=1)
    shop.cluster.apply(request(count=3))
    both = {CONSUME: "trian", CLASS_NAME: CHECK}
    ((code, message, hint),) = annotated(shop, both, cpu="64")
    assert code == "request-not-found"
    assert message.startswith(f"{CONSUME} names ProvisioningRequest/shop/trian, which does not exist (2 pods of Rep")
    assert hint == "correct the name (shop has train), or create the request"
    shop.cluster.apply(request("trian", count=3))
    assert annotated(shop, both, cpu="64") == []


def test_pods_that_run_may_outlive_their_request() -> None:
    shop = BatchShop(nodes=1)
    assert annotated(shop, {CONSUME: "train", CLASS_NAME: CHECK}) == []


def test_pods_that_come_after_others_have_gone_use_up_the_rest() -> None:
    """Those that are there at one time are never all of them."""
    shop = BatchShop(nodes=1).given(request(count=3))
    for replicas in (1, 0, 1, 0, 1):
        assert "BookingExpired" not in shop.conditions()
        shop.settle(consumers(replicas), passes=3)
        shop.restart()
    assert shop.conditions()["BookingExpired"] == ("True", "CapacityBookingConsumed")


def test_pods_use_up_pod_sets_that_are_alike_one_after_the_other() -> None:
    shop = BatchShop(nodes=2)
    document = request(count=2)
    document["spec"]["podSets"] *= 2
    shop.settle(document)
    for replicas, left in ((2, 2), (0, 2), (1, 1), (0, 1)):
        shop.settle(consumers(replicas), passes=3)
        assert booked(shop) == left


def test_a_strangers_pod_moves_a_booking_to_other_free_room() -> None:
    shop = BatchShop(nodes=2).given(request(count=3))
    (held,) = shop.held()
    stranger = workload("stranger", replicas=1, cpu="2", nodeSelector={"kubernetes.io/hostname": f"node-{held}"})
    shop.settle(stranger)
    assert "CapacityRevoked" not in shop.conditions()
    assert sorted(shop.held()) == ["free-0", "free-1"]


def test_a_check_whose_node_goes_has_other_room_as_soon_as_there_is_some() -> None:
    """No node is made for it. What it does not get while the booking lasts is revoked, and that is final."""
    shop = BatchShop(nodes=1).given(request(count=3))
    shop.sandbox.cluster.lose("node-free-0")
    shop.settle()
    assert shop.conditions()["Provisioned"] == ("True", "CapacityIsLost")
    assert shop.claims() == []
    shop.sandbox.add_node("late", "m-4x", cpu="3")
    shop.settle()
    assert shop.conditions()["Provisioned"] == FOUND
    shop.sandbox.cluster.lose("node-late")
    shop.settle()
    shop.wait(timedelta(minutes=10))
    shop.settle()
    assert shop.conditions()["CapacityRevoked"] == ("True", "CapacityIsGone")
    shop.sandbox.add_node("too-late", "m-4x", cpu="3")
    shop.settle()
    assert shop.conditions()["CapacityRevoked"] == ("True", "CapacityIsGone")
    assert shop.held() == []


def test_it_stays_where_it_was_while_others_come_and_go() -> None:
    """Placed anew the small one would go to the first node, which the large one has."""
    shop = BatchShop(nodes=2).given(workload(cpu="2", nodeSelector={"kubernetes.io/hostname": "node-free-1"}))
    shop.settle(request("small"))
    shop.settle(pod_template("large", cpu="3"), request("large", template="large"))
    assert len(shop.held()) == 2
    shop.cluster.scale(workload_ref(), 0)
    shop.settle()
    assert shop.sandbox.where() == {}
    shop.restart()
    shop.settle()
    places = {place.node: [holding.demand.name for holding in place.holdings] for place in shop.plan().occupied}
    assert places == {"node-free-0": ["large"], "node-free-1": ["small"]}


def test_its_node_is_not_replaced_while_it_lasts() -> None:
    shop = BatchShop()
    shop.sandbox.add_node("old", "m-4x", cpu="3", expire_after="12m")
    shop.settle(request(count=3))
    shop.wait(timedelta(minutes=9))
    shop.run()
    assert "BookingExpired" not in shop.conditions()
    assert "CapacityRevoked" not in shop.conditions()


# Passes over bookings that lose room, to a stranger's pod or with a node: what is lost is made good, and the Job never pays for it.

LOST = ("True", "CapacityIsLost")
REVOKED, EXPIRED = "CapacityRevoked", "BookingExpired"


def booked_nodes(nodes: int = 3, **pool: Any) -> BatchShop:
    """A request for pods of which each has a node to itself, provisioned."""
    shop = BatchShop(pool=node_pool(**pool)).given(
        pod_template("large", cpu="3"), request(count=nodes, class_name=ATOMIC, template="large")
    )
    assert shop.conditions()["Provisioned"] == MADE
    assert len(shop.held()) == nodes
    return shop


def stranger(shop: BatchShop, name: str = "stranger") -> None:
    """A pod that asks for nothing, and takes all of a booked node."""
    node = shop.cluster.view().nodes[0].name
    shop.cluster.apply(workload(name, cpu="3", nodeSelector={"kubernetes.io/hostname": node}))


def own_pods(count: int, **spec: Any) -> Document:
    return pods_of("train", count, class_name=ATOMIC, cpu="3", **spec)


def ends(shop: BatchShop) -> dict[str, str]:
    """The conditions that end it, with their reasons."""
    return {name: reason for name, (_, reason) in shop.conditions().items() if name in {"Failed", REVOKED, EXPIRED}}


@pytest.mark.parametrize("running", [0, 2])
def test_a_lost_node_is_made_good_however_many_pods_run(running: int) -> None:
    shop = booked_nodes().given(own_pods(running), passes=3)
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
    shop = booked_nodes(limits={"cpu": "12"})
    stranger(shop)
    shop.settle()
    assert shop.conditions()["Provisioned"] == LOST
    assert ends(shop) == {}
    assert shop.message().startswith(
        "room for 3 pods was made; it is booked for 10m; the room of 1 of them is gone, and is made good as soon as there is other room: "
        "NodePool general"
    )
    assert len(shop.held()) == 2, "the rest stays booked"
    shop.cluster.scale(workload_ref("stranger"), 0)
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert "gone" not in shop.message()
    assert len(shop.held()) == 3
    told = {item.event.reason: item.count for item in shop.cluster.events if item.event.ref == request_ref()}
    assert told == {"AttemptUnderWay": 1, "CapacityIsProvisioned": 2, "CapacityIsLost": 1}, "each is told once"


def test_a_request_of_which_pods_run_is_never_revoked() -> None:
    shop = booked_nodes(limits={"cpu": "12"}).given(own_pods(2), passes=3)
    taken = set(shop.sandbox.where().values())
    node = next(node.name for node in shop.cluster.view().nodes if node.name not in taken)
    shop.settle(workload("stranger", cpu="3", nodeSelector={"kubernetes.io/hostname": node}))
    assert shop.conditions()["Provisioned"] == LOST
    shop.wait(timedelta(minutes=10))
    shop.settle()
    assert ends(shop) == {EXPIRED: "CapacityReservationTimeExpired"}


@pytest.mark.parametrize("class_name", [CHECK, ATOMIC])
def test_its_nodes_stay_booked_without_its_pod_template(class_name: str) -> None:
    shop = BatchShop(nodes=int(class_name == CHECK)).given(request(count=3, class_name=class_name))
    held, before = shop.held(), shop.conditions()
    shop.cluster.delete(ObjectRef("", "PodTemplate", "shop", "worker"))
    shop.settle()
    assert shop.held() == held != []
    assert shop.conditions() == {**before, "Accepted": ("False", "PodTemplateNotFound")}
    shop.settle(pod_template("second"), request("second", count=3, class_name=CHECK, template="second"))
    assert shop.conditions("second")["Provisioned"] == ("False", "CapacityIsNotFound"), "nobody gets its room"
    shop.settle(pod_template())
    assert (shop.held(), shop.conditions(), booked(shop)) == (held, before, 3)


def test_nobody_gets_its_room_without_its_pod_template_on_a_node_that_karpenter_has_not_made() -> None:
    """headroom writes nothing on such a node: the booking is known by the inventory alone."""
    room = {"cpu": "3", "memory": "12Gi", "pods": "50"}
    status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
    labels = dict.fromkeys([HOSTNAME_LABEL], "fixed")
    shop = BatchShop()
    shop.cluster.apply(manifest("v1", "Node", "fixed", metadata={"labels": labels}, spec={"providerID": "fixed"}))
    shop.sandbox.change(node_ref("fixed"), lambda body: body.update(status=status), "kubelet")
    shop.settle()
    shop.settle(request(count=2))
    before = shop.conditions()
    shop.cluster.delete(ObjectRef("", "PodTemplate", "shop", "worker"))
    shop.settle()
    shop.settle(pod_template("second"), request("second", count=2, template="second"))
    assert shop.conditions("second")["Provisioned"] == ("False", "CapacityIsNotFound")
    shop.settle(pod_template())
    assert (shop.conditions(), booked(shop)) == (before, 2)
