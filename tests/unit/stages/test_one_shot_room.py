"""What takes the room of a one-shot buffer: pods for good, bookings and other buffers for a time."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.buffers import remembered_one_shots
from reconciler.model.changes import Delete
from reconciler.model.nodes import HOLDS_ANNOTATION
from reconciler.model.refs import ObjectRef
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import page_text
from tests.fakes.embedded import Document, apply, node_pool, workload
from tests.fakes.requests import BatchShop, request, request_ref


def buffer(name: str = "once", replicas: int = 3, **annotations: str) -> Document:
    named = {f"headroom.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": "shop", "annotations": named},
        "spec": {"podTemplateRef": {"name": "worker"}, "replicas": replicas},
    }


def buffer_ref(name: str = "once") -> ObjectRef:
    return ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", name)


class OneShotShop(BatchShop):
    """Two nodes at most, and three chunks fit on each. The buffer `once` is filled."""

    def __init__(self, replicas: int = 3, *others: Document) -> None:
        super().__init__(pool=node_pool(limits={"cpu": "8"}))
        for other in others:
            self.cluster.apply(other)
        self.settle()
        self.cluster.apply(buffer(replicas=replicas, one_shot="true"))
        self.settle()
        assert self.left() == replicas

    def left(self) -> int:
        (entry,) = remembered_one_shots(self.cluster.view().inventory.memory).values()
        return entry.left

    def status(self) -> dict[str, Any]:
        live = self.cluster.get(buffer_ref())
        assert live is not None
        return dict(live["status"])

    def said(self, kind: str) -> str:
        return str(next(item["message"] for item in self.status()["conditions"] if item["type"] == kind))

    def scale(self, pods: int) -> None:
        self.cluster.apply(workload(replicas=pods, cpu="1"))
        self.settle()

    def chunks(self) -> int:
        """On nodes that are there, by the plan."""
        return next(item.on_existing for item in self.plan().demands if item.demand.ref == buffer_ref())


def test_a_booking_that_no_pod_used_gives_the_room_back() -> None:
    shop = OneShotShop()
    shop.cluster.apply(request(count=2))
    shop.settle()
    assert (shop.chunks(), shop.left()) == (1, 3)
    shop.wait(timedelta(minutes=11))
    shop.settle()
    assert shop.conditions()["BookingExpired"] == ("True", "CapacityReservationTimeExpired")
    assert (shop.chunks(), shop.left(), shop.status()["replicas"]) == (3, 3, 3)


def test_a_booking_that_pods_used_does_not() -> None:
    shop = OneShotShop()
    shop.cluster.apply(request(count=2))
    shop.settle()
    shop.scale(2)
    shop.cluster.delete(request_ref())
    shop.settle()
    assert (shop.chunks(), shop.left()) == (1, 1)
    shop.scale(0)
    assert (shop.chunks(), shop.left()) == (1, 1)


def test_a_buffer_before_it_gives_the_room_back_when_it_goes() -> None:
    shop = OneShotShop()
    shop.cluster.apply(buffer("first", 5, priority="5"))
    shop.settle()
    assert (shop.chunks(), shop.left()) == (0, 3)
    shop.cluster.delete(buffer_ref("first"))
    shop.settle()
    assert (shop.chunks(), shop.left()) == (3, 3)


def test_pods_take_its_room_also_where_an_older_buffer_keeps_its_own() -> None:
    """The node has room enough for the one-shot buffer alone: what it lost, it lost to pods all the same."""
    shop = OneShotShop(2, buffer("older", 1))
    shop.scale(1)
    assert (shop.chunks(), shop.left()) == (1, 1)
    shop.scale(0)
    assert (shop.chunks(), shop.left()) == (1, 1)


@pytest.mark.parametrize(("pods", "left"), [(2, 3), (4, 2)])
def test_room_that_pods_use_is_not_made_good_by_spare_room_of_another_of_its_nodes(pods: int, left: int) -> None:
    """Three chunks and one, on nodes of three: of the first node all room is the buffer's, of the second a third."""
    shop = OneShotShop(4)
    shop.scale(pods)
    nodes = [pod.node_name for pod in shop.cluster.view().pods]
    assert {nodes.count(name) for name in nodes} == {pods // 2}, "as many pods on each node"
    assert (shop.chunks(), shop.left()) == (left, left)
    shop.scale(0)
    assert (shop.chunks(), shop.left()) == (left, left)


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "lost"])
def test_a_node_that_goes_takes_its_part_with_it_though_another_has_spare_room(*, is_deleted: bool) -> None:
    shop = OneShotShop(4)
    claim = next(each for each in shop.cluster.view().node_claims if "3 of " in str(each.annotation(HOLDS_ANNOTATION)))
    if is_deleted:
        assert shop.sandbox.write(Delete(ObjectRef("karpenter.sh", "NodeClaim", "", claim.name))).ok
    else:
        assert claim.node_name is not None
        shop.cluster.lose(claim.node_name)
        shop.sandbox.wait(60)
    shop.settle()
    assert (shop.chunks(), shop.left()) == (1, 1)


def test_fewer_chunks_asked_for_are_given_up_for_good() -> None:
    shop = OneShotShop(4)
    for replicas in (1, 3):
        shop.cluster.apply(buffer(replicas=replicas, one_shot="true"))
        shop.settle()
        assert (shop.chunks(), shop.left()) == (1, 1)


def test_an_entry_of_an_earlier_version_is_read_and_completed() -> None:
    shop = OneShotShop(4)
    memory = json.loads(shop.inventory_text())
    (entry,) = memory["oneShots"].values()
    del entry["places"]
    metadata = {"namespace": "headroom-system", "name": "headroom"}
    data = {"memory.json": json.dumps(memory)}
    written = shop.sandbox.write(
        apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, force=True)
    )
    assert written.ok, written.message
    (old,) = remembered_one_shots(shop.cluster.view().inventory.memory).values()
    assert (old.left, len(old.nodes), old.places) == (4, 2, ())
    shop.settle()
    (new,) = remembered_one_shots(shop.cluster.view().inventory.memory).values()
    assert (new.left, new.nodes, new.filled) == (old.left, old.nodes, old.filled)
    assert sorted(place.chunks for place in new.places) == [1, 3]


def test_status_and_plan_say_what_is_left_of_what_is_asked_for() -> None:
    shop = OneShotShop(4)
    shop.cluster.apply(buffer(replicas=6, one_shot="true"))
    shop.settle()
    assert shop.status()["replicas"] == 4
    assert "4 left of the 6 asked for, not filled again" in shop.said("ReadyForProvisioning")
    text = page_text(plan_page(shop.plan(), cluster="shop"))
    assert "4 chunks, 4 on existing nodes" in text
    assert "      one-shot: what is left of 6\n" in text


def test_a_plan_says_of_a_buffer_that_is_yet_to_be_filled_that_it_is_one_shot() -> None:
    shop = BatchShop()
    shop.cluster.apply(buffer(one_shot="true"))
    assert "3 chunks, 3 on new nodes\n      one-shot\n" in page_text(plan_page(shop.plan(), cluster="shop"))
