"""Passes over atomic requests: nodes for all of it or for none, in attempts that survive restarts and leave nothing behind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.cluster.embedded.karpenter import Delays
from reconciler.model.rules import PlacementRules
from reconciler.settings.settings import Settings
from tests.fakes.embedded import node_pool, workload
from tests.fakes.requests import ATOMIC, DEAR, FOUR, MADE, BatchShop, pod_template, request, request_ref


def asked(count: int = 9, **options: object) -> dict[str, object]:
    return request(count=count, class_name=ATOMIC, **options)  # type: ignore[arg-type]


def test_what_is_free_altogether_needs_no_attempt() -> None:
    shop = BatchShop()
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.settle(asked(3))
    assert shop.conditions()["Provisioned"] == ("True", "CapacityIsFound")
    assert set(shop.attempts()) == {""}


def test_the_request_fails_at_the_second_at_which_its_time_is_over() -> None:
    shop = BatchShop(pool=node_pool(limits={"cpu": "8"}))
    began = shop.sandbox.clock.now()
    shop.cluster.apply(asked(9, parameters={"ValidUntilSeconds": "90"}))
    shop.run()
    edge = shop.cycle.next_edge(began)
    assert edge is not None
    assert edge.at == began + timedelta(seconds=90)
    shop.wait(timedelta(seconds=89))
    shop.run()
    assert "Failed" not in shop.conditions()
    shop.wait(timedelta(seconds=1))
    shop.run()
    assert shop.conditions()["Failed"] == ("True", "Expired")


class TestAPartThatCannotBeLaunched:
    """Of two pod sets the second must be in zone-b, where everything is out of stock."""

    @pytest.fixture
    def shop(self) -> BatchShop:
        """Nobody else would remove an empty node within the hour."""
        shop = BatchShop(pool=node_pool(consolidate_after="1h"))
        shop.sell("m-4x", zones=["zone-b"], available=False)
        shop.cluster.apply(pod_template("far", nodeSelector={"topology.kubernetes.io/zone": "zone-b"}))
        document = asked(6, parameters={"ValidUntilSeconds": "1800"})
        document["spec"]["podSets"].append({"podTemplateRef": {"name": "far"}, "count": 3})  # type: ignore[index]
        shop.cluster.apply(document)
        return shop

    def until_it_failed(self, shop: BatchShop) -> None:
        for _ in range(40):
            if shop.conditions().get("Provisioned") == ("False", "AttemptFailed"):
                return
            shop.run()
            shop.sandbox.wait(5)
        raise AssertionError(shop.conditions())

    def test_removes_the_rest_and_backs_off(self, shop: BatchShop) -> None:
        shop.run()
        assert len(shop.claims()) == 3
        self.until_it_failed(shop)
        shop.settle()
        assert shop.claims() == []
        record = shop.cluster.view().inventory.records["provisioningRequests"]["shop/train"]
        assert record["attempt"] == 1
        assert "underWay" not in record

    def test_succeeds_when_the_stock_returns(self, shop: BatchShop) -> None:
        self.until_it_failed(shop)
        shop.sell("m-4x", zones=["zone-b"], available=True)
        shop.settle(passes=80)
        assert shop.conditions()["Provisioned"] == MADE
        assert len(shop.claims()) == 3
        assert set(shop.attempts()) == {"2"}

    def test_keeps_a_node_that_a_pod_has_come_to(self, shop: BatchShop) -> None:
        shop.run()
        shop.sandbox.wait(10)
        shop.cluster.apply(workload(cpu="3500m"))
        shop.sandbox.wait(1)
        self.until_it_failed(shop)
        shop.settle()
        assert len(shop.claims()) == 1
        assert shop.held() == []


def test_what_failed_in_an_attempt_is_not_tried_again_in_it_however_long_launches_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where nodes do not register: by the time that the second offering has failed, the back-off of the first is over."""
    monkeypatch.setattr("tests.fakes.embedded.DELAYS", Delays(launch=timedelta(minutes=4)))
    shop = BatchShop(
        instance_types=(FOUR, DEAR),
        pool=node_pool(consolidate_after="1h"),
        settings=Settings(placement=PlacementRules(check=True, instance_types=1)),
    )
    shop.cluster.apply(pod_template("far", nodeSelector={"topology.kubernetes.io/zone": "zone-b"}))
    shop.sell("m-4x", "z-4x", zones=["zone-b"], available=False)
    document = asked(3, parameters={"ValidUntilSeconds": "7200"})
    document["spec"]["podSets"].append({"podTemplateRef": {"name": "far"}, "count": 3})  # type: ignore[index]
    shop.cluster.apply(document)
    tried = []
    for _ in range(100):
        created = shop.run().required_plan.node_claims.create
        tried += [item.planned.instance_types for item in created if item.planned.zones == ("zone-b",)]
        if shop.conditions()["Provisioned"] == ("False", "AttemptFailed"):
            break
        shop.sandbox.wait(15)
    assert tried == [("m-4x",), ("z-4x",)]
    shop.settle()
    assert shop.claims() == []


@pytest.mark.parametrize("passes", [0, 1, 8], ids=["before it is seen", "while nodes come", "when it is booked"])
def test_to_delete_it_cancels_it_at_once_though_a_finalizer_keeps_its_object(passes: int) -> None:
    shop = BatchShop(pool=node_pool(consolidate_after="0s"))
    shop.cluster.apply(asked(finalizers=["example.com/accounting"]))
    for _ in range(passes):
        shop.run()
        shop.sandbox.wait(2)
    shop.cluster.delete(request_ref())
    shop.run()
    assert shop.conditions()["Failed"] == ("True", "Cancelled")
    assert shop.held() == []
    shop.settle(passes=20)
    assert shop.claims() == []


@pytest.fixture
def in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two nodes, as one of 500 is of a request for more than 1,000."""
    monkeypatch.setattr("reconciler.plan.launching.caps.MOST_IN_A_WAVE", 2)


@pytest.mark.usefixtures("in_steps")
def test_more_nodes_than_one_step_makes_come_in_steps_of_one_attempt() -> None:
    shop = BatchShop()
    shop.cluster.apply(asked(18))
    made = []
    for _ in range(3):
        shop.run()
        made.append(len(shop.claims()))
    assert made == [2, 4, 6]
    assert shop.conditions()["Provisioned"] == ("False", "AttemptUnderWay")
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert set(shop.attempts()) == {"1"}
    assert len(shop.claims()) == 6
