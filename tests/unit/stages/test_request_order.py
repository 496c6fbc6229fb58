"""Passes over several requests of which only one can be had: which one it is."""

from __future__ import annotations

import pytest

from tests.fakes.embedded import Document, node_pool
from tests.fakes.requests import ATOMIC, BatchShop, request, request_ref

MADE = ("True", "CapacityIsProvisioned")
NONE = ("False", "CapacityIsNotFound")


def queued(name: str, priority: int) -> Document:
    """As Kueue makes it for a Job."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"priority": priority, "podSets": []},
    }


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
    assert shop.conditions(second)["Provisioned"] == NONE


def test_a_workload_that_is_not_there_says_nothing() -> None:
    shop = BatchShop()
    ask(shop, "train", 3, workload="gone")
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
