"""Buffers that are filled once: how they end, and what takes their room for good or for a while."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.buffers import ONE_SHOTS_KEY, OneShot
from reconciler.model.changes import Apply, Delete
from reconciler.model.nodes import HOLDS_ANNOTATION
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import remembered
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import page_text
from tests import manifests
from tests.builders import buffer_ref, instance_type
from tests.fakes.embedded import Document, node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster
from tests.fakes.requests import BatchShop, request

# A buffer that is filled once ends for good: pods have used it, they did not come in time, or its nodes went first.

FOUR_PODS = instance_type("m-5x", cpu="5", memory="16Gi")
"""With room for four pods of one core, and no more."""


def in_git(
    size: str = "replicas: 4", once: str = "refillStrategy: none", deadline: str = "fillDeadlineSeconds: 900"
) -> str:
    return manifests.buffer("web", f"{size}, {once}, {deadline}", of=manifests.BY_DEPLOYMENT)


IN_GIT = in_git()


class Shop(KeptCluster):
    """A buffer of four chunks, as the repository declares it, and no pods yet."""

    def __init__(self, text: str = IN_GIT, unknown: frozenset[str] = frozenset()) -> None:
        super().__init__(instance_types=(FOUR_PODS,))
        served: Any = self.cluster
        served.unknown_fields = lambda apply: self._unknown(apply, unknown)
        self.cluster.apply(node_pool(consolidate_after="30s"))
        self.cluster.apply(workload(replicas=0, cpu="1"))
        self.commit({"web.yaml": text})
        self.keep(60)

    @staticmethod
    def _unknown(apply: Apply, unknown: frozenset[str]) -> tuple[str, ...]:
        return tuple(f"spec.{name}" for name in sorted(apply.manifest.get("spec") or {}) if name in unknown)

    def scale(self, pods: int) -> None:
        self.cluster.scale(workload_ref(), pods)

    def object(self) -> dict[str, Any]:
        return dict(self.cluster.live(buffer_ref()))

    def said(self, kind: str) -> tuple[str, str] | None:
        conditions = self.object()["status"]["conditions"]
        return next(((item["status"], item["reason"]) for item in conditions if item["type"] == kind), None)

    def message(self, kind: str) -> str:
        return str(next(item["message"] for item in self.object()["status"]["conditions"] if item["type"] == kind))

    def held(self) -> int:
        return sum(("headroom.dev/held", "true") in node.annotations for node in self.cluster.view().nodes)


def test_it_is_fulfilled_when_pods_have_used_it_and_stays_so() -> None:
    shop = Shop()
    assert (shop.said("Provisioning"), shop.said("Fulfilled")) == (("True", "FitsExistingCapacity"), None)
    shop.scale(3)
    shop.keep(30)
    assert (shop.object()["status"]["replicas"], shop.said("Fulfilled")) == (1, None)

    shop.scale(4)
    shop.keep(30)

    assert shop.said("Fulfilled") == ("True", "BufferFilled")
    assert shop.message("Fulfilled") == "pods have used 4 chunks, none is left"
    assert shop.said("Provisioning") == ("True", "FitsExistingCapacity"), "it is not empty: pods are in it"
    assert "Fulfilled" in shop.reasons()
    shop.scale(0)
    shop.keep(1200, step=5)
    assert (shop.said("Fulfilled"), shop.said("Expired")) == (("True", "BufferFilled"), None), "its deadline has passed"
    assert (shop.held(), shop.node_names()) == (0, [])


def test_it_gives_up_at_its_deadline_to_the_second_and_releases_its_nodes() -> None:
    shop = Shop()
    (outcome,) = shop.passes[0].plan.demands
    assert outcome.demand.explanation[-1] == "one-shot: to be filled once, pods have 15m to use all of it"
    shop.scale(1)
    shop.keep(830, step=5)
    assert (shop.held(), shop.said("Expired")) == (1, None)

    shop.keep(20)

    assert shop.said("Expired") == ("True", "FillDeadlineExceeded")
    assert shop.message("Expired") == "pods have used 1 of 4 chunks within 15m: the rest is given up"
    assert (shop.said("Provisioning"), shop.held()) == (("False", "BufferEmpty"), 0)
    assert "Expired" in shop.reasons()


@pytest.mark.parametrize(("seconds", "held"), [(60, 1), (960, 0)])
def test_without_its_workload_it_keeps_what_it_has_until_its_deadline(seconds: int, held: int) -> None:
    shop = Shop()
    shop.cluster.delete(workload_ref())
    shop.keep(seconds)
    assert shop.held() == held
    shop.cluster.apply(workload(replicas=0, cpu="1"))
    shop.keep(30)
    assert (shop.held(), shop.said("Expired")) == (held, None if held else ("True", "FillDeadlineExceeded"))


def test_what_is_written_later_does_not_begin_it_again() -> None:
    shop = Shop()
    shop.keep(900, step=5)
    assert shop.said("Expired") == ("True", "FillDeadlineExceeded")
    shop.commit({"web.yaml": in_git("replicas: 8", deadline="fillDeadlineSeconds: 90000")})
    shop.restart()
    shop.keep(60)
    assert (shop.said("Expired"), shop.object()["status"]["replicas"]) == (("True", "FillDeadlineExceeded"), 0)
    assert shop.held() == 0


def test_one_whose_nodes_went_before_any_pod_came_was_not_fulfilled() -> None:
    shop = Shop()
    for name in shop.node_names():
        shop.cluster.lose(name)
    shop.keep(120)
    assert (shop.said("Fulfilled"), shop.said("Expired")) == (None, ("True", "CapacityLost"))


def test_a_buffer_that_is_made_smaller_down_to_nothing_does_not_end() -> None:
    shop = Shop()
    shop.commit({"web.yaml": in_git("replicas: 0")})
    shop.keep(60)
    assert (shop.said("Fulfilled"), shop.said("Expired")) == (None, None)


@pytest.mark.parametrize("deadline", ["", "fillDeadlineSeconds: 900"], ids=["no deadline", "a deadline"])
def test_where_the_definition_has_no_such_fields_annotations_say_the_same(deadline: str) -> None:
    shop = Shop(in_git(deadline=deadline), unknown=frozenset({"refillStrategy", "fillDeadlineSeconds"}))
    found = shop.object()
    assert not found["spec"].keys() & {"refillStrategy", "fillDeadlineSeconds"}
    annotations = found["metadata"]["annotations"]
    assert annotations["headroom.dev/one-shot"] == "true"
    assert annotations.get("headroom.dev/fill-deadline") == ("15m" if deadline else None)
    shop.scale(4)
    shop.keep(30)
    assert shop.said("Fulfilled") == ("True", "BufferFilled")


def test_a_field_that_is_nowhere_known_beside_them_is_still_an_error() -> None:
    shop = Shop(
        in_git("replicas: 4, colour: blue"), unknown=frozenset({"refillStrategy", "fillDeadlineSeconds", "colour"})
    )
    assert shop.cluster.get(buffer_ref()) is None


def test_the_third_value_of_the_proposal_is_told_and_left_alone() -> None:
    shop = Shop(in_git(once="refillStrategy: recreateUpToLimit"))
    assert shop.said("ReadyForProvisioning") == ("False", "ResolutionFailed")
    assert shop.message("ReadyForProvisioning") == "refill strategy recreateUpToLimit is not supported"


# What takes the room of a one-shot buffer: pods for good, bookings and other buffers for a time.


def buffer(name: str = "once", replicas: int = 3, **marks: str) -> Document:
    text = manifests.buffer(name, f"replicas: {replicas}", of="podTemplateRef: {name: worker}", **marks)
    return manifests.document(text)


def shop_buffer_ref(name: str = "once") -> ObjectRef:
    return ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", name)


class OneShotShop(BatchShop):
    """Two nodes at most, and three chunks fit on each. The buffer `once` is filled."""

    def __init__(self, replicas: int = 3, *others: Document) -> None:
        super().__init__(pool=node_pool(limits={"cpu": "8"}))
        for other in others:
            self.cluster.apply(other)
        self.settle()
        self.settle(buffer(replicas=replicas, one_shot="true"))
        assert self.left() == replicas

    def left(self) -> int:
        (entry,) = remembered(self.cluster.view().inventory.records, ONE_SHOTS_KEY, OneShot).values()
        return entry.left

    def status(self) -> dict[str, Any]:
        return dict(self.cluster.live(shop_buffer_ref())["status"])

    def said(self, kind: str) -> str:
        return str(next(item["message"] for item in self.status()["conditions"] if item["type"] == kind))

    def scale(self, pods: int) -> None:
        self.settle(workload(replicas=pods, cpu="1"))

    def chunks(self) -> int:
        """On nodes that are there, by the plan."""
        return next(item.on_existing for item in self.plan().demands if item.demand.ref == shop_buffer_ref())


def test_a_booking_that_no_pod_used_gives_the_room_back() -> None:
    shop = OneShotShop().given(request(count=2))
    assert (shop.chunks(), shop.left()) == (1, 3)
    shop.wait(timedelta(minutes=11))
    shop.settle()
    assert shop.conditions()["BookingExpired"] == ("True", "CapacityReservationTimeExpired")
    assert (shop.chunks(), shop.left(), shop.status()["replicas"]) == (3, 3, 3)


def test_a_buffer_before_it_gives_the_room_back_when_it_goes() -> None:
    shop = OneShotShop().given(buffer("first", 5, priority="5"))
    assert (shop.chunks(), shop.left()) == (0, 3)
    shop.cluster.delete(shop_buffer_ref("first"))
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
        shop.settle(buffer(replicas=replicas, one_shot="true"))
        assert (shop.chunks(), shop.left()) == (1, 1)


def test_status_and_plan_say_what_is_left_of_what_is_asked_for() -> None:
    shop = OneShotShop(4).given(buffer(replicas=6, one_shot="true"))
    assert shop.status()["replicas"] == 4
    assert "4 left of the 6 asked for, not filled again" in shop.said("ReadyForProvisioning")
    text = page_text(plan_page(shop.plan(), cluster="shop"))
    assert "4 chunks, 4 on existing nodes" in text
    assert "      one-shot: what is left of 6\n" in text


def test_a_plan_says_of_a_buffer_that_is_yet_to_be_filled_that_it_is_one_shot() -> None:
    shop = BatchShop()
    shop.cluster.apply(buffer(one_shot="true"))
    assert "3 chunks, 3 on new nodes\n      one-shot\n" in page_text(plan_page(shop.plan(), cluster="shop"))
