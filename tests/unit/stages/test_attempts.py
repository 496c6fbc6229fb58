"""Attempts of atomic requests: when they begin, which request goes first, and what caps and stock-outs make of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import yaml

from reconciler.model.changes import Apply, Outcome, Write, WriteResult
from reconciler.model.rules import Caps, PlacementRules
from reconciler.model.view import ClusterView
from reconciler.ports import Cluster
from reconciler.settings.settings import Settings
from tests.builders import manifest
from tests.fakes.embedded import Document, buffer, node_pool, pool_ref
from tests.fakes.requests import (
    ATOMIC,
    DEAR,
    FOUR,
    MADE,
    NOT_FOUND,
    RESERVE,
    BatchShop,
    pod_template,
    request,
    request_ref,
)

# An attempt of which nothing was made has not failed: nothing is waited for, and it keeps its number.

BATCH = {"batch.yaml": yaml.safe_dump(node_pool("batch"))}


class SlowKarpenter:
    """The embedded cluster, where Karpenter has not found the NodeClass of a pool yet, as on a busy cluster: the pool is not ready."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.is_late = False
        self.refuses_claims = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def view(self) -> ClusterView:
        view = self._cluster.view()
        pool = view.objects.get(pool_ref("batch"))
        if not self.is_late or pool is None:
            return view
        status = {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeClassNotFound", "message": ""}]}
        late = replace(pool, body={**pool.body, "status": status})
        return replace(view, revision=f"{view.revision} late", objects={**view.objects, late.ref: late})

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        if self.refuses_claims and isinstance(write, Apply) and write.ref.kind == "NodeClaim":
            return WriteResult(write, Outcome.FAILED, "timed out")
        return self._cluster.write(write, dry_run=dry_run)


def slow_shop() -> tuple[BatchShop, SlowKarpenter]:
    """The attempt begins in the pass that applies the pool, and its NodeClaims wait for that."""
    shop = BatchShop(pool=node_pool(limits={"nodes": "0"}), files=BATCH)
    slow = SlowKarpenter(shop.cluster)
    shop.cluster = slow  # type: ignore[assignment]
    shop.restart()
    shop.cluster.apply(request(count=9, class_name=ATOMIC))
    shop.run()
    assert shop.conditions()["Provisioned"] == ("False", "AttemptUnderWay")
    assert shop.claims() == []
    return shop, slow


def test_a_node_pool_that_is_not_ready_yet_fails_no_attempt() -> None:
    shop, slow = slow_shop()
    slow.is_late = True
    shop.run()
    assert shop.conditions()["Provisioned"] == ("False", "CapacityIsNotFound")
    slow.is_late = False
    shop.settle(passes=4)
    assert shop.conditions()["Provisioned"] == MADE
    assert shop.attempts() == ["1"] * 3


def test_node_claims_that_could_not_be_written_fail_no_attempt() -> None:
    shop, slow = slow_shop()
    slow.refuses_claims = True
    shop.run()
    slow.is_late = True
    shop.run()
    slow.is_late = slow.refuses_claims = False
    shop.settle(passes=4)
    assert shop.conditions()["Provisioned"] == MADE
    assert shop.attempts() == ["1"] * 3


def test_an_attempt_of_which_something_was_made_fails_when_the_rest_cannot_be() -> None:
    shop, slow = slow_shop()
    shop.run()
    shop.sandbox.wait(10)
    slow.is_late = True
    shop.sandbox.cluster.lose(shop.sandbox.node_names()[0])
    shop.run()
    assert shop.conditions()["Provisioned"] == ("False", "AttemptFailed")


# Passes over atomic requests whose offerings are out of stock: when attempts begin, and what the conditions say meanwhile.


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
        record = shop.cluster.view().inventory.records["provisioningRequests"]["shop/train"]
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
    shop.sell("m-4x", available=False)
    shop.cluster.apply(patient())
    begun = attempts_of(shop, count=7)
    waits = [after - before for before, after in pairwise(begun)]
    assert waits == [60 + 2, 120 + 2, 240 + 2, 480 + 2, 600 + 2, 600 + 2]


def test_a_buffer_keeps_to_the_back_off_that_the_attempts_of_a_request_pass_over() -> None:
    shop = BatchShop(instance_types=(FOUR, DEAR))
    shop.cluster.apply(pod_template("near", nodeSelector={"node.kubernetes.io/instance-type": "m-4x"}))
    shop.sell("m-4x", available=False)
    shop.settle(patient(template="near"), passes=4)
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


def test_a_request_that_has_failed_announces_no_attempt() -> None:
    shop = BatchShop()
    shop.sell("m-4x", available=False)
    shop.settle(request(count=3, class_name=ATOMIC, parameters={"ValidUntilSeconds": "90"}), passes=24)
    assert shop.conditions()["Failed"] == ("True", "Expired")
    messages = [item.message for item in shop.outcome().conditions]
    assert not [message for message in messages if "begins" in message]
    assert said(shop)[2].startswith("attempt 2 failed: NodePool general: what would do is not available now")


# Passes over several requests of which only one can be had: which one it is.


def queued(name: str, priority: int) -> Document:
    """As Kueue makes it for a Job."""
    return manifest("kueue.x-k8s.io/v1beta2", "Workload", name, "shop", spec={"priority": priority, "podSets": []})


def ask(shop: BatchShop, name: str, count: int, *, workload: str) -> None:
    """As Kueue does, for a Workload."""
    shop.cluster.apply(request(name, count, class_name=ATOMIC))
    owner = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "name": workload,
        "uid": "1",
        "controller": True,
    }
    shop.sandbox.change(request_ref(name), lambda body: body["metadata"].update(ownerReferences=[owner]), "kueue")


