"""A machine that one watch tells of before another is neither lost nor there twice."""

from __future__ import annotations

import pytest

from reconciler.model.nodes import ATTEMPT_LABEL
from tests.fakes.delayed import NODE_CLAIMS, NODES, DelayedCluster
from tests.fakes.embedded import buffer, node_pool, workload
from tests.fakes.requests import ATOMIC, BatchShop, request

MADE = ("True", "CapacityIsProvisioned")
MACHINES = 6
PODS = 3 * MACHINES

each_delay = pytest.mark.parametrize(
    ("part", "count", "young"),
    [
        pytest.param(part, count, young, id=f"{count}-{part}-{'unregistered' if young else 'registered'}")
        for part in (NODE_CLAIMS, NODES)
        for count in (MACHINES, 2)
        for young in (False, True)
    ],
)
"""count: of the kind's objects, how many are seen late. young: nodes are seen before Karpenter has registered them."""


def delayed_shop(*, young: bool) -> tuple[BatchShop, DelayedCluster]:
    """Its pool has room for one node more than is needed."""
    shop = BatchShop(pool=node_pool(limits={"nodes": str(MACHINES + 1)}))
    delayed = DelayedCluster(shop.cluster, young=young)
    shop.cluster = delayed  # type: ignore[assignment]
    shop.restart()
    return shop, delayed


def attempts(shop: BatchShop) -> list[str]:
    labels = (claim.label(ATTEMPT_LABEL) or "" for claim in shop.cluster.view().node_claims)
    return sorted(label.rpartition(".")[2] for label in labels)


@each_delay
def test_an_attempt_does_not_fail_because_one_watch_is_behind(part: str, count: int, *, young: bool) -> None:
    shop, delayed = delayed_shop(young=young)
    shop.cluster.apply(request(count=PODS, class_name=ATOMIC))
    shop.run()
    delayed.behind = {part: count}
    made = shop.claims()
    shop.sandbox.wait(10)
    for _ in range(4):
        shop.run()
        shop.sandbox.wait(1)
    delayed.behind = {}
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert attempts(shop) == ["1"] * MACHINES
    assert shop.claims() == shop.held() == made


@each_delay
def test_a_buffer_keeps_its_nodes_while_one_watch_is_behind(part: str, count: int, *, young: bool) -> None:
    shop, delayed = delayed_shop(young=young)
    shop.cluster.apply(workload(replicas=0, cpu="3"))
    shop.cluster.apply(buffer(replicas=MACHINES))
    shop.run()
    delayed.behind = {part: count}
    made = shop.claims()
    shop.sandbox.wait(10)
    for _ in range(4):
        changes = shop.run().required_plan.node_claims
        assert (changes.create, changes.delete, changes.release) == ((), (), ())
        shop.sandbox.wait(1)
    delayed.behind = {}
    shop.settle()
    assert shop.claims() == shop.held() == made
    assert len(made) == MACHINES


def limit(shop: BatchShop, nodes: int) -> None:
    """The pool has more than it may: no node can be made in place of another."""
    shop.cluster.apply(node_pool(limits={"nodes": str(nodes)}))


def test_an_attempt_does_not_fail_while_its_nodes_cannot_be_read() -> None:
    shop, delayed = delayed_shop(young=False)
    shop.cluster.apply(request(count=PODS, class_name=ATOMIC, parameters={"ValidUntilSeconds": "3600"}))
    shop.run()
    shop.sandbox.wait(3)
    made = shop.claims()
    limit(shop, 0)
    delayed.is_cut_off = True
    shop.run()
    assert shop.conditions()["Provisioned"] == ("False", "AttemptUnderWay")
    delayed.is_cut_off = False
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert attempts(shop) == ["1"] * MACHINES
    assert shop.claims() == shop.held() == made


def test_a_booking_is_not_revoked_while_its_nodes_cannot_be_read() -> None:
    shop, delayed = delayed_shop(young=False)
    shop.cluster.apply(request(count=PODS, class_name=ATOMIC))
    shop.settle()
    limit(shop, 0)
    delayed.is_cut_off = True
    shop.run()
    delayed.is_cut_off = False
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert "CapacityRevoked" not in shop.conditions()


def test_a_node_claim_that_cannot_be_read_is_no_launch_that_failed() -> None:
    shop, delayed = delayed_shop(young=False)
    shop.cluster.apply(request(count=PODS, class_name=ATOMIC))
    shop.run()
    delayed.is_cut_off = True
    assert shop.run().required_plan.stock_outs == ()
