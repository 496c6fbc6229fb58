"""Static NodePools in the embedded cluster: as many nodes as they say."""

from __future__ import annotations

from typing import Any

from reconciler.cluster.embedded.provisioner import RETRY
from tests.fakes.embedded import LARGE, SMALL, Document, Sandbox, node_pool, workload


def static(replicas: int, **spec: Any) -> Document:
    return node_pool("reports", consolidate_after="0s", replicas=replicas, **spec)


def sized(replicas: int, **spec: Any) -> Sandbox:
    sandbox = Sandbox()
    sandbox.cluster.apply(static(replicas, **spec))
    sandbox.wait(5)
    return sandbox


def test_it_has_as_many_nodes_as_replicas_and_keeps_them_though_they_are_empty() -> None:
    sandbox = sized(2)
    assert len(sandbox.node_names()) == 2
    before = sandbox.node_names()
    sandbox.wait(3600)
    assert sandbox.node_names() == before


def test_it_goes_to_zero_and_back() -> None:
    sandbox = sized(2)
    sandbox.cluster.apply(static(0))
    sandbox.wait(5)
    assert sandbox.node_names() == []
    sandbox.cluster.apply(static(1))
    sandbox.wait(5)
    assert len(sandbox.node_names()) == 1


def test_the_empty_node_goes_first() -> None:
    sandbox = sized(2)
    sandbox.cluster.apply(workload(replicas=1, cpu="1"))
    sandbox.wait(5)
    (used,) = sandbox.where().values()
    sandbox.cluster.apply(static(1))
    sandbox.wait(5)
    assert sandbox.node_names() == [used]


def test_a_node_that_is_lost_is_made_again() -> None:
    sandbox = sized(1)
    (name,) = sandbox.node_names()
    sandbox.cluster.lose(name)
    sandbox.wait(RETRY.total_seconds() + 5)
    assert len(sandbox.node_names()) == 1
    assert sandbox.node_names() != [name]


def test_its_limit_of_nodes_bounds_it() -> None:
    assert len(sized(5, limits={"nodes": "2"}).node_names()) == 2


def test_a_stock_out_is_tried_again_until_there_is_stock() -> None:
    sandbox = Sandbox(instance_types=(SMALL, LARGE))
    market = sandbox.cluster._world.market
    offers = [(item.name, offering) for item in (SMALL, LARGE) for offering in item.offerings]
    for name, offering in offers:
        market.set_stock(name, offering.zone, offering.capacity_type, available=False)
    sandbox.cluster.apply(static(1))
    sandbox.wait(30)
    assert sandbox.node_names() == []
    for name, offering in offers:
        market.set_stock(name, offering.zone, offering.capacity_type, available=True)
    sandbox.wait(RETRY.total_seconds() + 5)
    assert len(sandbox.node_names()) == 1
