"""Passes over atomic requests whose offerings are out of stock: when attempts begin, and what the conditions say meanwhile."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

from tests.builders import instance_type
from tests.fakes.embedded import Document, buffer, node_pool
from tests.fakes.requests import ATOMIC, FOUR, BatchShop, pod_template, request

ZONES = ("zone-a", "zone-b")
DEAR = instance_type("z-4x", cpu="4", memory="16Gi", price=0.9)
SMALL = instance_type("a-1x", cpu="1", memory="2Gi", price=0.01)


def sold_out(shop: BatchShop, *names: str, available: bool = False) -> None:
    for name in names:
        for zone in ZONES:
            shop.cluster.set_stock(name, zone, "on-demand", available=available)


def patient(**options: object) -> dict[str, object]:
    return request(count=3, class_name=ATOMIC, parameters={"ValidUntilSeconds": "7200"}, **options)  # type: ignore[arg-type]


def said(shop: BatchShop) -> tuple[str, str, str]:
    """Status, reason and message of Provisioned."""
    condition = next(item for item in shop.outcome().conditions if item.type == "Provisioned")
    return condition.status.value, condition.reason, condition.message


def attempts_of(shop: BatchShop, *, count: int) -> list[int]:
    """When each attempt began, in seconds after the first.

    Until the next one begins, the condition names its time. A second before that nothing is asked for.
    """
    first = shop.sandbox.clock.now()
    begun: list[int] = []
    while len(begun) < count:
        shop.run()
        assert said(shop)[1] == "AttemptUnderWay"
        begun.append(int((shop.sandbox.clock.now() - first).total_seconds()))
        shop.wait(timedelta(seconds=2))
        shop.run()
        record = shop.cluster.view().inventory.memory["provisioningRequests"]["shop/train"]
        assert record["attempt"] == len(begun)
        retry_at = datetime.fromisoformat(record["retryAt"])
        shop.wait(retry_at - shop.sandbox.clock.now() - timedelta(seconds=1))
        shop.run()
        assert said(shop)[1] == "AttemptFailed"
        assert f"attempt {len(begun)} failed, the next one begins at {retry_at:%H:%M:%S} UTC" in said(shop)[2]
        assert shop.claims() == []
        shop.wait(timedelta(seconds=1))
    return begun


def test_attempts_begin_as_documented_whatever_the_back_off_of_the_only_offering() -> None:
    """1, 2, 4, 8 and then 10 minutes after each failure, which is seen two seconds after the launch."""
    shop = BatchShop()
    sold_out(shop, "m-4x")
    shop.cluster.apply(patient())
    begun = attempts_of(shop, count=7)
    waits = [after - before for before, after in pairwise(begun)]
    assert waits == [60 + 2, 120 + 2, 240 + 2, 480 + 2, 600 + 2, 600 + 2]


def test_a_buffer_keeps_to_the_back_off_that_the_attempts_of_a_request_pass_over() -> None:
    shop = BatchShop(instance_types=(FOUR, DEAR))
    shop.cluster.apply(pod_template("near", nodeSelector={"node.kubernetes.io/instance-type": "m-4x"}))
    sold_out(shop, "m-4x")
    shop.cluster.apply(patient(template="near"))
    shop.settle(passes=4)
    shop.cluster.apply(buffer(scalableRef=None, podTemplateRef={"name": "worker"}, replicas=3))
    asked: list[tuple[str, ...]] = []
    for _ in range(60):
        for_the_buffer = (
            item.planned.instance_types
            for item in shop.run().required_plan.node_claims.create
            if any(holding.demand.name != "train" for holding in item.planned.holdings)
        )
        asked.extend(for_the_buffer)
        shop.sandbox.wait(2)
    assert asked == [("z-4x",)]


def pool_of(name: str, instance_type: str) -> Document:
    pool = node_pool(name)
    only = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]}
    pool["spec"]["template"]["spec"]["requirements"].append(only)
    return pool


def test_the_reason_names_the_pool_that_is_out_of_stock_and_not_one_that_never_would_have_done() -> None:
    shop = BatchShop(instance_types=(FOUR, SMALL), pool=pool_of("h", "m-4x"))
    shop.cluster.apply(pool_of("g", "a-1x"))
    sold_out(shop, "m-4x")
    shop.cluster.apply(pod_template(cpu="3"))
    shop.cluster.apply(patient())
    shop.settle(passes=4)
    status, reason, message = said(shop)
    assert (status, reason) == ("False", "AttemptFailed")
    assert message.endswith("NodePool h: what would do is not available now: m-4x in zone-a as on-demand and 1 other")


def test_a_request_that_has_failed_announces_no_attempt() -> None:
    shop = BatchShop()
    sold_out(shop, "m-4x")
    shop.cluster.apply(request(count=3, class_name=ATOMIC, parameters={"ValidUntilSeconds": "90"}))
    shop.settle(passes=24)
    assert shop.conditions()["Failed"] == ("True", "Expired")
    messages = [item.message for item in shop.outcome().conditions]
    assert not [message for message in messages if "begins" in message]
    assert said(shop)[2].startswith("attempt 2 failed: NodePool general: what would do is not available now")