@pytest.mark.parametrize(("older", "younger"), [(1, 10), (10, 1), (-5, 0), (0, 0)])
def test_the_priority_of_kueues_workload_decides_before_age(older: int, younger: int) -> None:
    shop = BatchShop(pool=node_pool(limits={"cpu": "12"}))
    for name, priority in (("older", older), ("younger", younger)):
        shop.cluster.apply(queued(f"job-{name}", priority))
        ask(shop, name, 9, workload=f"job-{name}")
        shop.sandbox.wait(1)
    shop.settle()
    first, second = ("younger", "older") if younger > older else ("older", "younger")
    assert shop.conditions(first)["Provisioned"] == MADE
    assert shop.conditions(second)["Provisioned"] == NOT_FOUND


# Passes over atomic requests that a cap is against: for how long it may be, they take nothing from the requests that can be made.

BEYOND = ("False", "BeyondACap")
OWN = pod_template("own", tolerations=[{"key": "headroom.dev/reserved", "operator": "Exists"}])


def shop_with(**caps: float) -> BatchShop:
    return BatchShop(settings=Settings(placement=PlacementRules(check=True), caps=Caps(**caps)))  # type: ignore[arg-type]


def ask_for(shop: BatchShop, name: str, count: int, **options: object) -> None:
    """A second later than what was asked before."""
    shop.sandbox.wait(1)
    shop.cluster.apply(request(name, count, class_name=ATOMIC, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("caps", "beyond", "made"),
    [
        ({"nodes_per_request": 3}, ("a-big", 30), ("small", 3)),
        ({"nodes_per_pool": 4}, ("a-big", 15), ("small", 3)),
        ({"nodes_per_pool": 2}, ("a-younger", 3), ("z-older", 4)),
    ],
)
def test_a_request_beyond_a_cap_takes_no_node_of_another_request(
    caps: dict[str, int], beyond: tuple[str, int], made: tuple[str, int]
) -> None:
    """It did: in each pass it took the node that had just been made for the other, for which another one was made then."""
    shop = shop_with(**caps)
    for name, count in (made, beyond) if "older" in made[0] else (beyond, made):
        ask_for(shop, name, count)
    shop.settle()
    assert shop.conditions(beyond[0])["Provisioned"] == BEYOND
    assert shop.conditions(made[0])["Provisioned"] == MADE
    assert len(shop.claims()) == -(-made[1] // 3)


def test_a_request_for_nodes_of_its_own_beyond_a_cap_is_not_given_others() -> None:
    shop = shop_with(nodes_per_request=1)
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.sandbox.add_node("free-too", "m-4x", cpu="3")
    shop.cluster.apply(OWN)
    ask_for(shop, "own", 6, template="own", **RESERVE)
    shop.settle()
    assert shop.conditions("own")["Provisioned"] == BEYOND
    assert shop.held() == []


def test_it_says_so_once_in_the_plan_and_is_over_when_its_time_is() -> None:
    shop = shop_with(nodes_per_request=3)
    ask_for(shop, "big", 30)
    notes = shop.settle().notes
    assert "10 nodes are not made: at most 3 nodes for one request (caps.nodesPerRequest)" in notes
    outcome = shop.outcome("big")
    assert (outcome.on_existing, outcome.on_new, outcome.unplaced) == (0, 0, 30)
    assert [reason.cause for reason in outcome.unplaced_reasons] == ["beyond a cap"]
    shop.wait(timedelta(minutes=10))
    shop.settle()
    assert shop.conditions("big")["Failed"] == ("True", "Expired")
    assert shop.claims() == []
